"""Puts the adapter's few wrappers on PyTorch's own classes; see docs/pytorch.md for which."""
import functools
import time

from . import fetcher, importance, loader, ranks, settings
from .bindings import sluice


def install(module):
    """`module` is torch.utils.data.dataloader. AttributeError if it lacks what it has had since
    PyTorch 1.7; nothing is patched then, nor in a process without Sluice."""
    if not sluice.available:
        settings.debug("no libsluice.so in this process")
        return
    iterator = module._BaseDataLoaderIter
    map_fetcher = module._utils.fetch._MapDatasetFetcher
    patches = (
        (iterator, "__init__", _after(iterator.__init__, ranks.created, loader.created)),
        (iterator, "_reset", _after(iterator._reset, ranks.reset, loader.reset)),
        (iterator, "_next_index", _drawing(iterator._next_index)),
        (map_fetcher, "fetch", fetcher.bracketing(map_fetcher.fetch)),
    )
    iterable_fetcher = getattr(module._utils.fetch, "_IterableDatasetFetcher", None)
    if iterable_fetcher is not None:
        patches += ((iterable_fetcher, "fetch", fetcher.in_workers(iterable_fetcher.fetch)),)
    next_batch = _timed(iterator.__next__)
    if importance.observes():
        importance.watch_losses()
        next_batch = _giving_out(next_batch)
    patches += ((iterator, "__next__", next_batch),)
    if importance.selects():
        patches += ((module.DataLoader, "__len__",
                     _as_long(module.DataLoader.__len__, ranks.length, loader.length)),
                    (iterator, "__len__",
                     _as_long(iterator.__len__, ranks.length_left, loader.length_left)))
    for owner, name, wrapper in patches:
        setattr(owner, name, wrapper)


# The functions of `ranks` have guards of their own: they continue when the adapter is off.

def _after(original, of_ranks, notify):
    notify = settings.guarded(notify)

    @functools.wraps(original)
    def wrapper(self, *arguments, **named):
        result = original(self, *arguments, **named)
        of_ranks(self, arguments, named)
        notify(self, arguments, named)
        return result
    return wrapper


def _drawing(original):
    before, taken = settings.guarded(loader.before), settings.guarded(loader.taken)
    ended = settings.guarded(loader.ended)

    @functools.wraps(original)
    def wrapper(self):
        before(self)
        ranks.before(self)
        try:
            index = original(self)
        except StopIteration:
            ended(self)
            raise
        taken(self, index)
        return index
    return wrapper


_thread_time = getattr(time, "thread_time_ns", lambda: 0)  # from Python 3.7 on


def _timed(original):
    """Reports how long the loop waits for a batch: the time in which its thread is off the CPU.
    What it computes itself, where it has no workers, is no wait."""
    clock = getattr(time, "perf_counter_ns", lambda: int(time.perf_counter() * 1e9))

    @functools.wraps(original)
    def wrapper(self):
        begun, ran = clock(), _thread_time()
        try:
            return original(self)
        finally:
            waited = clock() - begun - (_thread_time() - ran)
            sluice.waited(waited if waited > 0 else 0)
    return wrapper


def _giving_out(original):
    given_out, finished = settings.guarded(loader.given_out), settings.guarded(loader.finished)
    failed = settings.guarded(loader.failed)

    @functools.wraps(original)
    def wrapper(self):
        try:
            data = original(self)
        except StopIteration:
            ranks.finished(self)
            finished(self)
            raise
        except BaseException:
            failed(self)
            raise
        ranks.given_out(self)
        given_out(self)
        return data
    return wrapper


def _as_long(original, of_rank, length):
    @functools.wraps(original)
    def wrapper(self):
        batches = of_rank(self)
        if batches is None and not settings.is_off():
            batches = length(self)
        return original(self) if batches is None else batches
    return wrapper
