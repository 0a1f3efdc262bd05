"""Wrappers of methods of DataLoader and its iterators: they call the adapter before and after."""
import functools
import time

from .. import loader, ranks, settings
from ..bindings import sluice

_thread_time = getattr(time, "thread_time_ns", lambda: 0)  # from Python 3.7 on


# The functions of `ranks` have guards of their own: they continue when the adapter is off.

def after(original, of_ranks, notify):
    notify = settings.guarded(notify)

    @functools.wraps(original)
    def wrapper(self, *arguments, **named):
        result = original(self, *arguments, **named)
        of_ranks(self, arguments, named)
        notify(self, arguments, named)
        return result
    return wrapper


def drawing(original):
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


def timed(original):
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


def giving_out(original):
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


def as_long(original, of_rank, length):
    @functools.wraps(original)
    def wrapper(self):
        batches = of_rank(self)
        if batches is None and not settings.is_off():
            batches = length(self)
        return original(self) if batches is None else batches
    return wrapper
