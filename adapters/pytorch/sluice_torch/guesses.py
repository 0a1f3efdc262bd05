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
        found, ends = columns.find(leaf.dataset), sorted({min(rows), max(rows)})
        leaf.rules = _that_exist(_candidates(found, ends, length if leaf is root else None), ends)
        if not leaf.rules and leaf is root:
            leaf.rules = _that_exist(_indexed(found, rows, length), ends)
    return any(leaf.rules for leaf, _ in leaves)


def _that_exist(candidates, ends):
    """[a rule whose files for these rows exist], or [] if there is none, or two of different files."""
    there, looks, tried = {}, 0, set()
    for rule in candidates:
        files = tuple(rule.paths(ends))
        if None in files or files in tried or looks > MOST_LOOKS:
            continue
        tried.add(files)
        if os.path.isfile(files[0]) and os.path.isfile(files[-1]):
            there[files] = rule
            if len(there) > 1:  # an image's and its mask's, say: the samples tell whether both are read
                return []
        else:
            looks += 1
    return list(there.values())


def _candidates(found, ends, length):
    """Rules for columns of paths with a cell for each sample."""
    roots = _roots(found)
    for column in found.texts:
        if column.size == length if length is not None else ends[-1] < column.size:
            yield from _of_column(rules.Cells(column), ends[:1], roots)


def _indexed(found, rows, length):
    """Rules for columns of paths of which the dataset has a part, by a column of numbers: an index of its own."""
    roots = _roots(found)
    for via in [column for column in found.numbers if column.size == length][:rules.MOST_VIA]:
        numbers = via.cells(rows)
        if None in numbers or len(set(numbers)) < len(rows):  # labels
            continue
        for column in found.texts:
            if min(numbers) >= 0 and max(numbers) < column.size:
                yield from _of_column(rules.Cells(column, via), rows[:1], roots)


def _roots(found):
    """What a relative path may be below: each text of the dataset, or the working folder."""
    here = rules.tidy(os.getcwd() + "/")
    roots = [rules.tidy(word) for word in dict.fromkeys(found.words) if word[:1] == "/"]
    roots += [rules.tidy(here + "/" + word) for word in dict.fromkeys(found.words) if word and word[0] != "/"]
    return [root.rstrip("/") + "/" for root in [*roots, here] if len(root) < 1024 and "\0" not in root]


def _of_column(cells, row, roots):
    """Rules for a column whose texts are absolute paths or, as the first row's is not, relative ones."""
    [first] = cells.raw(row)
    if first and "\0" not in first and "\n" not in first:
        for above in [""] if first[0] == "/" else roots:
            yield rules.Rule([above, cells])


def fingerprint(root, length):
    """What changes when the dataset's lists of files are replaced."""
    words = [length]
    for leaf, rows in probes(root, length):
        found = columns.find(leaf.dataset)
        words += [(column.size, column.cell(rows[0]), column.cell(rows[-1])) for column in found.texts[:8]]
        words += found.words[:8]
    return words
