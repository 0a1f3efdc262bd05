"""What PyTorch's own samplers will draw, replayed on a copy of their generator's state.

Only exact types are known: a subclass may draw anything. A replay makes the draws that the sampler
makes, in its order and sizes, and uses none of PyTorch's parallel operations, which would start
threads that the job's forked workers do not expect. Orders are flat arrays of 64-bit integers
(numpy's where the job has numpy).
"""
import abc
import array
import copy
import sys

import torch
from torch.utils.data import sampler as samplers

LARGEST = 1 << 25  # samples of an epoch predicted as a whole: 256 MiB
MOST_WORDS = 64    # drawn between two epochs of a loader
SEED_WORDS = 2     # of a seed, which a loader draws for each of its iterators


def known(sampler):
    """How to replay `sampler`, or None. Draws and changes nothing."""
    kind = type(sampler)
    if kind in (list, tuple, range, samplers.SequentialSampler) or distributed(sampler):
        recipe = Fixed(sampler)
    elif kind is samplers.RandomSampler:
        recipe = Random(sampler)
    elif kind is samplers.SubsetRandomSampler:
        recipe = Subset(sampler)
    elif kind is samplers.WeightedRandomSampler:
        recipe = Weighted(sampler)
    else:
        return None
    generator = recipe.generator
    if len(sampler) > LARGEST or (generator is not None and generator.device.type != "cpu"):
        return None
    return recipe


def distributed(sampler):
    """Whether it is PyTorch's own DistributedSampler."""
    module = sys.modules.get("torch.utils.data.distributed")
    return module is not None and type(sampler) is module.DistributedSampler


def clone(state):
    """A new generator in that state."""
    generator = torch.Generator()
    generator.set_state(state)
    return generator


def draw_seed(generator):
    """Draws as DataLoader does for its base seed and RandomSampler for its own generator's seed."""
    return int(torch.empty((), dtype=torch.int64, device="cpu").random_(generator=generator).item())


def skip(generator, words):
    """Draws so many 32-bit words. Seeds are two."""
    for _ in range(words):
        torch.empty((), dtype=torch.int32, device="cpu").random_(generator=generator)


def words_of(loader, recipe):
    """How many words of the recipe's generator the loader itself draws between two epochs."""
    persistent = getattr(loader, "persistent_workers", False) and loader.num_workers > 0
    drawn_from = getattr(loader, "generator", None) or torch.default_generator
    return 0 if persistent or recipe is None or recipe.generator is not drawn_from else SEED_WORDS


def words_between(left, state):
    """How many 32-bit words were drawn from a generator in the state `left` until it was in `state`: seeds, as loaders and
    samplers draw when their epochs begin, and what else the job has drawn. None: more than MOST_WORDS."""
    generator = clone(left)
    for count in range(MOST_WORDS + 1):
        if torch.equal(generator.get_state(), state):
            return count
        skip(generator, 1)
    return None


def flat(values):
    """A tensor or a sequence of whole numbers as an order. TypeError for other values."""
    if isinstance(values, torch.Tensor):
        if "numpy" in sys.modules:
            return values.numpy()
        values = values.tolist()
    if isinstance(values, range) and "numpy" in sys.modules:
        return sys.modules["numpy"].arange(values.start, values.stop, values.step, dtype="int64")
    return array.array("q", values)


