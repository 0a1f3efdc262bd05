#!/usr/bin/python3
# test: timeout=120
"""Where the adapter finds a dataset's files: in whatever its attributes are called and however they hold them, by rules
for numbers and tables; and that it runs no code of the dataset for it. With Debian's PyTorch and with PyTorch 2, where
there is one."""
import collections
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import tracemalloc

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
VENV = os.path.join(TOP, "build", "venv", "bin", "python3")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TOP, "adapters", "pytorch"))
try:
    import torch
    from torch.utils.data import (
        ConcatDataset,
        Subset,
        dataloader,  # noqa: F401  the adapter expects it
    )
except ImportError:
    print("this Python has no PyTorch")
    sys.exit(77)
import numpy  # noqa: E402
from sluice_torch import columns, guesses, learning, rules, tree  # noqa: E402

COUNT = 60
DRAW = random.Random(4)
NAMES = [f"{DRAW.randrange(1 << 40):010x}.png" for _ in range(COUNT)]
ROOT = "/data/set"
FILES = {}  # of each dataset: the function that gives the files of a sample


class Data:
    """A dataset: attributes, and the files of each sample."""

    def __init__(self, files, **stored):
        self.__dict__.update(stored)
        FILES[id(self)] = (self, files)

    def __len__(self):
        raise AssertionError("code of the dataset runs")

    __getitem__ = __len__


def files_of(dataset, index):
    if type(dataset) is Subset:
        return files_of(dataset.dataset, dataset.indices[index])
    if type(dataset) is ConcatDataset:
        part = next(p for p, end in enumerate(dataset.cumulative_sizes) if index < end)
        return files_of(dataset.datasets[part], index - (dataset.cumulative_sizes[part - 1] if part else 0))
    found = FILES[id(dataset)][1](index)
    return [found] if isinstance(found, str) else found


def files_by(root, length):
    """The files of each sample."""
    lists = root.files(range(length))
    return [[path for path in files if path] for files in zip(*lists)] if lists else [[]] * length


def learn(dataset, indices, together=False, length=COUNT):
    """The files that are learned for all samples from those of some."""
    seen = [rules.Seen([index], files_of(dataset, index)) for index in indices]
    if together:
        seen = [rules.Seen(indices, [path for one in seen for path in one.paths])]
    root = tree.of(dataset)
    there = {path for index in range(length) for path in files_of(dataset, index)}
    lexists, os.path.lexists = os.path.lexists, there.__contains__
    rows = dict(guesses.probes(root, length))
    for leaf, some in learning.split(root, seen):
        leaf.rules = rules.search(some, columns.find(leaf.dataset), learning.Likely(rows[leaf]))
    os.path.lexists = lexists
    return files_by(root, length)


class Slots:
    __slots__ = ("image", "label")

    def __init__(self, image):
        self.image, self.label = image, 0


class Nested:
    def __init__(self, **stored):
        self.__dict__.update(stored)


Named = collections.namedtuple("Named", "label impath")


def joined(index):
    return f"{ROOT}/{NAMES[index]}"


