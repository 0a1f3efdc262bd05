#!/usr/bin/python3
# test: timeout=300 turns
"""Shuffled samples of an LMDB: what they are made of is learned in the first epoch, and from the
second on they are in memory when a worker begins them. The job sees its own bytes in its own order.
"""
import json
import os
import sys

import harness
from harness import claim

COUNT, BYTES = 800, 20000
MAKE = f"""
import lmdb, random, sys
draw = random.Random(5)
with lmdb.open(sys.argv[1], map_size=1 << 30) as env, env.begin(write=True) as txn:
    for i in range({COUNT}):
        txn.put(b"%08d" % i, draw.randbytes({BYTES}))
"""
# The job: argv is the database, the number of workers, `early` or `late`, and what it reads with: a
# transaction's get, or a cursor.
JOB = f"""
import hashlib, os, sys
import lmdb, torch
from torch.utils.data import DataLoader, Dataset

path, workers, when, how = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]

class Records(Dataset):
    def __init__(self):
        self.env = None
        if when == "early":
            self.open()
    def open(self):
        self.env = lmdb.open(path, readonly=True, lock=False, readahead=False)
    def __len__(self):
        return {COUNT}
    def __getitem__(self, index):
        if self.env is None:
            self.open()
        with self.env.begin() as txn:
            # What a job computes: without it a busy machine decides which is first.
            hashlib.sha256(bytes(4 << 20)).digest()
            key = b"%08d" % index
            if how == "get":
                return index, hashlib.sha256(txn.get(key)).hexdigest()
            with txn.cursor() as cursor:
                assert cursor.set_key(key)
                return index, hashlib.sha256(cursor.value()).hexdigest()

def drop():
    handle = os.open(path + "/data.mdb", os.O_RDONLY)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)

torch.manual_seed(11)
loader = DataLoader(Records(), batch_size=16, shuffle=True, num_workers=workers,
                    collate_fn=list)
whole = hashlib.sha256()
for epoch in range(3):
    drop()
    for batch in loader:
        whole.update(repr(batch).encode())
    print(epoch, whole.hexdigest(), flush=True)
print(hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest())
"""


def figures(place, argv, **settings):
    report = os.path.join(place.work, "report.json")
    done = place.run(argv, timeout=120, SLUICE_REPORT=report, SLUICE_CHECKPOINT=None,
                     SLUICE_DISTANCE=None, SLUICE_DATASET=None, **settings)
    with open(report, encoding="utf-8") as text:
        found = json.load(text)
    os.unlink(report)
    return done, found


def check(place, folder, workers, when, how):
    argv = [sys.executable, "-c", JOB, folder, str(workers), when, how]
    what = f"{workers} workers, opened {when}, by {how}"
    plain = place.run(argv, library=None, timeout=120)
    claim(plain.returncode == 0, plain.stderr)
    under, found = figures(place, argv)
    harness.same(plain, under, what)
    begun = {name: found[name] for name in ("sample_hits", "sample_late", "sample_misses")}
    # Two epochs after the one that was watched. How many come late is the machine's affair.
    known = sum(begun.values())
    begun["off"] = found["records_off"]  # what explains misses (harm_watch.h)
    harness.in_time(known >= 1.9 * COUNT, f"{what}: places of {known} samples were known: {begun}")
    harness.in_time(begun["sample_misses"] < 0.2 * known, f"{what}: {begun}")
    harness.in_time(begun["sample_hits"] > 0, f"{what}: {begun}")
    under, found = figures(place, argv, SLUICE_PYTHON="off")
    harness.same(plain, under, what + ", adapter off")
    claim(found["sample_hits"] == found["sample_misses"] == 0, f"{what}: adapter off: {found}")


def test(place):
    folder = os.path.join(place.work, "db")
    done = place.run([sys.executable, "-c", MAKE, folder], library=None)
    claim(done.returncode == 0, done.stderr)
    cases = (2, "early", "get"), (2, "late", "cursor"), (0, "early", "get")
    for workers, when, how in harness.in_turn(cases, 2):
        harness.repeated(place, check, place, folder, workers, when, how)


if __name__ == "__main__":
    harness.main(test)
