"""Time limits that a busy machine does not break.

A limit is given in seconds of a machine that has nothing else to do. On one where more wants to
run than there are processors, a second counts for less: with a load of 6 on two processors a
third. What hangs on an idle machine still ends after its limit, and after MOST_TIMES of it on any.
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


class Limit:
    """`seconds` of an idle machine, from its making on. Poll expired() about every second."""

    def __init__(self, seconds, share=share_of_processor, clock=time.monotonic):
        self.seconds, self.share, self.clock = seconds, share, clock
        self.started = self.seen = clock()
        self.used = 0.0

    def expired(self):
        now = self.clock()
        self.used += (now - self.seen) * self.share()
        self.seen = now
        return self.used >= self.seconds or now - self.started >= MOST_TIMES * self.seconds
