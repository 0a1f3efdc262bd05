"""A PyTorch DataLoader over LMDB or numpy.memmap: torch_loader.py ... lmdb|memmap WORKERS"""
import hashlib
import sys

import lmdb
import numpy
import torch
from torch.utils.data import DataLoader, Dataset

kind, workers = sys.argv[4], int(sys.argv[5])
torch.set_num_threads(1)
torch.manual_seed(7)


class Lmdb(Dataset):
    """Opens its environment in the process that reads, as people do."""

    def __init__(self):
        self.env = None

    def __len__(self):
        return 600

    def __getitem__(self, i):
        if self.env is None:
            self.env = lmdb.open(sys.argv[3], readonly=True, lock=False, readahead=False)
        with self.env.begin() as txn:
            value = txn.get(b"%08d" % i)
        return torch.frombuffer(bytearray(value[:20000]), dtype=torch.uint8), len(value)


class Memmap(Dataset):
    """Maps before the workers are forked and is read after."""

    def __init__(self):
        self.map = numpy.memmap(sys.argv[1], dtype=numpy.uint8, mode="r")

    def __len__(self):
        return 600

    def __getitem__(self, i):
        return torch.from_numpy(numpy.array(self.map[i * 20000:(i + 1) * 20000])), i


data = Lmdb() if kind == "lmdb" else Memmap()
loader = DataLoader(data, batch_size=16, shuffle=True, num_workers=workers)
for epoch in range(2):
    digest = hashlib.sha256()
    for batch, other in loader:
        digest.update(batch.numpy().tobytes())
        digest.update(other.numpy().tobytes())
    print(epoch, digest.hexdigest())
