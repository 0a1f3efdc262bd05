"""Guesses a dataset's files before any is read: a list of paths, whose first and last exist, is taken for the samples'.
That saves the time in which workers start. learning.py finds what is not obvious, or corrects it."""
import os

from . import columns, rules

PROBES = 32  # samples that are looked at
MOST_LOOKS = 8  # at files that are not there


def probes(root, length):
    """[(leaf, some of its rows)], of samples that are evenly spread, the first and the last among them."""
    own = {}
    count = min(length, PROBES)
    for probe in range(count):
        place = root.at(probe * (length - 1) // max(count - 1, 1))
        if place is not None:
            own.setdefault(place[0], []).append(place[1])
    return list(own.items())


def guess(root, length, known=()):
    """Sets the rules of the tree's leaves, but for the datasets `known`. Whether any is found."""
    leaves = [(leaf, rows) for leaf, rows in probes(root, length) if not any(leaf.dataset is one for one in known)]
    for leaf, rows in leaves:
        _guess(leaf, rows, length if leaf is root else None)
    return any(leaf.rules for leaf, _ in leaves)


def _guess(leaf, rows, length):
    ends = sorted({min(rows), max(rows)})
    there, looks, tried = {}, 0, set()
    for rule in _candidates(columns.find(leaf.dataset), ends, length):
        files = tuple(rule.paths(ends))
        if None in files or files in tried or looks > MOST_LOOKS:
            continue
        tried.add(files)
        if os.path.isfile(files[0]) and os.path.isfile(files[-1]):
            there[files] = rule
            if len(there) > 1:  # an image's and its mask's, say: the samples tell whether both are read
                return
        else:
            looks += 1
    leaf.rules = list(there.values())


def _candidates(found, ends, length):
    """Rules for columns of paths: absolute ones, and relative ones below each text of the dataset or here."""
    here = rules.tidy(os.getcwd() + "/")
    roots = [rules.tidy(word) for word in dict.fromkeys(found.words) if word[:1] == "/"]
    roots += [rules.tidy(here + "/" + word) for word in dict.fromkeys(found.words) if word and word[0] != "/"]
    roots = [root.rstrip("/") + "/" for root in roots if len(root) < 1024 and "\0" not in root]
    for column in found.texts:
        if not (column.size == length if length is not None else ends[-1] < column.size):
            continue
        first = column.cell(ends[0])
        if not first or "\0" in first or "\n" in first:
            continue
        for above in [""] if first[0] == "/" else [*roots, here.rstrip("/") + "/"]:
            yield rules.Rule([above, rules.Cells(column)])


def fingerprint(root, length):
    """What changes when the dataset's lists of files are replaced."""
    words = [length]
    for leaf, rows in probes(root, length):
        found = columns.find(leaf.dataset)
        words += [(column.size, column.cell(rows[0]), column.cell(rows[-1])) for column in found.texts[:8]]
        words += found.words[:8]
    return words