def cases():
    whole = [f"{ROOT}/{name}" for name in NAMES]
    stems = [name[:-4] for name in NAMES]
    order = DRAW.sample(range(COUNT), COUNT)
    labels = [DRAW.randrange(3) for _ in range(COUNT)]
    yield "list", Data(joined, whatever=whole)
    yield "tuple", Data(joined, x=tuple(whole))
    yield "bytes", Data(joined, x=[path.encode() for path in whole])
    yield "pathlib", Data(joined, x=[pathlib.Path(path) for path in whole])
    yield "relative", Data(joined, x=NAMES, y=labels)
    yield "dots", Data(joined, x=["./" + name for name in NAMES])
    yield "array", Data(joined, x=numpy.array(NAMES))
    yield "array of bytes", Data(joined, x=numpy.array([name.encode() for name in NAMES]))
    yield "array of objects", Data(joined, x=numpy.array(NAMES, dtype=object))
    yield "array of rows", Data(joined, x=numpy.array([[name, "7"] for name in NAMES]))
    yield "structured array", Data(joined, x=numpy.array([(name, 3) for name in NAMES], dtype=[("f", "U20"), ("n", "i4")]))
    yield "pairs", Data(joined, annotations=list(zip(labels, whole)))
    yield "named tuples", Data(joined, x=[Named(0, path) for path in whole])
    yield "records", Data(joined, x=[{"label": 1, "file_name": name} for name in NAMES])
    yield "objects with slots", Data(joined, x=[Slots(path) for path in whole])
    yield "objects", Data(joined, x=[Nested(path=path, n=1) for path in whole])
    yield "dict by number", Data(joined, x=dict(enumerate(whole)))
    yield "dict of records", Data(joined, x={i: {"image": name} for i, name in enumerate(NAMES)})
    yield "dict by name", Data(joined, x=dict.fromkeys(NAMES, 3))
    yield "dict by id", Data(joined, x={f"id-{i}": (name, 0) for i, name in enumerate(NAMES)})
    yield "dict of lists", Data(joined, x={"image": NAMES, "label": labels})
    yield "nested", Data(joined, inner=Nested(split=Nested(paths=whole)))
    yield "more than it gives", Data(joined, x=[*whole, *whole])
    yield "repeated", Data(lambda i: f"{ROOT}/{NAMES[i % 20]}", x=NAMES[:20])
    yield "by an index", Data(lambda i: f"{ROOT}/{NAMES[order[i]]}", x=[*NAMES, "more"], y=order)
    yield "by an array", Data(lambda i: f"{ROOT}/{NAMES[order[i]]}", x=[*NAMES, "more"], y=numpy.array(order))
    yield "by a tensor", Data(lambda i: f"{ROOT}/{NAMES[order[i]]}", x=[*NAMES, "more"], y=torch.tensor(order))
    yield "ids", Data(lambda i: [f"{ROOT}/JPEGImages/{stems[i]}.jpg", f"{ROOT}/Annotations/{stems[i]}.xml"], ids=stems)
    yield "whole numbers", Data(lambda i: f"{ROOT}/{order[i]:012d}.jpg", ids=order, labels=labels)
    yield "image and mask", Data(lambda i: [whole[i], f"{ROOT}/masks/{stems[i]}.gif"], images=whole)
    yield "two lists", Data(lambda i: [whole[i], f"/masks/{order[i]}"], a=whole, b=[f"/masks/{i}" for i in order])
    yield "labels beside", Data(lambda i: f"{ROOT}/labels/{NAMES[i]}.txt", x=[f"{ROOT}/images/{n}.jpg" for n in NAMES])
    yield "class folders", Data(lambda i: f"{ROOT}/{'abc'[labels[i]] * 3}/{NAMES[i]}", names=NAMES, y=labels,
                                classes=["aaa", "bbb", "ccc"])
    yield "folders of a hash", Data(lambda i: f"{ROOT}/{NAMES[i][:2]}/{NAMES[i]}", names=NAMES)
    yield "lines", Data(joined, lines=[f"{i},{name},x y\n" for i, name in enumerate(NAMES)])
    yield "quoted", Data(joined, lines=[f'"{name}";"a"' for name in NAMES])
    yield "lines of JSON", Data(joined, lines=[f'{{"n": {i}, "file": "{name}"}}' for i, name in enumerate(NAMES)])
    yield "padded", Data(lambda i: f"{ROOT}/{i:06d}.png")
    yield "from 1", Data(lambda i: f"{ROOT}/{i + 1:05d}.png")
    yield "two folders", Data(lambda i: [f"{ROOT}/image_2/{i:06d}.png", f"{ROOT}/velodyne/{i:06d}.bin"])
    yield "folders of tens", Data(lambda i: f"{ROOT}/{i // 10:03d}/{i:06d}.png")
    yield "a table with each", Data(lambda i: [f"{ROOT}/labels.csv", whole[i]], x=whole)
    yield "Subset", Subset(Data(joined, x=NAMES), order)
    yield "Subset of a Subset", Subset(Subset(Data(joined, x=NAMES), order), numpy.array(order[::-1]))
    inner = Subset(Data(joined, x=NAMES), order)
    yield "wrapped", Data(lambda i: files_of(inner, i), dataset=inner, transform=print)
    yield from of_libraries(whole, order)


def of_libraries(whole, order):
    try:
        import pandas
    except ImportError:
        print("no pandas here")
    else:
        yield "data frame", Data(joined, frame=pandas.DataFrame({"label": order, "image": NAMES}))
        yield "index", Data(joined, frame=pandas.DataFrame({"label": order}, index=NAMES))
        yield "series", Data(joined, s=pandas.Series(whole))
        yield "categories", Data(joined, s=pandas.Series(whole, dtype="category"))
        yield "selected rows", Data(lambda i: whole[order[i]], f=pandas.DataFrame({"image": NAMES}).iloc[order])
    try:
        import pyarrow
    except ImportError:
        print("no pyarrow here")
    else:
        records = [{"path": path, "bytes": None} for path in whole]
        yield "Arrow table", Data(joined, inner=Nested(table=pyarrow.table({"n": order, "image": records})))
        yield "Arrow array", Data(joined, inner=pyarrow.array(whole))


def check_found():
    known = dict(cases())
    for name, dataset in known.items():
        expected = [files_of(dataset, index) for index in range(COUNT)]
        for indices in (DRAW.sample(range(COUNT), 6), list(range(0, 42, 7))):
            got = learn(dataset, indices)
            # A table that is read with each sample is not one of its files.
            wanted = [[path for path in files if not path.endswith(".csv")] for files in expected]
            claim(got == wanted, f"{name}, {indices}: {got[:3]} instead of {wanted[:3]}")
    for name in ("list", "relative", "records", "Subset", "wrapped"):
        got = learn(known[name], DRAW.sample(range(COUNT), 8), together=True)
        claim(got == [files_of(known[name], i) for i in range(COUNT)], f"{name}, read together: {got[:3]}")


class Sized:
    """What ConcatDataset asks a length of."""

    def __init__(self, dataset):
        self.dataset = dataset
        FILES[id(self)] = (self, lambda i: files_of(dataset, i))

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        raise AssertionError("code of the dataset runs")


