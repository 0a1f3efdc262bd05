"""How many samples the epochs of a rank fetch, and at which of its sampler's draws. All ranks of a
job must compute the same number without communication, or those with a batch more would wait
forever: it follows from what all have in common. Nothing here can fail on one rank alone."""


class Course:
    """The epochs of one loader. trained: how many count; a job that takes only one batch of a pass
    has not trained an epoch."""

    def __init__(self):
        self.trained = 0


class Turn:
    """One pass of a loader. number: of its epoch, from 0. A pass counts from its second batch or
    its end on; the pass after one that does not count has the same number."""

    def __init__(self, course):
        self.course, self.number, self.given = course, course.trained, 0

    def give(self):
        self.given += 1
        if self.given == 2:
            self.count()

    def end(self):
        if self.given:
            self.count()

    def count(self):
        self.course.trained = max(self.course.trained, self.number + 1)


def fetches_all(epoch, warm_up, full_every):
    """The same as Selector::fetches_all() in policy/importance/selector.cc."""
    if epoch < warm_up:
        return True
    return full_every != 0 and (epoch - warm_up + 1) % full_every == 0


def due(length, size, epoch, rule):
    """How many of a shard's `length` samples epoch `epoch` fetches: whole batches of `size`, at
    least one, or all samples. rule: sluice.selection(); None: all."""
    if rule is None:
        return length
    warm_up, full_every, share = rule
    if fetches_all(epoch, warm_up, full_every):
        return length
    batches = -(-round(share * length) // size)
    return min(max(batches, 1) * size, length)


def spread(values, count, turn):
    """`count` of the values, which are no fewer, evenly spread; another `turn` gives others."""
    return [values[(number * len(values) // count + turn) % len(values)] for number in range(count)]


def fitted(drawn, chosen, count, turn):
    """`count` of the samples that are drawn: those that were chosen (by sample, not 0), reduced or
    filled up to that number."""
    picked = [index for index in drawn if chosen[index]]
    if len(picked) >= count:
        return spread(picked, count, turn)
    return picked + spread([index for index in drawn if not chosen[index]], count - len(picked), turn)


def exactly(drawn, wanted, length, takes):
    """Yields `wanted` of the `length` samples that are drawn: those for which takes(position,
    sample) is true, up to that number; if they are too few, the last drawn samples too."""
    left = wanted
    for position, index in enumerate(drawn):
        if left > 0 and (left >= length - position or takes(position, index)):
            left -= 1
            yield index
