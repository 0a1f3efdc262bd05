#!/usr/bin/python3
# test: timeout=120
"""A warning whose stacklevel reaches past DataLoader's methods, a dataset's or a loss named a line of the adapter, and
filters by module did not match it."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))
import harness  # noqa: E402
from harness import claim  # noqa: E402

JOB = """
import warnings
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

class Warns(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        for level in range(2, 6):
            warnings.warn("of level %d" % level, stacklevel=level)
        return index

class Together(Warns):
    def __getitems__(self, indices):
        return [self[index] for index in indices]

class Short(IterableDataset):
    def __repr__(self):
        return "Short"

    def __len__(self):
        return 2

    def __iter__(self):
        return iter(range(4))

warnings.simplefilter("always")
for dataset, options in ((Warns(), {"batch_size": 4}), (Warns(), {"batch_size": None}), (Together(), {}), (Short(), {}),
                         (Warns(), {"pin_memory": True})):
    loader = DataLoader(dataset, **options)
    print(len(loader))
    for batch in loader:
        pass
values = torch.zeros(4, 1, requires_grad=True)
for batch in DataLoader(list(range(4)), batch_size=4):
    torch.nn.functional.mse_loss(values, torch.zeros(4))
    torch.nn.functional.cross_entropy(values, torch.zeros(4, dtype=torch.int64), size_average=True)
warnings.filterwarnings("ignore", module="torch.utils.data")
warnings.filterwarnings("error", module="__main__")
for batch in DataLoader(Warns(), batch_size=4):
    pass
"""


def test(place):
    checked = 0
    for python in ("/usr/bin/python3", os.path.join(harness.BUILD, "venv", "bin", "python3")):
        argv = [python, "-c", JOB]
        plain = place.run(argv, library=None, timeout=100) if os.path.exists(python) else None
        if plain is None or "No module named 'torch'" in plain.stderr:
            continue
        for what in ("of level 5", "IterableDataset", "target size", "size_average"):
            claim(what in plain.stderr, f"{python}: {what} is not warned of")
        harness.same(plain, place.run(argv, timeout=100, SLUICE_IMPORTANCE="loss"), python)
        checked += 1
    if not checked:
        harness.skip("no Python with PyTorch")


if __name__ == "__main__":
    harness.main(test)
