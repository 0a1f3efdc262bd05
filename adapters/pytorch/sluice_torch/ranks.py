"""Ranks of one job (DistributedSampler) that select by importance: all have equally many batches.

The plan is the same on all ranks, and holds even if another part of the adapter fails on one of
them or the optimizer does not answer there: `loader` and `importance` only choose the samples.
"""
import os

import torch

from . import datasets, importance, orders, settings, turns
from .bindings import sluice
from .identity import IdentityMap

_plans = IdentityMap()    # by iterator
_courses = IdentityMap()  # by loader
_rule = sluice.selection()  # read once: it holds whatever happens to the library


class Course(turns.Course):
    """plan: of the latest pass, None if that is not a rank's training."""
    plan = None


class Plan(turns.Turn):
    """One pass. length: of the rank's shard, of which `wanted` samples are fetched, in `batches`.
    chosen: by sample, which ones; None: evenly spread ones. substitute: maps a drawn sample to the one
    to read; None: itself. part: the arguments of sluice.rank() and a seed where chunks decide the order; else None."""

    def __init__(self, course, length, size, drop_last, rule):
        super().__init__(course)
        self.length, self.wanted = length, turns.due(length, size, self.number, rule)
        self.batches = self.wanted // size if drop_last else -(-self.wanted // size)
        self.chosen = self.substitute = self.part = None
        self.answered = self.drawing = False

    def give(self):
        """A pass counts from half an epoch on: a rank that only shows some batches takes fewer."""
        self.given += 1
        if self.given > 1 and self.given * 2 >= self.batches:
            self.count()

    def partial(self):
        return self.wanted < self.length

    def takes(self, position, index):
        if self.chosen is not None and index < len(self.chosen):
            return self.chosen[index]
        place = (position + self.number) * self.wanted
        return place // self.length != (place + self.wanted) // self.length

    def draw(self, sampler):
        for index in turns.exactly(sampler, self.wanted, self.length, self.takes):
            yield index if self.substitute is None else self.substitute(index)


def _safe(function):
    """No exception of the adapter reaches the job."""
    def call(*arguments):
        try:
            return function(*arguments)
        except Exception as error:
            settings.debug("ranks: %s: %s" % (type(error).__name__, error))
            return None
    return call


@_safe
def _say_whose(sampler):
    """Declares the rank's job, by values that its ranks on one host share and other jobs do not."""
    values = [os.environ.get(name, "") for name in ("MASTER_PORT", "MASTER_ADDR", "TORCHELASTIC_RUN_ID")]
    if not values[0]:
        values = [str(os.getppid())]
    if sampler.num_replicas > 1:
        sluice.rank_of("%d %s" % (sampler.num_replicas, " ".join(values)))


def _part(sampler):
    """(rank, ranks, ranks on this host, seed) of a sampler whose ranks may have parts of their own."""
    on_host = os.environ.get("LOCAL_WORLD_SIZE", "")
    on_host = int(on_host) if on_host.isdigit() else sampler.num_replicas
    return sampler.rank, sampler.num_replicas, min(max(on_host, 1), sampler.num_replicas), sampler.seed


def _may_have_parts(sampler, dataset):
    """Whether the sampler's ranks are all of the job's, and draw from all of the dataset. Peers of tensor or pipeline
    parallelism, which share a rank of the sampler, must have the same batches."""
    return importance.processes() in (1, sampler.num_replicas) and len(sampler.dataset) == len(dataset)


def _planned(loader, course):
    """The plan of a pass that begins; None: the pass is not a rank's training."""
    if not torch.is_grad_enabled() or datasets.left_alone(loader.dataset):
        return None
    sampler, size, drop_last = importance.batching(loader)
    if not orders.distributed(sampler) or not sampler.shuffle:
        return None
    if _rule is None and not (importance.decides_all() and _may_have_parts(sampler, loader.dataset)):
        return None
    _say_whose(sampler)
    plan = Plan(course, len(sampler), size, drop_last, _rule)
    if importance.decides_all():
        plan.part = _part(sampler)
    return plan


@_safe
def created(iterator, arguments, named):
    """As loader.created, before it."""
    _begin(iterator, arguments[0] if arguments else named["loader"])


@_safe
def reset(iterator, arguments, named):
    """As loader.reset, before it."""
    if not (arguments[1] if len(arguments) > 1 else named.get("first_iter", False)):
        _begin(iterator, arguments[0] if arguments else named["loader"])


def _begin(iterator, loader):
    _plans.drop(iterator)
    course = _courses.get(loader)
    if course is None:
        course = Course()
        _courses.put(loader, course)
    course.plan = None
    course.plan = _planned(loader, course)
    if course.plan is not None:
        _plans.put(iterator, course.plan)


def plan_of(iterator):
    return _plans.get(iterator)


@_safe
def before(iterator):
    """An index is about to be drawn; `loader` has set the plan's samples, if it could."""
    plan = _plans.get(iterator)
    if plan is None or plan.drawing:
        return
    plan.drawing = True
    if not plan.partial() and plan.substitute is None:
        if plan.part is not None and not plan.answered:
            settings.warn_once("samples are read as drawn: no optimizer answers, or it cannot (its log has the reason)")
        return
    if not plan.answered:
        settings.warn_once("an even part of the samples is fetched: no optimizer answers, or there are too many")
    if iterator._auto_collation:
        batch_sampler = iterator._index_sampler
        iterator._sampler_iter = importance.batches(batch_sampler, plan.draw(batch_sampler.sampler))
    else:
        iterator._sampler_iter = plan.draw(iterator._sampler_iter)


@_safe
def given_out(iterator):
    plan = _plans.get(iterator)
    if plan is not None:
        plan.give()


@_safe
def finished(iterator):
    plan = _plans.get(iterator)
    if plan is not None:
        plan.end()


@_safe
def length(loader):
    """As loader.length."""
    course = _courses.get(loader)
    return _batches(None if course is None else course.plan)


@_safe
def length_left(iterator):
    """As loader.length_left."""
    return _batches(_plans.get(iterator))


def _batches(plan):
    return plan.batches if plan is not None and plan.partial() else None
