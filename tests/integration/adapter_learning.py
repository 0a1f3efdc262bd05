#!/usr/bin/python3
# test: timeout=120
"""What the adapter takes for a dataset's files before the first is read, and what it learns from the first samples, from
folders and from tables beside them; and that an attempt is bounded."""
import os
import pathlib
import time

import numpy
from adapter_columns import (
    COUNT,
    DRAW,
    NAMES,
    Data,
    Nested,
    claim,
    files_by,
    in_each_python,
)
from sluice_torch import columns, datasets, guesses, learning, rules, tree
from torch.utils.data import ConcatDataset


def check_guesses(folder):
    names = [f"{number:03d}.txt" for number in DRAW.sample(range(1000), COUNT)]
    for name in names:
        pathlib.Path(folder, name).touch()
    paths = [f"{folder}/{name}" for name in names]
    for name, data, good in (
            ("absolute", Data(None, x=paths), True), ("below its root", Data(None, x=names, root=folder), True),
            ("below its path", Data(None, x=names, root=pathlib.Path(folder)), True),
            ("texts", Data(None, x=["a text"] * COUNT), False),
            ("missing files", Data(None, x=[p + "?" for p in paths]), False),
            ("folders", Data(None, x=[folder] * COUNT), False),
            ("twice", Data(None, x=paths, y=list(names), root=folder), True),
            ("two lists", Data(None, x=paths, y=paths[::-1]), False), ("longer", Data(None, x=[*paths, paths[0]]), False)):
        root = tree.of(data)
        claim(guesses.guess(root, COUNT) == good, f"{name}: {'not ' if good else ''}guessed")
        if good:
            claim(files_by(root, COUNT) == [[path] for path in paths], name)


def check_learner(folder):
    """What a learner declares if the optimizer knows the samples by a guess of one file to each: nothing, unless they read
    more; and what is known otherwise stays."""
    images = [os.path.join(folder, name) for name in NAMES]
    masks = [os.path.join(folder, "masks", f"{number:03d}.gif") for number in range(COUNT)]
    os.mkdir(os.path.join(folder, "masks"))
    for path in (*images, *masks):
        pathlib.Path(path).touch()
    for name, data, located, opened, expected in (
            ("one file", Data(None, x=images), 100, [images], []),
            ("a mask, too", Data(None, x=images), 100, [images, masks], [images, masks]),
            ("known otherwise", Data(None, x=images[1:]), 100, [images, masks], []),
            ("unknown", Data(None, y=images), 0, [images], [images]),
            ("a table, too", Data(None, y=images), 100, [images, [folder + "/t.csv"] * COUNT], [])):
        told = Told(located)
        real, learning.sluice = learning.sluice, told
        learner = learning.Learner(7, COUNT)
        for index in (5, 17, 40, 3):
            if learner.begin():
                told.opened = [paths[index] for paths in opened]
                learner.read(data, [index])
        learning.sluice = real
        claim(told.parts == expected, f"{name}: {told.parts[:1]} are declared")


def check_index(folder):
    """A dataset with a part of a list, by an index of its own: guessed, where the index is not labels. Where it is not
    guessed, the list without the index explains the first samples by chance: what was learned is corrected."""
    half, paths = COUNT // 2, [os.path.join(folder, name) for name in NAMES]
    for path in paths:
        pathlib.Path(path).touch()
    part = [*range(0, half - 9), *range(half, half + 9)]
    files = [paths[row] for row in part]
    for name, index, good in (("an index", part, True), ("labels", [row % 7 for row in range(half)], False),
                              ("too far", [*part[:-1], COUNT], False)):
        root = tree.of(Data(None, x=paths, part=index))
        claim(guesses.guess(root, half) == good, f"{name}: {'not ' if good else ''}guessed")
        claim(not good or files_by(root, half) == [[path] for path in files], name)
    told = Told(0)
    real, learning.sluice = learning.sluice, told
    learner = learning.Learner(7, half)
    for rows, expected in (((1, 4, 2), paths[:half]), ((half - 3, half - 8, 9), files)):
        for index in rows:
            claim(learner.begin(), "the learner is done")
            told.opened = [files[index]]
            learner.read(Data(None, x=paths, part=part), [index])
        claim(told.parts == [expected], f"after {rows}: {str(told.parts)[:200]}")
        told.percent = 100
    for index in range(learning.CHECKED):
        told.opened = [files[index % half]]
        learner.read(Data(None, x=paths, part=part), [index % half])
    learning.sluice = real
    claim(learner.done and learner.learned is None, "what is learned is checked for ever")


