"""Which sample is read and trained at each position of an epoch (SLUICE_IMPORTANCE=iis): decided by
the optimizer ahead of the sampler's draws, thousands of positions with each request, and checked
here: whatever it answers, an epoch delivers no sample twice, and none outside the loader's part."""
import array
import operator

from . import settings
from .bindings import sluice

TOGETHER = 1 << 14  # positions of one request: as many as the optimizer answers
AHEAD = TOGETHER // 2  # decided positions that are left when the next request is sent


class Delivery:
    """One epoch. requested: what its sampler is expected to draw; selection: which samples are in the
    loader's part."""

    def __init__(self, number, requested, selection):
        self.number, self.epoch, self.selection = number, selection.epoch, selection
        self.requested, self.allowed = requested, selection.allowed
        self.delivered = array.array("q")  # by position, as far as it is decided
        self.taken = bytearray(len(self.allowed))  # by sample, whether it is in `delivered`
        self.instead = {}  # by delivered sample: the requested one, if another
        self.drawn = 0
        self.decides = True

    def extend(self):
        """Decides the next positions, or all that are left if the optimizer does not answer.
        Returns their samples."""
        first = len(self.delivered)
        asked = array.array("q", self.requested[first:first + TOGETHER])
        answer = sluice.serve(self.number, self.epoch, first, asked) if self.selection.declare() else None
        if answer is None:
            self.decides = False
            settings.debug("the optimizer decides no more of this epoch")
            for requested in self.requested[first:]:
                self._deliver(requested, self._due(requested))
            return self.delivered[first:]
        for requested, sample in zip(asked, answer[0]):
            good = sample < len(self.allowed) and self.allowed[sample] and not self.taken[sample]
            self._deliver(requested, sample if good else self._due(requested))
        return self.delivered[first:]

    def _deliver(self, requested, sample):
        self.delivered.append(sample)
        self.taken[sample] = 1
        if sample != requested:
            self.instead[sample] = requested

    def _due(self, requested):
        """`requested`, unless it was delivered as a substitute: then the sample that it replaced,
        or what is due for that one in turn. `requested` also where the sampler draws it a second
        time."""
        due = requested
        for _ in range(len(self.instead) + 1):
            if due is None or not self.taken[due]:
                break
            due = self.instead.get(due)
        return requested if due is None or self.taken[due] else due

    def running_out(self):
        return self.decides and len(self.delivered) - self.drawn <= AHEAD \
            and len(self.delivered) < len(self.requested)

    def take(self, requested):
        """The sampler has drawn `requested`: returns the sample to read, that object itself or a
        number of its type."""
        place, number = self.drawn, operator.index(requested)
        self.drawn += 1
        if place >= len(self.requested):  # of a last batch that is dropped
            return requested
        if self.requested[place] != number:
            self._forget_from(place)
        if place == len(self.delivered):
            self._deliver(number, self._due(number))
        sample = self.delivered[place]
        if sample == number:
            return requested
        if hasattr(requested, "new_tensor"):
            return requested.new_tensor(sample)
        return type(requested)(sample)

    def _forget_from(self, place):
        """The sampler does not draw what was predicted: nothing is decided ahead any more."""
        for sample in self.delivered[place:]:
            self.taken[sample] = 0
            self.instead.pop(sample, None)
        del self.delivered[place:]
        self.decides = False
