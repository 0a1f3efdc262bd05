#!/usr/bin/python3
"""Trains by importance on files of one number each, and prints what was promised and reported of it, as JSON:
the optimizer's status, the samples that it trained, and by epoch the names of those promised from memory.

train_promises.py FOLDER EPOCHS WORKERS SLUICE MARK: SLUICE is the program that prints the status; MARK
and the epoch's number name a file that is made at the end of each epoch."""
import json
import os
import subprocess
import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

FROM_MEMORY = range(4)  # sluice.h: of the ways in which a sample is supplied


class Files(Dataset):
    def __init__(self, folder):
        self.paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with open(self.paths[index], "rb") as data:
            return int(data.read().split()[0])


def hear(said):
    """Notes in `said` which samples the optimizer promises from memory."""
    module = sys.modules["sluice_torch.importance"].sluice  # the adapter is there below Sluice alone
    decide = module.serve

    def heard(*question):
        answer = decide(*question)
        said.extend(sample for sample, how in zip(*answer or ((), ())) if how in FROM_MEMORY)
        return answer
    module.serve = heard


def main(folder, epochs, workers, sluice, mark):
    torch.manual_seed(5)
    torch.set_num_threads(1)
    dataset = Files(folder)
    logits = torch.randn(len(dataset), 4).requires_grad_()  # losses, and so importance, are the samples'
    loader = DataLoader(dataset, batch_size=32, num_workers=int(workers), shuffle=True)
    said, promised, trained = [], [], 0
    hear(said)
    for epoch in range(int(epochs)):
        for numbers in loader:
            cross_entropy(logits[numbers], numbers % 4).backward()
            trained += len(numbers)
        with open(mark + str(epoch), "w", encoding="ascii"):
            pass
        promised.append([os.path.basename(dataset.paths[sample]) for sample in said])
        said.clear()
    for last in [False] * 9 + [True]:  # a busy machine's optimizer may be late
        asked = subprocess.run([sluice, "status", "--json", "--socket", os.environ["SLUICE_SOCKET"]],
                               env={"PATH": os.environ["PATH"]}, stdout=subprocess.PIPE, check=last)
        if asked.returncode == 0:
            break
    text = asked.stdout
    print(json.dumps({"status": json.loads(text)["importance"][0], "trained": trained, "promised": promised}))


if __name__ == "__main__":
    main(*sys.argv[1:])
