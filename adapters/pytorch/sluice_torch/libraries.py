"""Samplers of libraries that stand on PyTorch: torchdata's, whose loaders may begin in mid-epoch, and accelerate's, whose
ranks take parts of batches. As in `orders`, only exact types are known, and nothing of the job is drawn from or changed.
"""
import copy
import itertools
import sys

import torch
from torch.utils.data import sampler as samplers

from . import orders

TORCHDATA, ACCELERATE = "torchdata.stateful_dataloader.sampler", "accelerate.data_loader"
MOST = 1 << 22  # samples whose batches are wrapped: each takes a moment in Python


def _is(value, module, *names):
    """Whether the class of `value` is one of these in the module `module`, if the job has imported it."""
    module = sys.modules.get(module)
    return module is not None and any(type(value) is getattr(module, name, None) for name in names)


def known(sampler):
    """How to replay `sampler`, or None."""
    recipe = None
    if _is(sampler, ACCELERATE, "SeedableRandomSampler"):
        recipe = Seeded(sampler) if _on_cpu(sampler) else None
    elif _is(sampler, TORCHDATA, "RandomSampler"):
        recipe = Drawn(sampler) if _on_cpu(sampler) else None
    elif _is(sampler, TORCHDATA, "StatefulDistributedSampler"):
        recipe = Shard(sampler)
    return recipe if recipe is not None and len(sampler) <= orders.LARGEST else None


def _on_cpu(sampler):
    if sampler.generator is not None:
        return sampler.generator.device.type == "cpu"
    return torch.empty(0).device.type == "cpu"  # the default device, on which it makes one


def is_batch_sampler(sampler):
    return type(sampler) is samplers.BatchSampler or _is(sampler, TORCHDATA, "BatchSampler")


def unwrapped(sampler):
    """(sampler, wrappers): the batch sampler that those of accelerate enclose, and these, the outermost first."""
    wrappers = []
    while _is(sampler, ACCELERATE, "BatchSamplerShard", "SkipBatchSampler"):
        wrappers.append(sampler)
        sampler = sampler.batch_sampler
    return sampler, wrappers


def wrapped(wrappers, batch_sampler, order):
    """The samples that the wrappers give of the order in which the batch sampler's own sampler draws them."""
    if len(order) > MOST:
        raise orders.Unknown("too many samples for a sampler of batches")
    inner = samplers.BatchSampler(order.tolist(), batch_sampler.batch_size, batch_sampler.drop_last)
    for wrapper in reversed(wrappers):
        outer = copy.copy(wrapper)
        outer.batch_sampler = inner
        inner = outer
    return orders.flat([index for batch in inner for index in batch])


class Seeded(orders.Fixed):
    """accelerate's SeedableRandomSampler seeds its generator for each epoch."""

    def replay(self, generator, start=0):
        sampler, seeded = self.sampler, torch.Generator()
        seeded.manual_seed(sampler.epoch + sampler.initial_seed)
        return orders.Random(samplers.RandomSampler(sampler.data_source, sampler.replacement, sampler.num_samples,
                                                    seeded)).replay(seeded)

    def epoch(self):
        return self.sampler.epoch


class Shard(orders.Fixed):
    """torchdata's StatefulDistributedSampler, from its shard's first sample on."""

    def replay(self, generator, start=0):
        module = sys.modules["torch.utils.data.distributed"]
        return orders.flat(list(module.DistributedSampler.__iter__(self.sampler)))

    def epoch(self):
        return self.sampler.epoch if self.sampler.shuffle else None


class Drawn(orders.Recipe):
    """torchdata's RandomSampler, whose iterators draw when they are made, and are where their state says."""
    eager = False  # with workers another iterator is made after the first

    def __init__(self, sampler):
        super().__init__(sampler)
        self.generator = sampler.generator
        self.drawn = self.yielded = None

    def see(self, iterator):
        drawn = iterator._sampler_iter
        if _is(drawn, TORCHDATA, "_BatchSamplerIterator"):
            drawn = drawn.sampler_iter
        if not _is(drawn, TORCHDATA, "_StatefulRandomSamplerIterator"):
            drawn = None
        seen = self.drawn, self.yielded
        self.drawn, self.yielded = drawn, drawn and drawn.yielded
        return seen != (self.drawn, self.yielded)

    def replay(self, generator, start=0):
        drawn = self.drawn
        if drawn is None:
            raise orders.Unknown("its iterator is not known")
        left = drawn.num_samples - drawn.yielded
        order = drawn.perm[drawn.perm_index:]
        while len(order) < left:
            more = (torch.randint(high=drawn.n, size=(drawn.chunk_size,), dtype=torch.int64, generator=generator)
                    if drawn.replacement else torch.randperm(drawn.n, generator=generator))
            order = order + more.tolist()
        return orders.flat(order[:left])


def skipped(iterator):
    """How many samples of its epoch an iterator of a StatefulDataLoader leaves out, because the one that it resumes has
    yielded them; 0 where Drawn sees where it is, or it is not known. The first index was not drawn yet."""
    indices = getattr(iterator, "_sampler_iter_yielded", 0)
    if not indices:
        return 0
    drawn = iterator._sampler_iter
    if _is(drawn, TORCHDATA, "_BatchSamplerIterator"):
        return 0 if _is(drawn.sampler_iter, TORCHDATA, "_StatefulRandomSamplerIterator") else drawn.samples_yielded
    if type(drawn) is not itertools.islice:
        return 0
    if not iterator._auto_collation:
        return indices
    return indices * iterator._index_sampler.batch_size if is_batch_sampler(iterator._index_sampler) else 0
