"""Brackets each dataset[i] in the process that reads it.

The fetcher sees a stand-in for the dataset for as long as it fetches; the dataset itself, its
class, its attributes and its pickle stay the job's.
"""
import functools
import operator

from torch.utils.data import dataset as torch_datasets

from . import datasets, settings
from .told import sluice

_begin, _end = sluice.begin, sluice.end
# For what every sample of an ordinary dataset goes through.
_quick_begin, _quick_end, _SMALL = sluice.quick_begin, sluice.quick_end, sluice.SMALL


class Bracketed:
    """A dataset whose reads are told."""
    __slots__ = ("dataset", "number")

    def __init__(self, dataset, number):
        self.dataset, self.number = dataset, number

    def __getitem__(self, index):
        if type(index) is int and 0 <= index < _SMALL:
            number = self.number
            _quick_begin(number, index)
            try:
                return self.dataset[index]
            finally:
                _quick_end(number, index)
        plain = _plain(index)
        if plain is None or plain < 0:
            return self.dataset[index]
        _begin(self.number, plain)
        try:
            return self.dataset[index]
        finally:
            _end(self.number, plain)

    def __getattr__(self, name):
        value = getattr(self.dataset, name)
        if name == "__getitems__" and value:
            return functools.partial(self.together, value)
        return value

    def together(self, getitems, indices):
        """What `__getitems__` is to the fetcher: a batch with one call."""
        if _reads_one_by_one(self.dataset):
            return [self[index] for index in indices]
        plain = [_plain(i) for i in indices] if isinstance(indices, (list, tuple)) else []
        plain = [i for i in plain if i is not None and i >= 0]
        for index in plain:
            _begin(self.number, index)
        try:
            return getitems(indices)
        finally:
            for index in plain:
                _end(self.number, index)


def _reads_one_by_one(dataset):
    """Whether __getitems__ is PyTorch's own Subset's over a dataset that has none."""
    if type(dataset) is not torch_datasets.Subset:
        return False
    while type(dataset) is torch_datasets.Subset:
        dataset = dataset.dataset
    return not callable(getattr(dataset, "__getitems__", None))


def _plain(index):
    try:
        return operator.index(index)
    except TypeError:
        return None


def _stand_in(dataset):
    try:
        if type(dataset) is Bracketed:  # another thread is fetching with the same fetcher
            return dataset
        known = datasets.told(dataset, reading=True)
        return Bracketed(dataset, known.number) if known is not None else None
    except Exception as error:
        settings.switch_off("%s: %s" % (type(error).__name__, error))
        return None


def bracketing(original):
    """_MapDatasetFetcher.fetch, told."""
    @functools.wraps(original)
    def fetch(self, possibly_batched_index):
        real = self.dataset
        stand_in = None if settings.is_off() else _stand_in(real)
        if stand_in is None:
            return original(self, possibly_batched_index)
        self.dataset = stand_in
        try:
            return original(self, possibly_batched_index)
        finally:
            self.dataset = real
    return fetch
