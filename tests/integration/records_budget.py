#!/usr/bin/python3
# test: timeout=300 turns
"""Records of a file that does not fit the job's memory: what they leave in the page cache is bounded,
also where workers map them, and a share of them is there in the next epoch. The job sees its own
bytes in its own order."""
import ctypes
import json
import mmap
import os
import sys

import harness
from harness import claim

COUNT, BYTES, EPOCHS = 600, 40000, 4
BUDGET = 7 << 20
ATTEMPTS = 3
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
MAKE = f"""
import lmdb, numpy, sys
folder = sys.argv[1]
rows = numpy.random.default_rng(3).integers(0, 255, ({COUNT}, {BYTES}), dtype="uint8")
numpy.save(folder + "/rows.npy", rows)
rows.tofile(folder + "/rows.bin")
with lmdb.open(folder + "/db", map_size=1 << 30) as env, env.begin(write=True) as txn:
    for i in range({COUNT}):
        txn.put(b"%08d" % i, rows[i].tobytes())
"""
# argv: the folder, workers, and the kind of dataset.
JOB = f"""
import hashlib, os, sys
import lmdb, numpy, torch
from torch.utils.data import DataLoader, Dataset

folder, workers, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]

class Records(Dataset):
    values = None
    def __len__(self):
        return {COUNT}
    def __getitem__(self, index):
        # What a job computes: without it a busy machine decides which is first.
        hashlib.sha256(bytes(4 << 20)).digest()
        return index, hashlib.sha256(self.read(index)).hexdigest()
    def read(self, index):
        if kind == "mapped":
            self.values = numpy.load(folder + "/rows.npy", mmap_mode="r")
            return self.values[index]
        if kind == "read":
            self.values = self.values or os.open(folder + "/rows.bin", os.O_RDONLY)
            return os.pread(self.values, {BYTES}, index * {BYTES})
        self.values = self.values or lmdb.open(folder + "/db", readonly=True, lock=False, readahead=False)
        if kind == "cursors":  # many records a sample, some of them in other samples too
            with self.values.begin() as txn, txn.cursor() as cursor:
                cursor.set_key(b"%08d" % index)
                rows = [value for value, _ in zip(cursor.iternext(keys=False), range(12))]
                return rows[0] + b"".join(row[:100] for row in rows)
        with self.values.begin() as txn:
            return txn.get(b"%08d" % index)

torch.manual_seed(11)
loader = DataLoader(Records(), batch_size=16, shuffle=True, num_workers=workers, collate_fn=list)
whole = hashlib.sha256()
for epoch in range({EPOCHS}):
    for batch in loader:
        whole.update(repr(batch).encode())
    print(epoch, whole.hexdigest(), flush=True)
"""
FILES = {"lmdb": "db/data.mdb", "cursors": "db/data.mdb", "mapped": "rows.npy", "read": "rows.bin"}


def drop(path):
    with open(path, "r+b") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cached(path):
    """Bytes of the file in the page cache."""
    length = os.path.getsize(path)
    pages = (ctypes.c_ubyte * ((length + 4095) // 4096))()
    with open(path, "rb") as file:
        at = LIBC.mmap(None, ctypes.c_size_t(length), mmap.PROT_READ, mmap.MAP_SHARED,
                       file.fileno(), ctypes.c_long(0))
    claim(at not in (None, ctypes.c_void_p(-1).value), "mmap")
    claim(LIBC.mincore(ctypes.c_void_p(at), ctypes.c_size_t(length), pages) == 0, "mincore")
    LIBC.munmap(ctypes.c_void_p(at), ctypes.c_size_t(length))
    return sum(page & 1 for page in pages) * 4096


def reported(place, argv, plain, path, what, **settings):
    """Of a run that does what the plain one did: its report, without what it was like over time."""
    drop(path)
    claim(cached(path) < BUDGET // 8, f"{what}: this machine does not drop")
    report = os.path.join(place.work, "report.json")
    under = place.run(argv, timeout=120, SLUICE_REPORT=report, SLUICE_DISTANCE=None, **settings)
    harness.same(plain, under, what)
    with open(report, encoding="utf-8") as text:
        return {name: value for name, value in json.load(text).items() if name not in ("history", "epochs")}


def test(place):
    folder = os.path.join(place.work, "data")
    done = place.run([sys.executable, "-c", MAKE, folder], library=None)
    claim(done.returncode == 0, done.stderr)
    cases = (("lmdb", 2, None), ("read", 2, None), ("mapped", 2, None), ("lmdb", 0, "observe"),
             ("cursors", 2, None))
    for kind, workers, checkpoint in harness.in_turn(cases, 3):
        what = f"{kind}, {workers} workers, checkpoint {checkpoint}"
        path = os.path.join(folder, FILES[kind])
        argv = [sys.executable, "-c", JOB, folder, str(workers), kind]
        plain = place.run(argv, library=None, timeout=120)
        claim(plain.returncode == 0, plain.stderr)
        for budget in [None, str(BUDGET)] if kind == "lmdb" else [str(BUDGET)]:
            # Who comes first, a reader or the prefetch of its sample, is the scheduler's to say on a busy machine.
            for attempt in range(ATTEMPTS):
                found = reported(place, argv, plain, path, f"{what}, memory {budget}", SLUICE_CHECKPOINT=checkpoint,
                                 SLUICE_DATASET=folder, SLUICE_MEMORY=budget)
                known = sum(found[name] for name in ("sample_hits", "sample_late", "sample_misses"))
                if budget is None or (known > (EPOCHS - 1.1) * COUNT and found["sample_misses"] < 0.2 * known):
                    break
            if budget is None:
                claim(found["dropped_bytes"] == 0, f"{what}: dropped without a budget: {found}")
                continue
            claim(found["dropped_bytes"] > COUNT * BYTES, f"{what}: hardly anything dropped: {found}")
            # What the last samples left may still be on its way out, and what lies between samples is
            # no sample's: LMDB's own pages, and what the kernel reads around a page of a mapping that
            # was not there, which may be megabytes.
            if kind != "mapped":
                harness.until(lambda: cached(path) < BUDGET * 2, 10,
                              f"{what}: no more than {BUDGET} bytes, of {os.path.getsize(path)}")
            claim(known > (EPOCHS - 1.1) * COUNT and found["sample_misses"] < 0.2 * known,
                  f"{what}, {attempt + 1} times: {found}")
            claim(found["kept_bytes"] > COUNT * BYTES // 16,
                  f"{what}: nothing was read again from memory: {found}")


if __name__ == "__main__":
    harness.main(test)
