"""How many samples the epochs of a rank fetch, and at which of its sampler's draws. All ranks of a job must
come to the same number without asking anybody, or those with a batch more would wait for the others for
ever: it follows from what all of them have alike. Nothing here can fail on one of them alone."""


class Course:
    """The epochs of one loader. trained: how many count; who only looks at a batch has not trained one."""

    def __init__(self):
        self.trained = 0


class Turn:
    """One pass of a loader. number: of its epoch, from 0; the next pass has the same unless this one counts,
    by its second batch or by its end."""

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
    """As policy/importance/selector.cc has it."""
    if epoch < warm_up:
        return True
    return full_every != 0 and (epoch - warm_up + 1) % full_every == 0


def due(length, size, epoch, rule):
    """How many of a shard's `length` samples epoch `epoch` fetches, in batches of `size`: whole ones, of which
    there is one at least, or all. rule: sluice.selection()."""
    warm_up, full_every, share = rule
    if fetches_all(epoch, warm_up, full_every):
        return length
    batches = -(-round(share * length) // size)
    return min(max(batches, 1) * size, length)


def spread(values, count, turn):
    """`count` of the values, which are no fewer, evenly spread; others as `turn` goes on."""
    return [values[(number * len(values) // count + turn) % len(values)] for number in range(count)]


def fitted(drawn, chosen, count, turn):
    """`count` of the samples that are drawn: those that were chosen (by sample, not 0), less or more as many
    as it takes."""
    picked = [index for index in drawn if chosen[index]]
    if len(picked) >= count:
        return spread(picked, count, turn)
    return picked + spread([index for index in drawn if not chosen[index]], count - len(picked), turn)


def exactly(drawn, wanted, length, takes):
    """`wanted` of the `length` samples that are drawn: where takes(position, sample) says so, as far as that
    gives as many."""
    left = wanted
    for position, index in enumerate(drawn):
        if left > 0 and (left >= length - position or takes(position, index)):
            left -= 1
            yield index
