"""Makes one dataset of random samples in the formats that training data come in: make_datasets.py FOLDER COUNT KIND...,
each kind (KINDS) in a folder of its name. A sample is SIDE x SIDE x 3 bytes, 130 KB."""
import io
import os
import struct
import sys
import tarfile
import tempfile

import numpy

folder, count, kinds = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
SIDE = 208
SHARD = 200  # samples in a shard: 26 MB
PARQUET_FILES, ROW_GROUP = 8, 20  # a row group is 2.6 MB


def samples():
    draw = numpy.random.default_rng(13)
    for _ in range(count):
        yield draw.integers(0, 256, (SIDE, SIDE, 3), dtype=numpy.uint8)


def shards(size):
    """Numbers of shards, and the samples of each."""
    shard, number = [], 0
    for sample in samples():
        shard.append(sample)
        if len(shard) == size:
            yield number, shard
            shard, number = [], number + 1
    if shard:
        yield number, shard


def write_tar(place):
    for number, shard in shards(SHARD):
        with tarfile.open(os.path.join(place, f"train-{number:06d}.tar"), "w", format=tarfile.USTAR_FORMAT) as tar:
            for at, sample in enumerate(shard):
                for suffix, data in (("bin", sample.tobytes()), ("cls", str(at % 10).encode())):
                    entry = tarfile.TarInfo(f"{number * SHARD + at:08d}.{suffix}")
                    entry.size = len(data)
                    tar.addfile(entry, io.BytesIO(data))


def write_tfrecord(place):
    """A record is its length, a checksum of that, the data and their checksum: readers leave checksums unchecked."""
    for number, shard in shards(SHARD):
        with open(os.path.join(place, f"train-{number:05d}.tfrecord"), "wb") as file:
            for sample in shard:
                file.write(struct.pack("<QI", sample.nbytes, 0) + sample.tobytes() + bytes(4))


def write_parquet(place):
    import pyarrow
    import pyarrow.parquet
    for number, shard in shards((count + PARQUET_FILES - 1) // PARQUET_FILES):
        table = pyarrow.table({"image": [sample.tobytes() for sample in shard],
                               "label": [at % 10 for at in range(len(shard))]})
        pyarrow.parquet.write_table(table, os.path.join(place, f"train-{number:05d}.parquet"), row_group_size=ROW_GROUP,
                                    compression="none", use_dictionary=False)


def write_arrow(place):
    import datasets
    features = datasets.Features({"image": datasets.Value("binary"), "label": datasets.Value("int64")})
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        whole = datasets.Dataset.from_generator(
            lambda: ({"image": sample.tobytes(), "label": number % 10} for number, sample in enumerate(samples())),
            features=features, cache_dir=scratch)
        whole.save_to_disk(place, max_shard_size="500MB")


def write_hdf5(place):
    import h5py
    with h5py.File(os.path.join(place, "train.h5"), "w") as file:
        images = file.create_dataset("images", (count, SIDE, SIDE, 3), numpy.uint8, chunks=(1, SIDE, SIDE, 3))
        for number, sample in enumerate(samples()):
            images[number] = sample
        file["labels"] = numpy.arange(count) % 10


def write_zarr(place):
    import zarr
    size = SIDE * SIDE * 3
    array = zarr.create_array(os.path.join(place, "train.zarr"), shape=(count, size), dtype="uint8", chunks=(1, size),
                              compressors=None)
    for number, sample in enumerate(samples()):
        array[number] = sample.reshape(-1)


def write_lmdb(place):
    import lmdb
    with lmdb.open(place, map_size=4 * count * SIDE * SIDE * 3 + (64 << 20)) as environment:
        with environment.begin(write=True) as transaction:
            for number, sample in enumerate(samples()):
                transaction.put(f"{number:08d}".encode(), sample.tobytes())
    os.unlink(os.path.join(place, "lock.mdb"))


KINDS = {"tar": write_tar, "tfrecord": write_tfrecord, "parquet": write_parquet, "arrow": write_arrow,
         "hdf5": write_hdf5, "zarr": write_zarr, "lmdb": write_lmdb}
for kind in kinds:
    os.makedirs(os.path.join(folder, kind))
    KINDS[kind](os.path.join(folder, kind))
