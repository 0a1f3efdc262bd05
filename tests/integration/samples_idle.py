#!/usr/bin/python3
# test: timeout=120
"""Where nothing can be gained by it, files on a local disk or a small database, workers stop reporting which sample
they read; where something can, they go on."""
import json
import os
import sys

import harness
from harness import claim

COUNT, EPOCHS = 400, 4
JOB = f"""
import hashlib, multiprocessing, os, sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Files(Dataset):
    def __init__(self, folder):
        self.samples = [(folder + "/%d" % i, i) for i in range({COUNT})]
    def __len__(self):
        return {COUNT}
    def __getitem__(self, index):
        with open(self.samples[index][0], "rb") as file:
            return index, file.read()

class Unnamed(Dataset):  # no attribute names its files
    file = None
    def __len__(self):
        return {COUNT}
    def __getitem__(self, index):
        with open(os.path.join(sys.argv[1], str(index)), "rb") as file:
            return index, file.read()

class Container(Unnamed):
    def __getitem__(self, index):
        if self.file is None:
            self.file = open(os.path.join(sys.argv[1], "0"), "rb")
        return index, os.pread(self.file.fileno(), 3, index % 100 * 3)

def all_wait():  # every worker sleeps: it waits for its next batch
    for worker in multiprocessing.active_children():
        with open("/proc/%d/stat" % worker.pid) as text:
            if text.read().rpartition(")")[2].split()[0] != "S":
                return False
    return True

torch.manual_seed(4)
kind = sys.argv[2]
dataset = {{"files": lambda: Files(sys.argv[1]), "unnamed": Unnamed, "container": Container}}[kind]()
loader = DataLoader(dataset, batch_size=16, shuffle=True, num_workers=2, collate_fn=list)
whole = hashlib.sha256()
for epoch in range({EPOCHS}):
    for number, batch in enumerate(loader):
        whole.update(repr(batch).encode())
        if kind == "unnamed" and number == {COUNT} // 16 - 1:
            for _ in range(10_000):  # until the workers are done; they have not yet ended
                if all_wait():
                    break
                time.sleep(0.001)
    print(epoch, whole.hexdigest(), flush=True)
print(hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest())
"""


def events(place, folder, kind="files", **settings):
    """What was reported to the optimizer, in epochs: a begin and an end for each sample."""
    argv = [sys.executable, "-c", JOB, folder, kind]
    plain = place.run(argv, library=None)
    claim(plain.returncode == 0, plain.stderr)
    report = os.path.join(place.work, "report.json")
    under = place.run(argv, SLUICE_REPORT=report, SLUICE_DATASET=None, SLUICE_CHECKPOINT=None,
                      SLUICE_DISTANCE=None, SLUICE_PLACES="off", **settings)
    harness.same(plain, under, str(settings))
    harness.drive.end_optimizer(place.sockets)
    with open(report, encoding="utf-8") as text:
        seen = json.load(text)["events_seen"]
    print(f"{settings}: {seen} events")
    return seen / (2 * COUNT)


def test(place):
    harness.need_modules("torch")
    folder = os.path.join(place.work, "set")
    os.mkdir(folder)
    for number in range(COUNT):
        with open(os.path.join(folder, str(number)), "wb") as file:
            file.write(b"%d" % number * 500)
    claim(events(place, folder, SLUICE_STAGE="never") == 0, "reported although nothing is ever staged")
    # The first file that was to be copied shows that its folder is on a local disk.
    harness.repeated(place, lambda: harness.in_time(events(place, folder) <= 1, "reported for longer than an epoch"))
    # A few may be lost where the machine is very busy.
    claim(events(place, folder, SLUICE_STAGE="always") > 0.9 * EPOCHS, "not reported, although it helps")
    # What they are made of is reported when a worker ends: each sample has long been read.
    claim(events(place, folder, "unnamed", SLUICE_STAGE="always") > 0.9 * EPOCHS,
          "no reports of samples that were learned after they were read")
    # A small database: what a sample is made of is never learned.
    reported = events(place, folder, "container", SLUICE_STAGE="always")
    claim(0.9 < reported <= 1.1, "reported for longer than an epoch, or not at all")
    trace = os.path.join(place.work, "trace")
    claim(events(place, folder, SLUICE_RECORD=trace) > 0.9 * EPOCHS, "not reported, although it is recorded")


if __name__ == "__main__":
    harness.main(test)
