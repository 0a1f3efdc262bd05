"""A training whose epochs are timed: Fashion-MNIST as one padded file an image.

train_importance.py FOLDER EPOCHS COMPUTE_MS [--computed SHARE...] [--shared FILE] [--workers N] [--batch N] [--seed N]
[--status PROGRAM]: prints one JSON object: of each epoch how long it took, how much of that the training waited for a batch,
and how many samples it had. With `sluice` as PROGRAM also how the requests of all epochs until then were answered, which it
asks for between epochs.

What the model computes is a softmax regression, whose losses are real; then it waits until a batch of 256
has taken COMPUTE_MS since it came, as long as a GPU would compute another model. `--computed`: of each epoch, the
share of its samples that is computed, for a system that fetches all and computes some.

With a shared file the decisions of a system are followed instead of the loader's own order: its epochs are
lists of [sample, whether it is in memory, packages read meanwhile]; what is in memory is read from
`memory`, a folder with the same files that is fast, and packages from the file `packs` in
FOLDER, by a thread beside the training. `computed`: of each epoch, the share of its
samples that is computed.
"""
import argparse
import json
import os
import queue
import subprocess
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from fashion import SIDE, samples_of

BATCH, PACKAGE = 256, 1 << 20


class Images(Dataset):
    def __init__(self, root, memory=None):
        self.samples = samples_of(root)
        self.slow = len(self.samples)
        if memory:
            self.samples += samples_of(memory)
        self.forgets = memory is not None

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        with open(path, "rb") as file:
            pixels = bytearray(file.read()[:SIDE * SIDE])
            if self.forgets and index < self.slow:  # what stays in memory is the system's to say
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return torch.frombuffer(pixels, dtype=torch.uint8).view(SIDE * SIDE) / 255.0, label


class Packages(threading.Thread):
    """Reads packages as they are due, one after the other."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.due, self.path = queue.Queue(), path

    def run(self):
        handle = os.open(self.path, os.O_RDONLY)
        size, at = os.fstat(handle).st_size, 0
        while self.due.get():
            os.pread(handle, PACKAGE, at)
            os.posix_fadvise(handle, at, PACKAGE, os.POSIX_FADV_DONTNEED)
            at = (at + PACKAGE) % (size - PACKAGE)


class Training:
    def __init__(self, compute, seed):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.compute = compute
        self.model = nn.Linear(SIDE * SIDE, 10)
        self.descent = torch.optim.SGD(self.model.parameters(), lr=0.05)

    def epoch(self, batches, share=1.0, arrived=lambda number: None):
        started, waited, samples = time.monotonic(), 0.0, 0
        iterator = iter(batches)
        for number in range(len(batches) + 1):
            before = time.monotonic()
            batch = next(iterator, None)
            came = time.monotonic()
            waited += came - before
            if batch is None:
                break
            arrived(number)
            images, labels = batch
            self.descent.zero_grad()
            nn.functional.cross_entropy(self.model(images), labels).backward()
            self.descent.step()
            samples += len(labels)
            left = came + self.compute * share * len(labels) / BATCH - time.monotonic()
            if left > 0:
                time.sleep(left)
        return {"seconds": time.monotonic() - started, "waited": waited, "samples": samples}


def follow(training, folder, workers, shared):
    images = Images(folder, shared["memory"])
    packages = Packages(os.path.join(folder, "packs"))
    packages.start()
    passes = []
    for decided, share in zip(shared["epochs"], shared["computed"]):
        batches = [decided[at:at + BATCH] for at in range(0, len(decided), BATCH)]
        loader = DataLoader(images, num_workers=workers, batch_sampler=[
            [sample + images.slow * in_memory for sample, in_memory, _ in batch] for batch in batches])

        def arrived(number, batches=batches):
            for _ in range(sum(one[2] for one in batches[number])):
                packages.due.put(True)
        passes.append(training.epoch(loader, share, arrived))
    return passes


def answered(program):
    """{kind: requests} of this job, so far."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    status = subprocess.run([program, "status", "--json"], env=environment, check=True, capture_output=True)
    datasets = json.loads(status.stdout)["importance"]
    return {kind: sum(one[kind] for one in datasets)
            for kind in ("h_hits", "l_exact", "l_substituted", "misses", "broken")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("epochs", type=int)
    parser.add_argument("compute_ms", type=float)
    parser.add_argument("--computed", type=float, nargs="*")
    parser.add_argument("--shared")
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--status")
    given = parser.parse_args()
    training = Training(given.compute_ms / 1e3, given.seed)
    if given.shared:
        with open(given.shared, encoding="utf-8") as text:
            passes = follow(training, given.folder, given.workers, json.load(text))
    else:
        loader = DataLoader(Images(given.folder), batch_size=given.batch, shuffle=True, num_workers=given.workers)
        shares = given.computed or [1.0] * given.epochs
        if len(shares) != given.epochs:
            parser.error("--computed: one share for each epoch")
        passes = []
        for share in shares:
            passes.append(training.epoch(loader, share))
            if given.status:
                passes[-1]["answered"] = answered(given.status)
    print(json.dumps({"pid": os.getpid(), "passes": passes}))


if __name__ == "__main__":
    main()
