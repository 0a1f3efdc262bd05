"""Brackets each dataset[i] in the process that reads it.

Where the fetcher iterates over the indices of a batch, it gets a list of them whose iteration
begins and ends the samples. Where it may do something else (one sample a call, a dataset with
`__getitems__`), it sees a proxy of the dataset for the duration of the fetch. The dataset itself,
its class, its attributes and its pickle are not changed.
"""
import functools
import itertools
import operator

from torch.utils.data import _utils, dataset as torch_datasets

from .. import datasets, learning, settings
from ..bindings import sluice

_begin, _end = sluice.begin, sluice.end
# For the path that every sample of an ordinary dataset takes.
_quick_end, _quick_next, _SMALL = sluice.quick_end, sluice.quick_next, sluice.SMALL


class Bracketed:
    """A proxy of a dataset: brackets the reads of its samples."""
    __slots__ = ("dataset", "number", "note")

    def __init__(self, dataset, number, note):
        self.dataset, self.number, self.note = dataset, number, note

    def __getitem__(self, index):
        plain = index if type(index) is int else _plain(index)
        if plain is None or plain < 0:
            return self.dataset[index]
        _begin(self.number, plain)
        try:
            return self.dataset[index]
        finally:
            _end(self.number, plain)
            if self.note is not None:
                self.note([plain])

    def __getattr__(self, name):
        value = getattr(self.dataset, name)
        if name == "__getitems__" and value:
            return functools.partial(self.together, value)
        return value

    def together(self, getitems, indices):
        """`__getitems__` as the fetcher calls it: a batch with one call."""
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
            if self.note is not None:
                self.note(plain)


def _reads_one_by_one(dataset):
    """Whether __getitems__ is that of PyTorch's own Subset, over a dataset without one."""
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


class Batch(list):
    """A batch's indices; a sample begins when its index is yielded, and ends when the next one is
    requested."""
    __slots__ = ("number", "note", "running")

    def __init__(self, indices, number, note):
        list.__init__(self, indices)
        self.number, self.note, self.running = number, note, None

    def __iter__(self):
        batch = list.copy(self)
        if self.note is not None:
            self.running = _each_noted(self.number, batch, self.note)
        elif _are_small(batch):
            self.running = _Plain(self.number, batch)
            return self.running.indices
        else:
            self.running = _each(self.number, batch)
        return self.running

    def end(self):
        """Ends the current sample if reading it has failed."""
        if self.running is not None:
            self.running.close()


def _are_small(indices):
    return set(map(type, indices)) == {int} and min(indices) >= 0 and max(indices) < _SMALL


class _Plain:
    """The indices of a batch of small whole numbers. One call into the library for each, and none of Python: a sample
    of a mapped array takes a microsecond itself."""
    __slots__ = ("number", "batch", "begun", "last", "indices")

    def __init__(self, number, batch):
        self.number, self.batch = number, batch
        self.begun, self.last = iter(batch), iter(batch[-1:])
        self.indices = itertools.chain(
            map(_quick_next, itertools.repeat(number), self.begun, itertools.chain((-1,), batch)),
            filter(None, map(_quick_end, (number,), self.last)))  # yields nothing: ends the last one

    def close(self):
        begun = len(self.batch) - operator.length_hint(self.begun)
        if begun and operator.length_hint(self.last):
            next(self.last)
            _quick_end(self.number, self.batch[begun - 1])


def _each(number, indices):
    for index in indices:
        plain = _plain(index)
        if plain is None or plain < 0:
            yield index
            continue
        _begin(number, plain)
        try:
            yield index
        finally:
            _end(number, plain)


def _each_noted(number, indices, note):
    """_each; `note` is called after each sample, with its index if it has one."""
    for index in indices:
        plain = _plain(index)
        if plain is None or plain < 0:
            yield index
            note([])
            continue
        _begin(number, plain)
        try:
            yield index
        finally:
            _end(number, plain)
        note([plain])


_NO_ATTRIBUTES = (None, getattr(torch_datasets.Dataset, "__getattr__", None))


def _goes_one_by_one(fetcher, dataset, indices):
    """Whether the fetcher will call dataset[i] for each index in turn. Runs no code of the job."""
    kind = type(dataset)
    return (type(indices) is list and fetcher.auto_collation
            and not hasattr(kind, "__getitems__")
            and kind.__getattribute__ is object.__getattribute__
            and getattr(kind, "__getattr__", None) in _NO_ATTRIBUTES
            and "__getitems__" not in getattr(dataset, "__dict__", ()))


def _known(dataset):
    try:
        return datasets.registration_of(dataset, reading=True)
    except Exception as error:
        settings.switch_off("%s: %s" % (type(error).__name__, error))
        return None


_reads_for_others = False


def _in_worker():
    """In a loader's worker: declares that the loop that takes its batches reports the waits."""
    global _reads_for_others
    if not _reads_for_others and _utils.worker.get_worker_info() is not None:
        _reads_for_others = True
        sluice.reads_for_others()


def in_workers(original):
    """Wraps _IterableDatasetFetcher.fetch, whose samples have no numbers."""
    @functools.wraps(original)
    def fetch(self, possibly_batched_index):
        _in_worker()
        return original(self, possibly_batched_index)
    return fetch


def bracketing(original):
    """Wraps _MapDatasetFetcher.fetch: brackets its samples and the fetch itself."""
    @functools.wraps(original)
    def fetch(self, possibly_batched_index):
        _in_worker()
        real = self.dataset
        # A Bracketed here: another thread is fetching with the same fetcher.
        known = None if settings.is_off() or type(real) is Bracketed else _known(real)
        if known is None:
            return original(self, possibly_batched_index)
        # collate_fn runs within the fetch too: files that it decodes only then may still be open.
        sluice.fetch_begin(known.number)
        try:
            if not sluice.wanted():
                return original(self, possibly_batched_index)
            learner = learning.watching(known, real)
            try:
                return _bracketed(self, original, possibly_batched_index, known.number,
                                  learner and learner.note)
            finally:
                if learner is not None:
                    learner.end()
        finally:
            sluice.fetch_end(known.number)
    return fetch


def _bracketed(fetcher, original, indices, number, note):
    """The fetch, with its samples bracketed. note: called with the indices of samples that have been read; or None."""
    real = fetcher.dataset
    if _goes_one_by_one(fetcher, real, indices):
        return _each_bracketed(fetcher, original, Batch(indices, number, note))
    fetcher.dataset = Bracketed(real, number, note)
    try:
        return original(fetcher, indices)
    finally:
        fetcher.dataset = real


def _each_bracketed(fetcher, original, batch):
    try:
        return original(fetcher, batch)
    finally:
        batch.end()
