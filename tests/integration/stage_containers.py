#!/usr/bin/python3
# test: timeout=300
"""Files that hold many samples (HDF5, SQLite, an archive) are not copied: open over many samples, locked,
or read in part. A job over one asks the storage for as much as it would without Sluice. What is read whole by
many samples, and small, is copied as before."""
import os
import random
import sqlite3
import sys

import harness
import stage_testing
from harness import claim
from stage_testing import Ground

COUNT, EPOCHS, RECORD = 256, 3, 32 << 10
STRIDE = 6 * RECORD  # most of a container is not read at all
SLACK = 1.1  # of what the plain job asks for: the kernel's read-ahead is not the same each time
JOB = f"""
import fcntl, hashlib, os, sqlite3, sys
import torch
from torch.utils.data import DataLoader, Dataset

path, kind = sys.argv[1:]

class Container(Dataset):
    file = None
    def __len__(self):
        return {COUNT}
    def opened(self):
        if kind == "sqlite":
            return sqlite3.connect("file:" + path + "?mode=ro", uri=True)
        file = os.open(path, os.O_RDONLY)
        if kind == "hdf5":
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return file
    def __getitem__(self, index):
        if kind == "each":
            with open(path, "rb", buffering=0) as file:
                file.seek(index * {STRIDE})
                return index, hashlib.sha256(file.read({RECORD})).hexdigest()
        if self.file is None:
            self.file = self.opened()
        if kind == "sqlite":
            data, = self.file.execute("select data from records where id = ?", (index,)).fetchone()
        elif kind == "seek":
            os.lseek(self.file, index * {STRIDE}, os.SEEK_SET)
            data = os.read(self.file, {RECORD})
        else:
            data = os.pread(self.file, {RECORD}, index * {STRIDE})
        return index, hashlib.sha256(data).hexdigest()

torch.manual_seed(5)
loader = DataLoader(Container(), batch_size=8, shuffle=True, num_workers=2, collate_fn=list)
whole = hashlib.sha256()
for epoch in range({EPOCHS}):
    for batch in loader:
        whole.update(repr(batch).encode())
    print(epoch, whole.hexdigest(), flush=True)
"""


def make(folder):
    draw = random.Random(9)
    records = [draw.randbytes(RECORD) for _ in range(COUNT)]
    os.makedirs(folder)
    with open(os.path.join(folder, "records"), "wb") as file:
        file.write(b"".join(record + bytes(STRIDE - RECORD) for record in records))
    base = sqlite3.connect(os.path.join(folder, "base"))
    base.execute("create table records (id integer primary key, data blob)")
    base.executemany("insert into records values (?, ?)", enumerate(records))
    base.commit()
    base.close()


def asked_for(place, library, kind):
    """What the mount gave out for the job, its optimizer included, bytes; and the job's outcome."""
    with Ground(place, kind, 2, "--bandwidth", 400) as ground:
        make(os.path.join(ground.source, "data"))
        path = os.path.join(ground.folder(), "base" if kind == "sqlite" else "records")
        argv = [sys.executable, "-W", "ignore", "-c", JOB, path, kind]
        settings = {**stage_testing.SETTINGS, "SLUICE_STAGE": None, "SLUICE_STALE": None, "SLUICE_MEMORY": None}
        done = place.run(argv, library=library, timeout=100, **settings)
        claim(done.returncode == 0, done.stderr)
        harness.drive.end_optimizer(place.sockets)
        totals = ground.mount.stats()["totals"]
        return totals["read_bytes"], done


def test(place):
    harness.need_modules("torch")
    stage_testing.need_slow_mounts()
    worse = []
    for kind in sys.argv[1:] or ("hdf5", "sqlite", "seek", "each"):
        plain, native = asked_for(place, None, kind)
        under, done = asked_for(place, harness.LIBRARY, kind)
        harness.same(native, done, kind)
        print(f"{kind}: the storage gave {plain / 1e6:.1f} MB, {under / 1e6:.1f} MB under Sluice, "
              f"{native.seconds:.1f} and {done.seconds:.1f} s", flush=True)
        if under > SLACK * plain:
            worse.append(kind)
    claim(not worse, f"read more than once for {' and '.join(worse)}")


if __name__ == "__main__":
    harness.main(test)
