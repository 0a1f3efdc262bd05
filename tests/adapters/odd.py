"""Datasets of unusual kinds, one loader each: odd.py FOLDER. Prints what each of them gave."""
import os
import pathlib
import sys

import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset


class Listed(Dataset):
    """ImageFolder-like: its samples are (path, class)."""

    def __init__(self, case, paths, attribute="samples"):
        self.case = case
        setattr(self, attribute, [(path, 0) for path in paths])
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with open(self.paths[index], "rb") as file:
            return file.read()


class Together(Listed):
    """Reads a batch with one call, as PyTorch 2 offers."""

    def __getitems__(self, indices):
        return [self[i] for i in indices]


class Texts(Listed):
    """A list of (text, label) that looks like a list of files."""

    def __getitem__(self, index):
        return self.samples[index][0]


class Filtered(Listed):
    """Has more samples listed than it gives."""

    def __len__(self):
        return len(self.paths) - 1


class Failing(Listed):
    def __getitem__(self, index):
        if index == 3:
            raise KeyError("sample 3 is broken")
        return super().__getitem__(index)


class Unsized(Dataset):
    def __getitem__(self, index):
        return index


class Named(Dataset):
    """Numbered by names."""

    def __init__(self):
        self.case = "named"

    def __len__(self):
        return 3

    def __getitem__(self, name):
        return name * 2


class Numbered(Dataset):
    """Has nothing but its folder."""

    def __init__(self, folder):
        self.case, self.folder = "numbered", folder

    def __len__(self):
        return len(os.listdir(self.folder))

    def __getitem__(self, index):
        with open(f"{self.folder}/f{index}", "rb") as file:
            return file.read()


class Hostile:
    """A path that cannot be had: asking for it raises an exception."""

    def __fspath__(self):
        raise RuntimeError("no path")


os.PathLike.register(Hostile)


class Equal(Listed):
    """Equal to everything, and without a hash."""
    __hash__ = None

    def __eq__(self, other):
        return True


def show(case, dataset, **options):
    kind, names = type(dataset), sorted(vars(dataset)) if hasattr(dataset, "__dict__") else None
    options = {"batch_size": 1 if "batch_sampler" in options else 2, "collate_fn": list, **options}
    try:
        loader = DataLoader(dataset, **options)
        print(case, list(loader))
        inner = iter(loader)
        print(type(inner).__name__, sorted(vars(loader)), sorted(vars(inner)))
        print(inner._dataset_fetcher.dataset is dataset)
    except Exception as error:
        print(case, type(error).__name__, str(error).split("\n")[0])
    claim = type(dataset) is kind and (names is None or sorted(vars(dataset)) == names)
    print(case, "untouched" if claim else "changed")


def main():
    folder = sys.argv[1]
    names = sorted(os.listdir(folder))
    paths = [os.path.join(folder, name) for name in names]
    os.chdir(folder)
    listed = Listed("listed", paths)
    show("listed", listed)
    show("imgs", Listed("imgs", paths, "imgs"))
    show("relative", Listed("relative", names))
    show("bytes", Listed("bytes", [os.fsencode(path) for path in paths]))
    show("pathlike", Listed("pathlike", [pathlib.Path(path) for path in paths]))
    show("mixed", Listed("mixed", [paths[0], os.fsencode(paths[1]), pathlib.Path(names[2])]))
    show("subset", Subset(Listed("subset", paths), [3, 1, 1, 0]))
    show("nested", Subset(Subset(Listed("nested", paths), torch.tensor([4, 3, 2, 1])), (2, 0)))
    show("joined", ConcatDataset([Listed("joined", paths[:2]), Listed("other", paths[2:], "files"),
                                  Listed("third", paths[4:5])]))
    show("together", Together("together", paths))
    show("subset_together", Subset(Together("subset_together", paths), [2, 0, 1]))
    show("texts", Texts("texts", ["a text", "another text"]))
    show("wrong_length", Filtered("wrong_length", paths))
    show("failing", Failing("failing", paths))
    show("failing_worker", Failing("failing_worker", paths), num_workers=1)
    show("unsized", Unsized(), sampler=[2, 1])
    show("named", Named(), sampler=["x", "y"])
    show("plain_list", ["a", "b", "c"])
    show("equal", Equal("equal", paths))
    show("negative", Listed("negative", paths), sampler=[0, -1, 1])
    show("tensors", Listed("tensors", paths), batch_sampler=[torch.tensor([1, 0])])
    show("generators", Listed("generators", paths),
         batch_sampler=[(i for i in (1, 2)), (i for i in (0, 3))])
    show("numbered", Numbered(folder))
    hostile = Listed("hostile", paths)
    hostile.root = Hostile()
    show("hostile", hostile)
    show("after_hostile", Listed("after_hostile", paths))


main()
