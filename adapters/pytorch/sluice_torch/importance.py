"""What each sample's loss is (SLUICE_IMPORTANCE=loss), and epochs that fetch by it (iis).

The common losses are computed a second time, sample by sample, where a model is trained: the result
that the job gets is the one that it asked for, nothing of it is touched, and no random number is
drawn. Whose losses they are is known from the loader: the batch that it gave out last.
"""
import functools
import inspect
import sys
import threading
import types

import torch
from torch.utils.data import sampler as samplers

from . import settings
from .told import sluice

FUNCTIONAL = "torch.nn.functional"
LOSSES = ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
          "mse_loss")
TOGETHER = 4096  # values reported with one message, at least, or what an epoch's end leaves

_level = sluice.importance()
_current = threading.local()  # .batch: what a loader gave out last in this thread


def observes():
    return _level >= 1


def selects():
    return _level >= 2


class Batch:
    """A batch that was given out. indices: of its samples; value: what they matter, as far as losses
    were computed of it (several in a step add up)."""
    __slots__ = ("told", "indices", "value")

    def __init__(self, told, indices):
        self.told, self.indices, self.value = told, indices, None


class Reports:
    """Values of one dataset that were not reported yet; they stay where they were computed until
    then, since fetching each from a GPU would wait for it."""

    def __init__(self, number):
        self.number, self.ids, self.values = number, [], []

    def add(self, batch):
        self.ids.extend(batch.indices)
        self.values.append(batch.value)
        if len(self.ids) >= TOGETHER:
            self.send()

    def send(self):
        ids, values = self.ids, self.values
        self.ids, self.values = [], []
        if ids:
            sluice.report_importance(
                self.number, ids,
                [number for value in values for number in value.to("cpu", torch.float64).tolist()])


_reports = {}  # by dataset's number


def _close(batch):
    """The batch's losses have all been computed."""
    if batch is not None and batch.value is not None:
        reports = _reports.get(batch.told.number)
        if reports is None:
            reports = _reports[batch.told.number] = Reports(batch.told.number)
        reports.add(batch)


def given_out(told, indices):
    """A loader is about to give out the batch of these samples."""
    _close(getattr(_current, "batch", None))
    _current.batch = None if indices is None else Batch(told, indices)


def epoch_ends(told):
    """The loader has no more batches: what is known decides over its next epoch."""
    batch = getattr(_current, "batch", None)
    if batch is not None and batch.told is told:
        _close(batch)
        _current.batch = None
    reports = _reports.get(told.number)
    if reports is not None:
        reports.send()


def _observe(original, signature, arguments, named, result):
    """Adds the losses of the present batch's samples, if the call was about them."""
    batch = getattr(_current, "batch", None)
    bound = signature.bind(*arguments, **named).arguments
    values = bound.get("input")
    if (batch is None or not isinstance(values, torch.Tensor) or not values.requires_grad
            or not torch.is_grad_enabled()):
        return  # nothing is trained: a validation, most likely
    if values.dim() == 0 or values.shape[0] != len(batch.indices):
        settings.warn_once("a loss of another number of samples than the batch has is not counted")
        return
    if result.dim() == 0:
        for name in ("size_average", "reduce"):
            bound.pop(name, None)
        bound["reduction"] = "none"
        bound["input"] = values.detach()
        with torch.no_grad():
            each = original(**bound)
    else:
        each = result.detach()
    if each.dim() == 0 or each.shape[0] != len(batch.indices):
        return
    each = each.reshape(each.shape[0], -1).mean(dim=1)
    batch.value = each if batch.value is None else batch.value + each


_busy = threading.local()  # cross_entropy calls nll_loss, in some versions


def observed(original):
    """A loss of torch.nn.functional. TorchScript, which compiles such functions from their source, finds
    the original's source and names: all that the wrapper itself needs is in its closure."""
    signature = inspect.signature(original)
    watch = settings.guarded(functools.partial(_observe, original, signature))
    busy, current = _busy, _current

    def loss(*arguments, **named):
        outer = getattr(busy, "inside", False)
        busy.inside = True
        try:
            result = original(*arguments, **named)
            if not outer and getattr(current, "batch", None) is not None:
                watch(arguments, named, result)
            return result
        finally:
            busy.inside = outer

    wrapper = types.FunctionType(loss.__code__, original.__globals__, original.__name__, None,
                                 loss.__closure__)
    return functools.update_wrapper(wrapper, original)


def watch_losses():
    """Puts observed() on the losses. Their Module forms call them by these names."""
    functional = sys.modules[FUNCTIONAL]
    for name in LOSSES:
        setattr(functional, name, observed(getattr(functional, name)))


def chosen_for(told, epoch, loader):
    """Which samples the loader's epoch fetches, by sample; None: all of them."""
    sampler = loader._index_sampler
    if loader._auto_collation:
        if type(sampler) is not samplers.BatchSampler:
            settings.warn_once("samples are not selected: the loader has a batch sampler of its own")
            return None
        sampler = sampler.sampler
    if type(sampler) is samplers.SequentialSampler:
        return None  # a validation
    if type(sampler) not in (samplers.RandomSampler, samplers.SubsetRandomSampler):
        settings.warn_once("samples are not selected: %s" % type(sampler).__name__)
        return None
    chosen = sluice.select(told.number, epoch, told.length)
    return None if chosen is None or 0 not in chosen else chosen


def batches_of(loader, chosen):
    """How many batches an epoch of the chosen samples has; None: as many as ever."""
    if chosen is None or not loader._auto_collation:
        return None
    sampler, size = loader._index_sampler.sampler, loader._index_sampler.batch_size
    if type(sampler) is samplers.SubsetRandomSampler:
        count = sum(chosen[int(index)] for index in sampler.indices)
    elif sampler.replacement or sampler.num_samples != len(chosen):
        return None
    else:
        count = sum(chosen)
    return count // size if loader._index_sampler.drop_last else -(-count // size)


def select_from(iterator, chosen):
    """The iterator's indices, or batches of them, without the samples that were not chosen. The sampler
    makes the draws that it would make."""
    index_sampler = iterator._index_sampler
    if iterator._auto_collation:
        iterator._sampler_iter = _batches(index_sampler, chosen)
    else:
        iterator._sampler_iter = (index for index in index_sampler if chosen[index])


def _batches(batch_sampler, chosen):
    batch = []
    for index in batch_sampler.sampler:
        if not chosen[index]:
            continue
        batch.append(index)
        if len(batch) == batch_sampler.batch_size:
            yield batch
            batch = []
    if batch and not batch_sampler.drop_last:
        yield batch
