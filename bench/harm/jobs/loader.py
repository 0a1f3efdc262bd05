"""loader.py DATA SCRATCH EPOCHS KIND WORKERS: a shuffled PyTorch loader over one kind of dataset, written as
such datasets are: containers are opened once in each worker, files for each sample."""
import hashlib
import io
import os
import random
import sqlite3
import sys
import tarfile

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from job import Job


class Files(Dataset):
    """As ImageFolder: (path, class) of each sample."""

    def __init__(self, root, decode):
        self.samples = [(os.path.join(root, name, file), label)
                        for label, name in enumerate(sorted(os.listdir(root)))
                        for file in sorted(os.listdir(os.path.join(root, name)))]
        self.decode = decode

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        return self.decode(path), label


class Hdf5(Dataset):
    def __init__(self, root):
        import h5py
        self.path, self.file = os.path.join(root, "samples.h5"), None
        with h5py.File(self.path, "r") as file:
            self.count = len(file["samples"])

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        import h5py
        if self.file is None:
            self.file = h5py.File(self.path, "r")
        return self.file["samples"][index].tobytes(), index


class Sqlite(Dataset):
    def __init__(self, root):
        self.path, self.connection = os.path.join(root, "samples.db"), None
        self.count = self.connect().execute("select count(*) from samples").fetchone()[0]

    def __len__(self):
        return self.count

    def connect(self):
        return sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)

    def __getitem__(self, index):
        if self.connection is None:
            self.connection = self.connect()
        return self.connection.execute("select content from samples where id = ?",
                                       (index,)).fetchone()[0], index


class Lmdb(Dataset):
    def __init__(self, root):
        import lmdb
        self.root, self.environment, self.keys = root, None, None
        with lmdb.open(root, readonly=True, lock=False) as environment, environment.begin() as txn:
            self.keys = [bytes(key) for key in txn.cursor().iternext(values=False)]

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, index):
        import lmdb
        if self.environment is None:
            self.environment = lmdb.open(self.root, readonly=True, lock=False, readahead=False)
        with self.environment.begin() as transaction:
            return transaction.get(self.keys[index]), index


class Shards(IterableDataset):
    """As webdataset: shards in a random order, each worker its share of them, read as streams."""

    def __init__(self, root):
        self.paths, self.epoch = [os.path.join(root, name) for name in sorted(os.listdir(root))], 0

    def __iter__(self):
        paths = list(self.paths)
        random.Random(self.epoch).shuffle(paths)
        worker = get_worker_info()
        for path in paths[worker.id::worker.num_workers] if worker else paths:
            with open(path, "rb") as file, tarfile.open(fileobj=file, mode="r|") as shard:
                for entry in shard:
                    yield shard.extractfile(entry).read(), 0


def read(path):
    with open(path, "rb") as file:
        return file.read()


def load_array(path):
    import numpy
    return numpy.load(path).tobytes()


def decode_picture(path):
    from PIL import Image
    with open(path, "rb") as file:
        return Image.open(io.BytesIO(file.read())).convert("RGB").resize((32, 32)).tobytes()


KINDS = {"hdf5": Hdf5, "sqlite": Sqlite, "lmdb": Lmdb, "tar": Shards,
         "npy": lambda root: Files(root, load_array), "pil": lambda root: Files(root, decode_picture),
         "small": lambda root: Files(root, read)}


def collate(batch):
    return [(hashlib.sha256(content).digest(), label) for content, label in batch]


def main():
    folder, epochs, kind, workers = sys.argv[1], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
    torch.manual_seed(3)
    torch.set_num_threads(1)
    dataset = KINDS[kind](folder)
    loader = DataLoader(dataset, batch_size=16, shuffle=None if kind == "tar" else True,
                        num_workers=workers, collate_fn=collate)
    job = Job()
    for number in range(epochs):
        dataset.epoch = number
        with job.epoch():
            for batch in loader:
                job.see(batch)
    job.end()


if __name__ == "__main__":
    main()