def check_joined():
    first, second = Data(joined, x=NAMES), Data(lambda i: f"/other/{i:04d}", root="/other")
    both = ConcatDataset([Sized(Subset(first, range(COUNT - 1, -1, -1))), Sized(second)])
    got = learn(both, [1, COUNT + 5, 7, COUNT + 30], length=2 * COUNT)
    claim(got == [files_of(both, i) for i in range(2 * COUNT)], f"joined: {got[:2]}, {got[-2:]}")
    got = learn(both, [1, 7], length=2 * COUNT)
    claim(got[COUNT:] == [[]] * COUNT and got[3] == files_of(both, 3), "only one part is learned")


def check_not_found():
    draw = random.Random(9)
    chosen = [draw.choice(NAMES) for _ in range(COUNT)]
    for name, dataset in (("another file each time", Data(lambda i: f"{ROOT}/{draw.randrange(10 ** 9)}.png", x=NAMES)),
                          ("an order of its own", Data(lambda i: f"{ROOT}/{chosen[i]}", x=NAMES)),
                          ("one file", Data(lambda i: f"{ROOT}/all.bin", x=NAMES)),
                          ("nothing stored", Data(joined))):
        got = learn(dataset, [3, 8, 20, 41])
        claim(got == [[]] * COUNT, f"{name}: {got[:3]}")
    one_class = Data(lambda i: f"{ROOT}/{'ab'[i // 30]}/{NAMES[i]}", names=NAMES)
    got = learn(one_class, [2, 5, 8, 11])
    claim(got == [[]] * COUNT, f"the first samples' folder is taken for that of all: {got[-1]}")


class Hostile:
    """Everything that it could be asked is counted and fails."""
    calls = 0

    def called(self, *_, **__):
        Hostile.calls += 1
        raise RuntimeError("code of the dataset runs")

    __len__ = __getitem__ = __iter__ = __getattr__ = __fspath__ = __eq__ = __hash__ = __bool__ = __index__ = called
    __str__ = __repr__ = __contains__ = called
    lazy = property(called)
    __class__ = property(called)


class HostileList(list):
    __len__ = __getitem__ = __iter__ = __bool__ = __contains__ = __eq__ = Hostile.called
    __hash__ = None


class HostileDict(dict):
    __len__ = __getitem__ = __iter__ = __missing__ = keys = values = items = get = Hostile.called


class HostileText(str):
    __slots__ = ()
    __str__ = __len__ = __getitem__ = __fspath__ = encode = startswith = split = Hostile.called


class HostilePath(pathlib.PurePosixPath):
    __fspath__ = __str__ = Hostile.called


def check_hostile():
    hostile = Hostile()
    stored = {"a": Hostile(), "b": [Hostile()] * COUNT, "c": (Hostile(), Hostile()), "d": {i: Hostile() for i in range(COUNT)},
              "e": HostilePath("x"), "f": {"k": Hostile()}, "g": HostileDict(dict.fromkeys(range(COUNT), "x")),
              "h": numpy.empty(COUNT, dtype=object),
              "i": HostileText("/root"), "j": [HostilePath("y")] * COUNT}
    stored["h"].fill(stored["a"])
    vars_of = object.__getattribute__(hostile, "__dict__")
    vars_of.update(stored, real=HostileList(NAMES), also=[HostileText(name) for name in NAMES])
    FILES[id(hostile)] = (hostile, joined)
    Hostile.calls = 0
    got = learn(hostile, [4, 9, 30])
    root = tree.of(hostile)
    guesses.fingerprint(root, COUNT)
    guesses.guess(root, COUNT)
    claim(Hostile.calls == 0, f"{Hostile.calls} calls of the dataset's code")
    claim(got == [[joined(i)] for i in range(COUNT)], f"what is plain about it: {got[:3]}")
    claim(set(vars_of) == {*stored, "real", "also"}, "its attributes changed")


def check_sampled():
    """A list of a million is neither copied nor gone through."""
    many = Data(None, x=[("/etc/passwd", 1)] * 1_000_000, y=list(range(1000)) * 1000)
    tracemalloc.start()
    root = tree.of(many)
    guesses.fingerprint(root, 1_000_000)
    claim(guesses.guess(root, 1_000_000), "not guessed")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    claim(most < 200_000, f"{most} bytes for a look at a million samples")


def claim(truth, what):
    if not truth:
        sys.exit(f"{os.path.basename(sys.argv[0])}: failed: {what}")


def in_each_python(program, checks, of_folders=()):
    """Runs the checks here, and the program with the Python that has PyTorch 2."""
    for check in checks:
        check()
    for check in of_folders:
        with tempfile.TemporaryDirectory(prefix="sv-") as folder:
            check(folder)
    print(f"PyTorch {torch.__version__}: found")
    if sys.executable != VENV and os.path.exists(VENV):
        sys.exit(subprocess.run([VENV, os.path.abspath(program)], check=False).returncode)


if __name__ == "__main__":
    in_each_python(__file__, (check_found, check_joined, check_not_found, check_hostile, check_sampled))
