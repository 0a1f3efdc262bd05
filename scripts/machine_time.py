"""Time limits that a busy machine does not break.

A limit is given in seconds of a machine that has nothing else to do. On one where more wants to
run than there are processors, a second counts for less: with a load of 6 on two processors a
third. What a hypervisor gives to other machines does not count at all. What hangs on an idle
machine still ends after its limit, and after MOST_TIMES of it on any.
"""
import os
import time

MOST_TIMES = 8
LOOK_SECONDS = 1.0


def share_of_processor():
    """The part of a processor, at most 1, that one more runnable thread gets now."""
    try:
        with open("/proc/loadavg", encoding="ascii") as text:
            words = text.read().split()
        # The minute's mean, and what runs at this moment (this process included).
        wanted = max(float(words[0]), int(words[3].split("/")[0]) - 1)
    except (OSError, ValueError, IndexError):
        wanted = 0
    return min(1.0, (os.cpu_count() or 1) / max(wanted, 1))


class Stolen:
    """The part of the processors' time, from one look to the next, that a hypervisor gave to other machines."""

    def __init__(self, path="/proc/stat"):
        self.path = path
        self.seen = self.look()

    def look(self):
        try:
            with open(self.path, encoding="ascii") as text:
                times = [int(word) for word in text.readline().split()[1:9]]  # of all processors; the eighth is stolen
            return sum(times), times[7]
        except (OSError, ValueError, IndexError):
            return 0, 0

    def __call__(self):
        before, self.seen = self.seen, self.look()
        passed, stolen = (now - was for now, was in zip(self.seen, before))
        return min(max(stolen / passed, 0.0), 1.0) if passed > 0 else 0.0


class Limit:
    """`seconds` of an idle machine, from its making on. Poll expired() about every second."""

    def __init__(self, seconds, share=share_of_processor, clock=time.monotonic, stolen=None):
        self.seconds, self.share, self.clock = seconds, share, clock
        self.stolen = stolen or Stolen()
        self.started = self.seen = clock()
        self.used = 0.0

    def expired(self):
        now = self.clock()
        self.used += (now - self.seen) * self.share() * (1 - self.stolen())
        self.seen = now
        return self.used >= self.seconds or now - self.started >= MOST_TIMES * self.seconds
