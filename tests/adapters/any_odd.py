"""Datasets of image files that are a trap for guesses: code that must not run, lists that come later or that name
other files, several files to a sample. The files are those of bench/formats/make_files.py; the job is in their folder."""
import os
import pathlib
import random

import torch
from torch.utils.data import ConcatDataset, Dataset, Subset


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    return len(data), sum(data[::64])


class Files(Dataset):
    """Reads what `paths` gives for a sample."""

    def __init__(self, **stored):
        self.__dict__.update(stored)

    def __len__(self):
        return 300

    def __getitem__(self, index):
        found = [read(path) for path in self.paths(index)]
        return sum(size for size, _ in found), sum(value for _, value in found), index


class Pathlib(Files):
    def paths(self, index):
        return [self.items[index]]


class Bytes(Files):
    def paths(self, index):
        return [os.path.join(self.above, self.items[index][1])]


class Asked(Files):
    """Counts what is asked of it; the count is in its samples."""
    count = 0

    @property
    def files(self):
        self.__dict__["count"] = self.count + 1
        return self._names

    @property
    def root(self):
        self.__dict__["count"] = self.count + 100
        raise OSError("no root")

    def __getattr__(self, name):
        if name in ("items", "list", "samples", "imgs", "paths_of"):
            self.__dict__["count"] = self.__dict__.get("count", 0) + 10_000
            return ["/etc/passwd"] * 300
        raise AttributeError(name)

    def __getitem__(self, index):
        size, value, _ = super().__getitem__(index)
        counted, self.__dict__["count"] = self.count, 0
        return size, value, counted

    def paths(self, index):
        return [os.path.join("images", self.files[index])]


class Lazy(Files):
    """The list is made by the first reader."""
    names = None

    def paths(self, index):
        if self.names is None:
            self.names = sorted(os.listdir("images"))
        return [os.path.join("images", self.names[index])]


class Masked(Files):
    def paths(self, index):
        return [self.images[index], f"numbered/{index:06d}.bmp"]


class Augmented(Files):
    """A transform opens another file, as the generators say."""

    def paths(self, index):
        drawn = (torch.randint(300, ()).item() + random.randrange(300)) % 300
        return [self.images[index], self.images[drawn]]


class Shared(Files):
    def paths(self, index):
        return [self.images[index // 10]]


class Decoys(Files):
    """Its list of files that exist is of others than it reads."""

    def paths(self, index):
        return [f"numbered/{(index * 7 + 3) % 300:06d}.bmp"]


class Closing(Files):
    """Says when it goes away."""

    def paths(self, index):
        return [self.images[index]]

    def __del__(self):
        os.write(1, b"gone\n") if os.getpid() == self.owner else None


def names():
    return sorted(os.listdir("images"))


def images():
    return [os.path.abspath(os.path.join("images", name)) for name in names()]


def joined():
    whole = Closing(images=images(), owner=-1)
    backwards = Subset(Subset(whole, list(range(50, 250))), list(range(199, -1, -1)))
    return ConcatDataset([Subset(whole, range(-1, -101, -1)), backwards])


KINDS = {
    "pathlib": lambda: Pathlib(items=[pathlib.Path("images") / name for name in names()]),
    "bytes": lambda: Bytes(items=[(number, os.fsencode(name)) for number, name in enumerate(names())], above=b"./images"),
    "asked": lambda: Asked(_names=names()), "lazy": Lazy, "masked": lambda: Masked(images=images()),
    "augmented": lambda: Augmented(images=images()), "shared": lambda: Shared(images=images()),
    "decoys": lambda: Decoys(images=images()), "closing": lambda: Closing(images=images(), owner=os.getpid()),
    "joined": joined}
