"""The loss of each sample (SLUICE_IMPORTANCE=loss), and epochs that select samples by it (iis).

Where a model is trained, the common losses are computed a second time, sample by sample: the job's
own result is not touched, and no random number is drawn. Losses are attributed to the samples of
the batch that the loader returned last.
"""
import functools
import os
import sys
import threading

import torch
from torch.utils.data import sampler as samplers

from . import orders, settings, turns
from .bindings import sluice

LOSSES = ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
          "mse_loss")
CLASSIFYING = ("cross_entropy", "nll_loss")  # their targets may be classes
ALONE = 0, 1, 1  # the arguments of sluice.rank()
TOGETHER = 4096  # least values of one message, except at an epoch's end

_level = sluice.importance()
_substitutes = sluice.substitutes()
_ended = False  # observing has failed
_compiled = False  # torch.compile has traced a loss
current = threading.local()  # .batch: the latest that a loader returned in this thread


def observes():
    return _level >= 1 and not _ended


def selects():
    """For loaders without a plan; ranks with one select even if observing has failed, see
    `ranks`."""
    return _level >= 2 and not _ended or _substitutes


def decides_all():
    """Chunks decide the order of all samples, and none is left out."""
    return _substitutes and _level < 2


class Batch:
    """A batch that the loader returned. indices: of its samples; value: their losses as far as they
    are computed (several in a step add up); labels: their classes, if the losses have one target
    that contains them."""
    __slots__ = ("registration", "indices", "value", "labels", "target")

    def __init__(self, registration, indices):
        self.registration, self.indices = registration, indices
        self.value = self.labels = self.target = None


class Reports:
    """Values of one dataset that were not reported yet; until then they remain on their device,
    since copying each from a GPU would wait for it. doubted: for the rest of an epoch in which
    losses cannot be attributed to samples its values are discarded."""

    def __init__(self, number):
        self.number, self.batches, self.samples, self.doubted = number, [], 0, False

    def add(self, batch):
        if not self.doubted:
            self.batches.append((batch.indices, batch.value, batch.labels))
            self.samples += len(batch.indices)
            if self.samples >= TOGETHER:
                self.send()

    def doubt(self):
        self.batches, self.samples, self.doubted = [], 0, True

    def send(self):
        batches, self.batches, self.samples = self.batches, [], 0
        ids, numbers, classes = [], [], []
        for indices, value, labels in batches:
            ids += indices
            numbers += value.to("cpu", torch.float64).tolist()
            classes += [-1] * len(indices) if labels is None else labels.tolist()
        if ids:
            sluice.report_importance(self.number, ids, numbers, classes)


_reports = {}  # by dataset's number


def _reports_of(registration):
    reports = _reports.get(registration.number)
    if reports is None:
        reports = _reports[registration.number] = Reports(registration.number)
    return reports


def compiled():
    """torch.compile traces a loss: what runs in its place then has no wrapper, unless the backend says otherwise."""
    global _compiled
    _compiled = True


def _doubt(batch):
    if _compiled:
        settings.warn_once("losses within a function that torch.compile compiled are not observed")
    else:
        settings.warn_once("batches of which no loss is computed before the next is requested: the losses of "
                           "their epoch are not counted")
    _reports_of(batch.registration).doubt()


def _guarded(function):
    """An exception ends the observing, and nothing else."""
    def call(*arguments):
        global _ended
        if not _ended and not settings.is_off():
            try:
                return function(*arguments)
            except Exception as error:
                _ended = True
                settings.warn_once("losses are not observed any more: %s: %s"
                                   % (type(error).__name__, error))
        return None
    return call


@_guarded
def given_out(registration, indices):
    """A loader is about to return the batch of these samples; None: it is not known which."""
    before, current.batch = getattr(current, "batch", None), None
    after = Batch(registration, indices) if indices and torch.is_grad_enabled() else None
    if before is not None and before.value is not None:
        _reports_of(before.registration).add(before)
    elif before is not None and after is not None:
        # A job that reads a batch ahead, or from two loaders in turns, computes losses of another
        # batch than the latest.
        _doubt(before)
        if after.registration is not before.registration:
            _doubt(after)
    current.batch = after