def check_rows(folder):
    """Rows of a mapped array are not taken for the files of a list that the dataset has, too."""
    array = os.path.join(folder, "rows.bin")
    numpy.zeros((COUNT, 32768), numpy.uint8).tofile(array)
    paths = [os.path.join(folder, name) for name in NAMES]
    for path in paths:
        pathlib.Path(path).touch()
    rows = Held(rows=numpy.memmap(array, numpy.uint8, "r", shape=(COUNT, 32768)), sources=paths)
    for data, extents, parts in ((rows, [array], []), (ConcatDataset([rows, Held(x=paths)]), [array], [[None] * COUNT + paths]),
                                 (Held(x=paths), [], [paths])):
        told = Told(0)
        real, datasets.sluice, learning.sluice = learning.sluice, told, told
        for _ in range(2):
            datasets.registration_of(data)
        datasets.sluice = learning.sluice = real
        claim((told.extents, told.parts) == (extents, parts), f"{told.extents}, {str(told.parts)[:200]}")
        datasets._by_number.clear()


class Held(Nested):
    def __len__(self):
        return COUNT


class Told:
    LARGEST_CALL = 1 << 17

    def __init__(self, percent):
        self.percent, self.opened, self.parts, self.extents = percent, [], [], []

    def dataset(self, _name, _length):
        return 7

    def locate_extents(self, _number, _first, path, *_):
        self.extents.append(os.fsdecode(path))

    def located(self, _number):
        return self.percent

    def watch_opens(self, _on):
        return True

    def take_opens(self):
        return self.opened

    def locate_parts(self, _number, _first, *files):
        self.parts = list(files)


def check_bounded():
    """Many columns of similar texts and samples that none of them explains."""
    many = Nested(**{f"t{k}": [f"{DRAW.randrange(99)}/{DRAW.randrange(99)}/{DRAW.randrange(999)}.png" for _ in range(COUNT)]
                     for k in range(96)},
                  **{f"n{k}": [DRAW.randrange(COUNT) for _ in range(COUNT)] for k in range(96)})
    seen = [rules.Seen([index], [f"/data/{DRAW.randrange(999)}/{DRAW.randrange(999)}_{DRAW.randrange(999)}.png"
                                 for _ in range(3)]) for index in range(12)]
    began = time.process_time()
    found = columns.find(many)
    claim(len(found.texts) == 96 and rules.search(seen, found) == [], "found in noise")
    claim(time.process_time() - began < 3, "an attempt takes too long")


def check_folders(folder):
    """The order of a folder's files, of its folders' files, and a table beside them."""
    plain, classes = os.path.join(folder, "plain"), os.path.join(folder, "classes")
    for number, name in enumerate(NAMES):
        for path in (os.path.join(plain, name), os.path.join(classes, "ab"[number % 2], name)):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            pathlib.Path(path).touch()
    pathlib.Path(plain, "readme.md").touch()
    natural = [os.path.join(folder, "natural", f"x{number}.png") for number in range(COUNT)]
    os.mkdir(os.path.dirname(natural[0]))
    for path in natural:
        pathlib.Path(path).touch()
    of_classes = sorted(os.path.join(classes, "ab"[number % 2], name) for number, name in enumerate(NAMES))
    table = os.path.join(folder, "labels.csv")
    with open(table, "w", encoding="utf-8") as file:
        file.write("id,name\n" + "".join(f'1,"{name}"\n' for name in NAMES))
    for name, files, words in (("sorted", [os.path.join(plain, one) for one in sorted(NAMES)], []),
                               ("in no order", [natural[(i * 7) % COUNT] for i in range(COUNT)], None),
                               ("naturally sorted", natural, []), ("classes", of_classes, []),
                               ("table", [os.path.join(plain, one) for one in NAMES], [table])):
        seen = [rules.Seen([index], [files[index]]) for index in (11, 3, 40, 22)]
        found = next((some for beside in learning.beside(seen, words or []) if (some := rules.search(seen, beside))), [])
        got = found[0].paths(range(COUNT)) if found else None
        claim(got == (None if words is None else files), f"{name}: {got}")


def check_padding(folder):
    for width, name in ((0, "plain"), (4, "padded")):
        above = os.path.join(folder, name)
        os.mkdir(above)
        files = [os.path.join(above, f"{number:0{width}d}.png") for number in range(2000)]
        for path in files[:3]:
            pathlib.Path(path).touch()
        seen = [rules.Seen([index], [files[index]]) for index in (1200, 1999, 1001)]
        [rule] = rules.search(seen, columns.Found())
        claim(learning.settled(rule, seen).paths(range(2000)) == files, name)


if __name__ == "__main__":
    in_each_python(__file__, (check_bounded,), (check_guesses, check_learner, check_index, check_rows, check_folders,
                                                check_padding))