class Recipe(abc.ABC):
    """generator  the generator that is drawn from, None if the order does not depend on one
    own        whether that generator is the sampler's own, not the process's
    alike      whether another epoch's replay is the same but for the generator's state
    chunk      positions whose draws are made together; 0: all before the first sample
    eager      whether replaying is safe while workers are still to be forked
    given      whether the job supplied the numbers, which may be out of range"""
    generator, own, alike, chunk, eager, given = None, False, False, 0, True, False

    def __init__(self, sampler):
        self.sampler = sampler

    def from_generator(self):
        self.alike = True
        self.own = self.sampler.generator is not None
        self.generator = self.sampler.generator if self.own else torch.default_generator

    def see(self, iterator):
        """The loader's iterator was made, or draws its first index next. Whether something else follows from it than
        when it was last seen."""
        return False

    @abc.abstractmethod
    def replay(self, generator, start=0):
        """The order from position `start` (a multiple of chunk) on; `generator`, a clone in the
        state before that position, is left as the sampler leaves its own at the epoch's end."""

    def epoch(self):
        """DistributedSampler's epoch; None for the others, and where it makes no difference."""
        return None


class Fixed(Recipe):
    """Orders that depend on no generator: SequentialSampler, lists and ranges, and
    DistributedSampler, which seeds a generator of its own for each epoch."""

    def __init__(self, sampler):
        super().__init__(sampler)
        self.given = type(sampler) in (list, tuple, range)

    def replay(self, generator, start=0):
        sampler = self.sampler
        if type(sampler) is samplers.SequentialSampler:
            sampler = range(len(sampler.data_source))
        elif type(sampler) not in (list, tuple, range):
            sampler = list(sampler)
        return flat(sampler)

    def epoch(self):
        shuffled = distributed(self.sampler) and self.sampler.shuffle
        return self.sampler.epoch if shuffled else None

    def at_epoch(self, epoch):
        other = copy.copy(self.sampler)
        other.epoch = epoch
        return type(self)(other)


class Random(Recipe):
    TOGETHER = 32  # indices that PyTorch draws at once with replacement

    def __init__(self, sampler):
        super().__init__(sampler)
        self.from_generator()
        self.size, self.count = len(sampler.data_source), sampler.num_samples
        if self.own:
            whole = self.TOGETHER if sampler.replacement else self.size
            self.chunk = whole if self.count > whole else 0

    def replay(self, generator, start=0):
        if not self.own:
            private = torch.Generator()
            private.manual_seed(draw_seed(generator))
            generator = private
        count = self.count - start
        if self.sampler.replacement:
            return self.with_replacement(generator, count)
        parts = [torch.randperm(self.size, generator=generator, device="cpu")
                 for _ in range(count // self.size)]
        # The sampler makes this draw even where it uses nothing of it.
        if self.own or count % self.size:
            rest = torch.randperm(self.size, generator=generator, device="cpu")
            parts.append(rest[:count % self.size])
        if len(parts) == 1 or len(parts) == 2 and not len(parts[1]):
            return flat(parts[0])
        joined = array.array("q")
        for part in parts:
            joined.extend(part.tolist())
        return joined

    def with_replacement(self, generator, count):
        drawn = array.array("q")
        for together in [self.TOGETHER] * (count // self.TOGETHER) + [count % self.TOGETHER]:
            drawn.extend(torch.randint(high=self.size, size=(together,), dtype=torch.int64,
                                       generator=generator, device="cpu").tolist())
        return drawn


class Subset(Recipe):
    given = True

    def __init__(self, sampler):
        super().__init__(sampler)
        self.from_generator()

    def replay(self, generator, start=0):
        indices = self.sampler.indices
        order = torch.randperm(len(indices), generator=generator, device="cpu")
        if isinstance(indices, torch.Tensor):
            indices = indices.tolist()
        elif type(indices) not in (list, tuple, range):
            raise Unknown("indices are a %s" % type(indices).__name__)
        return array.array("q", [indices[i] for i in order.tolist()])


class Weighted(Recipe):
    eager = False  # torch.multinomial may be parallel

    def __init__(self, sampler):
        super().__init__(sampler)
        self.from_generator()

    def replay(self, generator, start=0):
        sampler = self.sampler
        return flat(torch.multinomial(sampler.weights, sampler.num_samples, sampler.replacement,
                                      generator=generator))


class Unknown(Exception):
    """The sampler's order cannot be replayed (without running code of the job) or published."""