@_guarded
def epoch_ends(registration):
    """The loader has no more batches, or another epoch of it begins: reports the values so far."""
    batch = getattr(current, "batch", None)
    if batch is not None and batch.registration is registration:
        if batch.value is not None:
            _reports_of(registration).add(batch)
        current.batch = None
    reports = _reports.get(registration.number)
    if reports is not None:
        reports.send()
        reports.doubted = False


def _each(original, bound, values, result):
    """The loss of each sample, or of each of its parts."""
    if result.dim() != 0:
        return result.detach()
    if original.__name__ == "mse_loss":  # would repeat its warning about sizes
        return (values.detach() - bound["target"].detach()) ** 2
    for name in ("size_average", "reduce"):
        bound.pop(name, None)
    bound["reduction"] = "none"
    bound["input"] = values.detach()
    return original(**bound)


def _observe(original, signature, arguments, named, result):
    """Adds the losses of the present batch's samples, if these are what the call computed."""
    batch = getattr(current, "batch", None)
    bound = signature.bind(*arguments, **named).arguments
    values = bound.get("input")
    if (batch is None or not isinstance(values, torch.Tensor) or not values.requires_grad
            or not torch.is_grad_enabled()):
        return  # nothing is trained: a validation, most likely
    if values.dim() == 0 or values.shape[0] != len(batch.indices):
        settings.warn_once("a loss of another number of samples than the batch has is not counted")
        return
    with torch.no_grad():
        each = _each(original, bound, values, result)
        if each.dim() == 0 or each.shape[0] != len(batch.indices):
            return
        each = each.reshape(each.shape[0], -1).mean(dim=1)
        batch.value = each if batch.value is None else batch.value + each.to(batch.value.device)
        if original.__name__ in CLASSIFYING:
            _note_labels(batch, bound["target"], each)


def _note_labels(batch, target, each):
    """The samples' classes, unless the step has losses by several targets (mixed samples, say)."""
    if batch.target is not None and batch.target is not target:
        batch.labels = None
    elif batch.target is None and target.shape == each.shape:
        batch.labels = target.detach().clone()  # the job may reuse its memory
    batch.target = target


def watching(original, signature):
    """What the wrapper of that loss calls with its arguments and its result."""
    return _guarded(functools.partial(_observe, original, signature))


class Selection:
    """What an epoch fetches. epoch: its number in requests to the optimizer; allowed: by sample, 1
    if it is in the loader's part, else 0; chosen: by sample, 1 if it is fetched, else 0; None: all
    are; batches: the number of batches, where the epoch does not fetch all; part: the rank's
    (rank, ranks, ranks on this host)."""
    __slots__ = ("epoch", "allowed", "chosen", "batches", "part")

    def __init__(self, epoch, allowed, chosen, batches, part=ALONE):
        self.epoch, self.allowed, self.chosen, self.batches = epoch, allowed, chosen, batches
        self.part = part

    def declare(self):
        """As which rank the optimizer is asked next. Two loaders of a process may be different ones."""
        return not decides_all() or sluice.rank(*self.part) == 0


def _candidates(sampler, length):
    """The samples that an epoch of the sampler draws, if it draws each exactly once; else None."""
    kind = type(sampler)
    if kind is samplers.RandomSampler:
        if sampler.replacement or not sampler.num_samples == len(sampler.data_source) == length:
            return None
        return range(length)
    if kind is not samplers.SubsetRandomSampler:
        return None
    indices = sampler.indices
    indices = indices.tolist() if isinstance(indices, torch.Tensor) else list(indices)
    good = all(type(index) is int and 0 <= index < length for index in indices)
    return indices if good and len(set(indices)) == len(indices) else None


