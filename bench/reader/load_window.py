"""A loader-only PyTorch job over a folder of files, which it reads in one of the ways that leave, or strain,
the window in which copies are given.

load_window.py FOLDER KIND EPOCHS SEED: as load_files.py, which has four workers and batches of 64. KIND:
  ordinary     open and read in __getitem__
  getitems     the same in __getitems__, which PyTorch 2 calls with a batch
  mosaic       the files of three other samples in each __getitem__
  lazy_pil     images that are opened in __getitem__ and decoded in collate_fn
  np_load      np.load, which reads through a dup
  mmap_mode    np.load with mmap_mode
  thread_pool  the files of a sample are read by a pool of threads of __getitem__
  child        a child process reads each file
  h5py         HDF5's library reads each file
  kept_open    a worker leaves the last 64 files open that it has read
"""
import collections
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
import time

import torch
from torch.utils.data import DataLoader

from whole_files import Files, check

WORKERS, BATCH, THREADS, MOST_OPEN = 4, 64, 4, 64


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Reader(Files):
    """Samples whose files are read by `value`."""

    def value(self, index):
        return read(self.samples[index][0])

    def __getitem__(self, index):
        return self.value(index), self.samples[index][1]


class Batches(Reader):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


class Mosaic(Reader):
    def value(self, index):
        others = [(index * 31 + 7 * step) % len(self) for step in range(1, 4)]
        return b"".join(read(self.samples[one][0]) for one in (index, *others))


class LazyImages(Reader):
    def value(self, index):
        from PIL import Image
        return Image.open(self.samples[index][0])


class Arrays(Reader):
    def value(self, index):
        import numpy
        return numpy.load(self.samples[index][0]).tobytes()


class MappedArrays(Reader):
    def value(self, index):
        import numpy
        return numpy.load(self.samples[index][0], mmap_mode="r").tobytes()


class Threads(Reader):
    pool = None

    def value(self, index):
        if self.pool is None:  # in the worker
            self.pool = concurrent.futures.ThreadPoolExecutor(THREADS)
        return self.pool.submit(read, self.samples[index][0]).result()


class Children(Reader):
    def value(self, index):
        return subprocess.run(["/bin/cat", self.samples[index][0]], stdout=subprocess.PIPE, check=True).stdout


class Hdf5(Reader):
    def value(self, index):
        import h5py
        with h5py.File(self.samples[index][0], "r") as file:
            return file["x"][:].tobytes()


class KeptOpen(Reader):
    open_files = None

    def value(self, index):
        if self.open_files is None:
            self.open_files = collections.deque()
        file = open(self.samples[index][0], "rb", buffering=0)
        self.open_files.append(file)
        if len(self.open_files) > MOST_OPEN:
            self.open_files.popleft().close()
        return file.read()


def decode(samples):
    return check([(image.tobytes(), label) for image, label in samples])


KINDS = {"ordinary": Reader, "getitems": Batches, "mosaic": Mosaic, "lazy_pil": LazyImages, "np_load": Arrays,
         "mmap_mode": MappedArrays, "thread_pool": Threads, "child": Children, "h5py": Hdf5,
         "kept_open": KeptOpen}


def main():
    folder, kind, count, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    loader = DataLoader(KINDS[kind](folder), batch_size=BATCH, shuffle=True, num_workers=WORKERS,
                        collate_fn=decode if kind == "lazy_pil" else check)
    passes = []
    for epoch in range(count):
        print(f"ready {epoch}", file=sys.stderr, flush=True)
        sys.stdin.readline()
        digest, size, started = hashlib.sha256(), 0, time.monotonic()
        for batch in loader:
            digest.update(repr(batch).encode())
            size += sum(one[0] for one in batch)
        passes.append({"seconds": time.monotonic() - started, "bytes": size,
                       "digest": digest.hexdigest()[:16]})
    print(json.dumps({"pid": os.getpid(), "passes": passes}))


if __name__ == "__main__":
    main()
