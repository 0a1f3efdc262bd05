#!/usr/bin/python3
# test: timeout=400
"""Samples that are chunks of an HDF5 dataset are located in their first epoch, though nodes of an index lie between
some of them; the job reads what it reads without Sluice."""
import json
import os
import subprocess
import sys

import harness
import stage_testing
from harness import claim
from stage_testing import Ground

SAMPLES, BYTES = 1000, 60_000
MAKE = f"""
import sys, h5py, numpy
draw = numpy.random.default_rng(1)
with h5py.File(sys.argv[1], "w") as file:
    images = file.create_dataset("images", ({SAMPLES}, {BYTES}), numpy.uint8, chunks=(1, {BYTES}))
    for number in range({SAMPLES}):
        images[number] = draw.integers(0, 256, {BYTES}, numpy.uint8)
"""
JOB = """
import hashlib, sys
import h5py, torch
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    file = None
    def __init__(self):
        with h5py.File(sys.argv[1], "r") as file:
            self.length = len(file["images"])
    def __len__(self):
        return self.length
    def __getitem__(self, index):
        if self.file is None:
            self.file = h5py.File(sys.argv[1], "r")
        return index, hashlib.sha256(self.file["images"][index].tobytes()).hexdigest()

torch.manual_seed(5)
whole = hashlib.sha256()
for batch in DataLoader(Images(), batch_size=16, shuffle=True, num_workers=2, collate_fn=list):
    whole.update(repr(batch).encode())
print(whole.hexdigest())
"""


def test(place):
    if subprocess.run([sys.executable, "-c", "import torch, h5py"], capture_output=True, check=False).returncode:
        harness.skip("no PyTorch or no h5py here")
    stage_testing.need_slow_mounts()
    report = os.path.join(place.work, "report.json")
    with Ground(place, "mount", 5) as ground:
        subprocess.run([sys.executable, "-c", MAKE, os.path.join(ground.source, "train.h5")], check=True)
        argv = [sys.executable, "-W", "ignore", "-c", JOB]
        plain = place.run([*argv, os.path.join(ground.source, "train.h5")], library=None)
        done = place.run([*argv, os.path.join(ground.path, "train.h5")], timeout=300, **stage_testing.by_default(report))
        claim(done.returncode == 0 and done.stdout == plain.stdout, done.stdout + done.stderr)
        harness.drive.end_optimizer(place.sockets)
    with open(report, encoding="utf-8") as text:
        found = json.load(text)
    unknown = found["epochs"]["sample_unknown"][0]
    claim(unknown < SAMPLES // 2, f"{unknown} of {SAMPLES} samples were not located in the first epoch: {found}")
    claim(found["sample_hits"] + found["sample_late"] > SAMPLES // 4, f"few were read ahead: {found}")


if __name__ == "__main__":
    harness.main(test)