def processes():
    """Of the job, as far as it says."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_world_size()
    size = os.environ.get("WORLD_SIZE", "1")
    return int(size) if size.isdigit() else 1


def _fill_up(chosen, candidates, count, size, drop_last, turn):
    """Adds samples until the last batch is as long as in an epoch of all samples (a model may not
    support a batch of one sample), and there is a batch. Returns the number of samples then."""
    wanted = count + (len(candidates) - count) % size
    if drop_last:
        wanted = max(wanted, size)
    left = [index for index in candidates if not chosen[index]]
    add = min(wanted - count, len(left))
    for index in turns.spread(left, add, turn):
        chosen[index] = 1
    return count + add


def batching(loader):
    """(sampler, size, drop_last): what the loader's batches are made of; no sampler if that is not
    known."""
    sampler = loader._index_sampler
    if not loader._auto_collation:
        return sampler, 1, False
    if type(sampler) is not samplers.BatchSampler:
        return None, 1, False
    return sampler.sampler, sampler.batch_size, sampler.drop_last


def _flags(length, indices):
    flags = bytearray(length)
    for index in indices:
        flags[index] = 1
    return flags


def selection_for(registration, course, loader):
    """(turn, selection) of the loader's epoch that begins. selection None: it fetches all samples;
    turn None: it is not one of the counted epochs either. Not for ranks that have a plan."""
    if not torch.is_grad_enabled():
        return None, None  # nothing is trained
    epoch_ends(registration)
    sampler, size, drop_last = batching(loader)
    if sampler is None:
        settings.warn_once("samples are not selected: the loader has a batch sampler of its own")
        return None, None
    if type(sampler) is samplers.SequentialSampler or orders.distributed(sampler) and not sampler.shuffle:
        return None, None  # a validation
    if processes() > 1:
        settings.warn_once("samples are not selected: ranks would have batches of different number")
        return None, None
    candidates = _candidates(sampler, registration.length)
    if candidates is None:
        settings.warn_once("samples are not selected: %s, and how it draws" % type(sampler).__name__)
        return None, None
    turn = turns.Turn(course)
    allowed = _flags(registration.length, candidates)
    sluice.seed(torch.initial_seed())
    if decides_all():
        sluice.rank(*ALONE)
    chosen = sluice.select(registration.number, turn.number, allowed)
    if chosen is None:
        settings.warn_once("samples are not selected: no optimizer answers, or it cannot (its log has the reason)")
        return turn, None
    count = sum(chosen[index] for index in candidates)
    count = _fill_up(chosen, candidates, count, size, drop_last, turn.number)
    if count == len(candidates):
        return turn, Selection(turn.number, allowed, None, None)
    batches = count // size if drop_last else -(-count // size)
    return turn, Selection(turn.number, allowed, chosen, batches)


def selection_of_rank(registration, plan, drawn):
    """(selection, chosen): which of the samples that its sampler draws a rank's epoch fetches, as
    many as planned; all if `chosen` is None. selection None: the optimizer did not answer, and the
    chosen samples are evenly spread ones."""
    if plan.part is not None:
        return _selection_of_part(registration, plan), None
    allowed = _flags(registration.length, drawn)
    answer = sluice.select(registration.number, plan.number, allowed)
    chosen = None
    if plan.partial():
        by = bytearray(registration.length) if answer is None else answer
        chosen = _flags(registration.length, turns.fitted(drawn, by, plan.wanted, plan.number))
    if answer is None:
        return None, chosen
    return Selection(plan.number, allowed, chosen, None), chosen


def _selection_of_part(registration, plan):
    """Chunks have a part of their own for each rank, whatever its sampler draws. None: it trains what that draws."""
    allowed = bytearray(b"\1") * registration.length
    selection = Selection(plan.number, allowed, None, None, plan.part[:3])
    sluice.seed(plan.part[3])
    if not selection.declare() or sluice.select(registration.number, plan.number, allowed[:]) is None:
        return None
    return selection


def select_from(iterator, chosen, substitute):
    """Makes the iterator yield indices, or batches of them, of the chosen samples only, with
    substitute(index) in place of each. The sampler makes the same draws as without this."""
    index_sampler = iterator._index_sampler
    if iterator._auto_collation:
        iterator._sampler_iter = batches(
            index_sampler, _samples(index_sampler.sampler, chosen, substitute))
    else:
        iterator._sampler_iter = _samples(index_sampler, chosen, substitute)


def _samples(sampler, chosen, substitute):
    for index in sampler:
        if chosen is None or chosen[index]:
            yield index if substitute is None else substitute(index)


def batches(batch_sampler, samples):
    """Batches of these samples, as BatchSampler makes them."""
    batch = []
    for index in samples:
        batch.append(index)
        if len(batch) == batch_sampler.batch_size:
            yield batch
            batch = []
    if batch and not batch_sampler.drop_last:
        yield batch
