"""The first epoch over a dataset in one of the formats that training data come in: read_dataset.py KIND FOLDER. Each
kind is read as its own package's documents show it, by PyTorch's loader with WORKERS processes."""
import glob
import os
import struct
import sys

import numpy
import torch
from timed import Load
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

WORKERS, BATCH = 4, 32
kind, folder = sys.argv[1:]


def summed(data):
    """Size and sum of a sample's bytes."""
    words = numpy.frombuffer(data, numpy.uint8) if isinstance(data, (bytes, memoryview)) else data.reshape(-1)
    return words.nbytes, int(words.view(numpy.int64).sum(dtype=numpy.int64))


def files(pattern):
    return sorted(glob.glob(os.path.join(folder, pattern)))


def tar():
    import webdataset
    shards = webdataset.WebDataset(files("*.tar"), shardshuffle=100, seed=3, empty_check=False)
    return shards.to_tuple("bin").map(lambda one: summed(one[0])).batched(BATCH), {"batch_size": None}


def records(path):
    """Those of a file of TFRecord, as the package `tfrecord` reads it: it asks for its offset before each record."""
    end = os.path.getsize(path)
    with open(path, "rb") as file:
        while file.tell() < end:
            length, _ = struct.unpack("<QI", file.read(12))
            yield file.read(length)
            file.read(4)


class Records(IterableDataset):
    """Shards of TFRecord, shuffled, each worker its own."""

    def __iter__(self):
        shards = files("*.tfrecord")
        order = torch.randperm(len(shards), generator=torch.Generator().manual_seed(3)).tolist()
        worker = get_worker_info()
        for at in order[worker.id::worker.num_workers]:
            yield from map(summed, records(shards[at]))


class RowGroups(IterableDataset):
    """Row groups of Parquet files, each worker its own: in the files' order, or shuffled."""

    def __init__(self, shuffle):
        self.shuffle = shuffle

    def __iter__(self):
        import pyarrow.parquet
        opened = [pyarrow.parquet.ParquetFile(path) for path in files("*.parquet")]
        groups = [(file, number) for file in opened for number in range(file.num_row_groups)]
        if self.shuffle:
            order = torch.randperm(len(groups), generator=torch.Generator().manual_seed(3)).tolist()
            groups = [groups[at] for at in order]
        worker = get_worker_info()
        for file, number in groups[worker.id::worker.num_workers]:
            for image in file.read_row_group(number, columns=["image"]).column("image"):
                yield summed(image.as_buffer().to_pybytes())


class Arrow(Dataset):
    """Hugging Face's datasets: mapped Arrow files, of which PyTorch's sampler picks rows."""

    def __init__(self):
        import datasets
        self.rows = datasets.load_from_disk(folder)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return summed(self.rows[index]["image"])


class Hdf5(Dataset):
    """A chunk of an HDF5 dataset for each sample; the file is opened in the worker, as h5py's users do."""

    file = None

    def __init__(self):
        import h5py
        with h5py.File(files("*.h5")[0], "r") as file:
            self.length = len(file["images"])

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        import h5py
        if self.file is None:
            self.file = h5py.File(files("*.h5")[0], "r")
        return summed(self.file["images"][index])


class Zarr(Dataset):
    """A chunk of a Zarr array, a file, for each sample."""

    def __init__(self):
        import zarr
        self.array = zarr.open_array(files("*.zarr")[0], mode="r")

    def __len__(self):
        return self.array.shape[0]

    def __getitem__(self, index):
        return summed(numpy.ascontiguousarray(self.array[index]))


class Lmdb(Dataset):
    """Records of the lmdb package, which has an LMDB of its own inside."""

    transaction = None

    def __init__(self):
        import lmdb
        with lmdb.open(folder, readonly=True, lock=False) as environment:
            self.length = environment.stat()["entries"]

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        import lmdb
        if self.transaction is None:
            self.transaction = lmdb.open(folder, readonly=True, lock=False, readahead=False).begin(buffers=True)
        return summed(self.transaction.get(f"{index:08d}".encode()))


SHUFFLED = {"arrow": Arrow, "hdf5": Hdf5, "zarr": Zarr, "lmdb": Lmdb}
torch.set_num_threads(1)
torch.manual_seed(3)
if kind in SHUFFLED:
    dataset, how = SHUFFLED[kind](), {"batch_size": BATCH, "shuffle": True}
elif kind == "tar":
    dataset, how = tar()
else:
    dataset, how = Records() if kind == "tfrecord" else RowGroups(kind == "parquet-shuffled"), {"batch_size": BATCH}
loader = DataLoader(dataset, num_workers=WORKERS, **how)
load = Load()
for batch in loader:
    sizes, sums = batch if len(batch) == 2 else zip(*batch)
    load.add(sum(map(int, sizes)), sum(map(int, sums)))
load.end()
