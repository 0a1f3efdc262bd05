"""A dataset as a tree: which row of which plain dataset its samples are, through PyTorch's Subset and ConcatDataset,
Hugging Face's indices, and wrappers around them. As columns.py, it runs no code of the job."""
import bisect
import itertools

from torch.utils.data import dataset as torch_datasets

from . import columns

MOST_NESTED = 8
PLAIN = ("builtins", "torch", "numpy")  # modules of what is no wrapper


class Leaf:
    """A plain dataset: row i is its sample i. rules: for its files, once they are known."""

    def __init__(self, dataset):
        self.dataset, self.rules = dataset, ()

    def leaves(self):
        return [self]

    def at(self, row):
        """(leaf, its row) of a row; None if there is none."""
        return (self, row) if row >= 0 else None

    def files(self, rows):
        """Lists of paths, for each rule the file of each row; None where it is not known."""
        return [rule.paths(rows) for rule in self.rules]


class Picked:
    """Row i is row `rows`[i] of `inner`; rows: a column."""

    def __init__(self, inner, rows):
        self.inner, self.rows = inner, rows

    def leaves(self):
        return self.inner.leaves()

    def at(self, row):
        inner = self.rows.cell(row)
        return None if inner is None else self.inner.at(inner)

    def files(self, rows):
        inner = self.rows.cells(rows)
        if all(row is not None and row >= 0 for row in inner):
            return self.inner.files(inner)
        known = [row for row in inner if row is not None and row >= 0]
        lists = map(iter, self.inner.files(known))
        return [[None if row is None or row < 0 else next(paths) for row in inner] for paths in lists]


class Joined:
    """The rows of `parts`, one after the other; `ends`: the sums of their lengths."""

    def __init__(self, parts, ends):
        self.parts, self.ends = parts, ends

    def leaves(self):
        return [leaf for part in self.parts for leaf in part.leaves()]

    def _place(self, row):
        """(part, its row)"""
        part = bisect.bisect_right(self.ends, row)
        return part, row - (self.ends[part - 1] if part else 0)

    def at(self, row):
        part, inner = self._place(row)
        return self.parts[part].at(inner) if row >= 0 and part < len(self.parts) else None

    def files(self, rows):
        places = [self._place(row) for row in rows]
        own = [[] for _ in self.parts]
        for part, inner in places:
            own[part].append(inner)
        lists = [list(map(iter, part.files(inner))) for part, inner in zip(self.parts, own)]
        most = max(map(len, lists))
        for some in lists:
            some += [itertools.repeat(None)] * (most - len(some))
        return [[next(lists[part][each]) for part, _ in places] for each in range(most)]


def of(dataset, depth=0):
    """The tree of a dataset."""
    kind, stored = type(dataset), columns.attributes(dataset)
    if depth < MOST_NESTED:
        if kind is torch_datasets.Subset:
            return _picked(stored.get("dataset"), stored.get("indices"), depth)
        if kind is torch_datasets.ConcatDataset and type(stored.get("datasets")) is list:
            ends = list(stored.get("cumulative_sizes") or ())
            if ends and len(ends) == len(stored["datasets"]):
                return Joined([of(part, depth + 1) for part in stored["datasets"]], ends)
        if kind.__name__ == "Dataset" and columns.module_of(dataset) == "datasets.arrow_dataset":
            if stored.get("_indices") is None:
                return Leaf(stored.get("_data"))
            return _picked(stored.get("_data"), stored["_indices"], depth)
        inner = [value for value in stored.values() if _is_nested(value, 0)]
        if len(inner) == 1:
            return of(inner[0], depth + 1)
    return Leaf(dataset)


def _is_nested(value, depth):
    """Whether it is one of PyTorch's, or a wrapper around one."""
    if type(value) in (torch_datasets.Subset, torch_datasets.ConcatDataset):
        return True
    if depth > 1 or not columns.has_method(value, "__getitem__") or columns.module_of(value) in PLAIN:
        return False
    return any(_is_nested(inner, depth + 1) for inner in columns.attributes(value).values())


def _picked(inner, rows, depth):
    numbers = columns.find(columns.Holder(rows)).numbers
    return Picked(of(inner, depth + 1), numbers[0]) if numbers else Leaf(None)
