"""files.py DATA SCRATCH EPOCHS KIND: reads all of a folder in one thread, newly shuffled each epoch, as
scripts without a loader do."""
import csv
import io
import json
import mmap
import os
import pickle
import random
import sys
import zipfile
import zlib

from job import Job


def below(folder):
    return sorted(os.path.join(above, name) for above, _, names in os.walk(folder) for name in names)


def read_pickle(path):
    with open(path, "rb") as file:
        return sorted(pickle.load(file).items())


def read_small(path):
    with open(path, "rb") as file:
        return file.read()


def read_lines(path):
    total = 0
    with open(path, encoding="utf-8") as text:
        for line in text:
            total += json.loads(line)["value"]
    return total


def read_csv(path):
    import pandas
    out = io.StringIO()
    pandas.read_csv(path).describe().to_csv(out)
    return list(csv.reader(out.getvalue().splitlines()))


def read_torch(path):
    import torch
    return [(name, float(value.double().sum())) for name, value in torch.load(path).items()]


def whole_files(read):
    def epoch(job, folder, draw):
        paths = below(folder)
        draw.shuffle(paths)
        for path in paths:
            job.see(read(path))
    return epoch


def epoch_zip(job, folder, draw):
    with zipfile.ZipFile(os.path.join(folder, "all.zip")) as archive:
        names = sorted(archive.namelist())
        draw.shuffle(names)
        for name in names:
            job.see(archive.read(name))


def epoch_memmap(job, folder, draw):
    import numpy
    rows = numpy.lib.format.open_memmap(os.path.join(folder, "rows.npy"), mode="r")
    for _ in range(len(rows) // 20):
        batch = sorted(draw.sample(range(len(rows)), 20))
        job.see(float(rows[batch].sum(dtype="float64")))


def parts(name, choose):
    """Of a file of tensors, mapped: the parts that choose(count, draw) gives as (begin, length), in 4 MiB."""
    def epoch(job, folder, draw):
        with open(os.path.join(folder, name), "rb") as file, \
                mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
            start, count = len(memory) % (4 << 20), len(memory) >> 22
            for begin, length in choose(count, draw):
                at = start + int(begin * (4 << 20))
                job.see(zlib.crc32(memory[at:at + int(length * (4 << 20))]))
    return epoch


def rows(count, _):
    return [(number + 0.25, 0.25) for number in range(count)]


def some(count, draw):
    return [(draw.randrange(count * 4) / 4, 0.25) for _ in range(count // 2)]


def beginning(count, _):
    return [(0, count * 0.3)]


EPOCHS = {"rows": parts("model.safetensors", rows), "rows-bin": parts("model.bin", rows),
          "some": parts("model.bin", some), "beginning": parts("model.bin", beginning),
          "pickle": whole_files(read_pickle), "small": whole_files(read_small),
          "lines": whole_files(read_lines), "csv": whole_files(read_csv),
          "torch": whole_files(read_torch), "zip": epoch_zip, "memmap": epoch_memmap}


def main():
    folder, epochs, kind = sys.argv[1], int(sys.argv[3]), sys.argv[4]
    if kind == "torch":
        import torch
        torch.set_num_threads(1)
    elif kind == "csv":
        import pandas  # noqa: F401  not a part of the first epoch
    job, draw = Job(), random.Random(5)
    for _ in range(epochs):
        with job.epoch():
            EPOCHS[kind](job, folder, draw)
    job.end()


if __name__ == "__main__":
    main()
