#!/usr/bin/python3
# test: timeout=300 turns
"""Samples that are records of an LMDB are known before they were read once: all of them where the
dataset lists its keys, and most of the first epoch where the keys follow a rule that shows in the first
few. A rule that does not hold costs the job nothing."""
import json
import os
import sys

import harness
from harness import claim

COUNT, BYTES, EPOCHS = 600, 8000, 2
# How each kind of dataset names the records of sample i.
KEYS = f"""
import hashlib
COUNT = {COUNT}
def shuffled(i):
    return hashlib.sha256(b"%d" % i).digest()[:10]
KINDS = {{
    "padded": lambda i: [b"%08d" % i],
    "decimal": lambda i: [b"%d.jpg" % i],
    "pairs": lambda i: [b"image-%09d" % (i + 1), b"label-%09d" % (i + 1)],
    "binary": lambda i: [i.to_bytes(4, "big")],
    "none": lambda i: [shuffled(i)],
    "listed": lambda i: [shuffled(i)],
    # A rule that nearly all samples follow.
    "breaks": lambda i: [b"%06d" % (i if i % 50 else COUNT - 50 - i)],
}}
"""
MAKE = KEYS + f"""
import lmdb, random, sys
draw = random.Random(5)
for kind, keys in KINDS.items():
    with lmdb.open(sys.argv[1] + "/" + kind, map_size=1 << 28) as env, env.begin(write=True) as txn:
        if kind != "binary":
            txn.put(b"__len__", b"%d" % COUNT)
        for i in range(COUNT):
            for key in keys(i):
                txn.put(key, draw.randbytes({BYTES} if not key.startswith(b"label") else 40))
"""
# argv: the folder, the kind, workers.
JOB = KEYS + f"""
import hashlib, os, sys
import lmdb, torch
from torch.utils.data import DataLoader, Dataset

class Records(Dataset):
    def __init__(self, path, kind):
        self.path, self.kind, self.env = path, kind, None
        if kind == "listed":
            self.names = [KINDS[kind](i)[0] for i in range(COUNT)]
    def __len__(self):
        return COUNT
    def __getitem__(self, index):
        if self.env is None:
            self.env = lmdb.open(self.path, readonly=True, lock=False, readahead=False)
        hashlib.sha256(bytes(4 << 20)).digest()  # what a job computes
        with self.env.begin() as txn:
            values = [txn.get(key) for key in KINDS[self.kind](index)]
        return index, [hashlib.sha256(value).hexdigest() for value in values]

folder, kind, workers = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.manual_seed(3)
loader = DataLoader(Records(folder + "/" + kind, kind), batch_size=16, shuffle=True,
                    num_workers=workers, collate_fn=list)
whole = hashlib.sha256()
for epoch in range({EPOCHS}):
    handle = os.open(folder + "/" + kind + "/data.mdb", os.O_RDONLY)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)
    for batch in loader:
        whole.update(repr(batch).encode())
    print(epoch, whole.hexdigest(), flush=True)
"""


def known(place, folder, kind, workers, python=sys.executable):
    """Samples of which it was known where they are when they were begun, in epochs."""
    argv = [python, "-W", "ignore", "-c", JOB, folder, kind, str(workers)]
    plain = place.run(argv, library=None, timeout=100)
    claim(plain.returncode == 0, plain.stderr)
    report = os.path.join(place.work, "report.json")
    under = place.run(argv, timeout=100, SLUICE_REPORT=report, SLUICE_CHECKPOINT=None,
                      SLUICE_DISTANCE=None, SLUICE_DATASET=None, SLUICE_PLACES="off")
    what = f"{kind} with {workers} workers"
    harness.same(plain, under, what)
    harness.drive.end_optimizer(place.sockets)  # which knows the dataset now
    with open(report, encoding="utf-8") as text:
        found = json.load(text)
    os.unlink(report)
    begun = sum(found["sample_" + word] for word in ("hits", "late", "misses"))
    print(f"{what}: {begun / COUNT:.2f} of {EPOCHS} epochs known, {found['sample_hits']} hits")
    harness.in_time(found["sample_hits"] > 0, f"{what}: nothing was in memory in time")
    return begun / COUNT


def check(least, most, place, folder, kind, workers, *python):
    found = known(place, folder, kind, workers, *python)
    claim(found <= most, f"{kind}: {found} epochs: what rule was that?")
    harness.in_time(found > least, f"{kind}: {found} epochs")


def test(place):
    if harness.subprocess.run([sys.executable, "-c", "import torch, lmdb"], capture_output=True,
                              check=False).returncode:
        harness.skip("no PyTorch and LMDB here")
    folder = os.path.join(place.work, "set")
    os.mkdir(folder)
    done = place.run([sys.executable, "-c", MAKE, folder], library=None)
    claim(done.returncode == 0, done.stderr)
    cases = ("padded", 0), ("padded", 2), ("decimal", 2), ("pairs", 2), ("binary", 2)
    for kind, workers in harness.in_turn(cases, 2):
        # How many are read until the rule is found is the machine's affair.
        harness.repeated(place, check, EPOCHS - 0.9, EPOCHS, place, folder, kind, workers)
    # The list is looked up while the first samples are read.
    harness.repeated(place, check, EPOCHS - 0.7, EPOCHS, place, folder, "listed", 2)
    for kind in harness.in_turn(("none", "breaks"), 1):
        most = EPOCHS - 0.95 if kind == "none" else EPOCHS
        harness.repeated(place, check, EPOCHS - 1.1, most, place, folder, kind, 2)


if __name__ == "__main__":
    harness.main(test)
