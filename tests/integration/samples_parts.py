#!/usr/bin/python3
# test: timeout=300 turns
"""Samples that are parts of files other than LMDBs: rows of mapped arrays, which the dataset says
itself, so that the first epoch is known; what is read with pread from a file of records, where all
follows from a few samples; and HDF5, whose library reads ahead, which is learned in the first epoch."""
import json
import os
import sys

import harness
from harness import claim

COUNT, FLOATS, EPOCHS = 400, 5000, 3
MAKE = f"""
import numpy, sys
folder = sys.argv[1]
rows = numpy.random.default_rng(3).random(({COUNT}, {FLOATS}), dtype="float32")
numpy.save(folder + "/rows.npy", rows)
numpy.save(folder + "/half.npy", rows[:{COUNT // 2}])
numpy.save(folder + "/labels.npy", numpy.arange({COUNT}))
rows.tofile(folder + "/rows.bin")
try:
    import h5py
except ImportError:
    sys.exit()
with h5py.File(folder + "/rows.h5", "w") as file:
    file["whole"] = rows
    file.create_dataset("chunks", data=rows, chunks=(1, {FLOATS}))
"""
# argv: the folder, workers, and the kind of dataset.
JOB = f"""
import hashlib, os, sys
import numpy, torch
from torch.utils import data

folder, workers, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]

def load(name):
    return numpy.load(folder + "/" + name, mmap_mode="r")

class Rows(data.Dataset):
    def __init__(self, name):
        self.rows, self.labels = load(name), load("labels.npy")[:len(load(name))]
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, index):
        hashlib.sha256(bytes(4 << 20)).digest()  # what a job computes
        return torch.from_numpy(self.rows[index].copy()), int(self.labels[index])

class Read(data.Dataset):
    file = None
    def __len__(self):
        return {COUNT}
    def __getitem__(self, index):
        hashlib.sha256(bytes(4 << 20)).digest()
        if kind == "pread":
            if self.file is None:
                self.file = os.open(folder + "/rows.bin", os.O_RDONLY)
            value = os.pread(self.file, {4 * FLOATS}, {4 * FLOATS} * index)
            return torch.frombuffer(bytearray(value), dtype=torch.float32), index
        if self.file is None:
            import h5py
            self.file = h5py.File(folder + "/rows.h5", "r")
        return torch.from_numpy(self.file[kind][index]), index

if kind == "memmap":
    dataset = Rows("rows.npy")
elif kind == "tensors":
    dataset = data.TensorDataset(torch.from_numpy(load("rows.npy")), torch.arange({COUNT}))
elif kind == "subset":
    dataset = data.Subset(data.Subset(Rows("rows.npy"), range({COUNT} - 1, -1, -1)), range({COUNT}))
elif kind == "joined":
    dataset = data.ConcatDataset([Rows("half.npy"), Rows("half.npy")])
elif kind == "shuffled":
    # Columns of one piece, rows of many: no row can be located.
    dataset = Rows("rows.npy")
    dataset.rows = dataset.rows.reshape(-1, {COUNT}).T
else:
    dataset = Read()

def drop():
    for name in os.listdir(folder):
        handle = os.open(folder + "/" + name, os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)

torch.manual_seed(5)
loader = data.DataLoader(dataset, batch_size=16, shuffle=True, num_workers=workers)
whole = hashlib.sha256()
for epoch in range({EPOCHS}):
    drop()
    for rows, labels in loader:
        whole.update(rows.numpy().tobytes() + labels.numpy().tobytes())
    print(epoch, whole.hexdigest(), flush=True)
print(hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest())
"""


def known(place, folder, kind, workers, checkpoint=None):
    """Samples of which it was known where they are when they were begun, in epochs."""
    argv = [sys.executable, "-W", "ignore", "-c", JOB, folder, str(workers), kind]
    plain = place.run(argv, library=None, timeout=100)
    claim(plain.returncode == 0, plain.stderr)
    report = os.path.join(place.work, "report.json")
    under = place.run(argv, timeout=100, SLUICE_REPORT=report, SLUICE_CHECKPOINT=checkpoint,
                      SLUICE_DISTANCE=None, SLUICE_DATASET=folder, SLUICE_PLACES="off")
    what = f"{kind} with {workers} workers"
    harness.same(plain, under, what)
    # The next job shall not find what this one learned.
    harness.drive.end_optimizer(place.sockets)
    with open(report, encoding="utf-8") as text:
        found = json.load(text)
    os.unlink(report)
    begun = sum(found["sample_" + word] for word in ("hits", "late", "misses"))
    print(f"{what}: {begun / COUNT:.2f} epochs known, {found['sample_hits']} hits")
    harness.in_time(kind == "shuffled" or found["sample_hits"] > 0, f"{what}: nothing was in memory in time")
    return begun / COUNT


def declared(place, folder, kind, workers):
    # An event may be lost where the machine is very busy.
    harness.in_time(known(place, folder, kind, workers) > 0.98 * EPOCHS, f"{kind}: places not known")


def learned(place, folder, kind):
    found = known(place, folder, kind, 2)
    claim(found < EPOCHS, f"{kind}: {found} epochs")
    harness.in_time(found > EPOCHS - (0.5 if kind == "pread" else 1.2), f"{kind}: {found} epochs")


def test(place):
    harness.need_modules("torch, numpy")
    folder = os.path.join(place.work, "set")
    os.mkdir(folder)
    done = place.run([sys.executable, "-c", MAKE, folder], library=None)
    claim(done.returncode == 0, done.stderr)
    located = [(kind, workers) for workers in (0, 2) for kind in ("memmap", "tensors", "subset", "joined")]
    for kind, workers in harness.in_turn(located, 3):
        harness.repeated(place, declared, place, folder, kind, workers)
    # What is declared, not what is seen.
    claim(known(place, folder, "shuffled", 0, "off") == 0, "shuffled: wrong places were declared")
    kinds = ["pread"] + (["whole", "chunks"] if os.path.exists(folder + "/rows.h5") else [])
    for kind in harness.in_turn(kinds, 1):
        harness.repeated(place, learned, place, folder, kind)


if __name__ == "__main__":
    harness.main(test)
