#!/usr/bin/python3
# test: timeout=240
"""An optimizer that was stopped for a while cost a process its orders and its stage for good: all that it may
ever wait was used up. It waits little, and tries again."""
import os
import signal
import subprocess
import sys
import time

import harness
from harness import claim, staged, until

FILES = 40
STOPPED = 8.0  # seconds: longer than patience lasts

JOB = """
import os, sys, time
sys.path.insert(0, sys.argv[2])
import sluice
names = [os.path.join(sys.argv[1], name) for name in sorted(os.listdir(sys.argv[1]))]
waited, epoch = 0, 0
for line in sys.stdin:
    began = time.monotonic()
    number = sluice.dataset(line.strip(), len(names))
    error = number
    if number > 0:
        epoch += 1
        error = sluice.publish_order(number, epoch, list(range(len(names))), whole=True)
        if error == 0:
            error = sluice.locate_files(number, 0, names)
    print(error, time.monotonic() - began, flush=True)
"""


class Job:
    def __init__(self, place):
        self.process = place.start(
            [sys.executable, "-c", JOB, os.path.join(place.work, "data"),
             harness.PYTHON_ADAPTER], stdin=subprocess.PIPE,
            SLUICE_STAGE="always")
        self.waited = 0.0

    def ask(self, name):
        """0, or what went wrong, a negative errno."""
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        error, seconds = self.process.stdout.readline().split()
        self.waited += float(seconds)
        return int(error)

    def end(self):
        _, err = harness.communicate(self.process, 60)
        claim(self.process.returncode == 0, err)


def stop_for_a_while(job, optimizer, name):
    """Returns the seconds that the job waited in vain."""
    os.kill(optimizer, signal.SIGSTOP)
    try:
        began, before, late = time.monotonic(), job.waited, 0
        while time.monotonic() < began + STOPPED:
            late += job.ask(name) != 0
            # The job's own work between two questions.
            harness.ended_within(job.process, 0.05)
        claim(late > 2, f"{late} questions were late")
        return job.waited - before
    finally:
        os.kill(optimizer, signal.SIGCONT)


def test(place):
    place.patience = None
    harness.make_samples(place, FILES)
    job = Job(place)
    try:
        until(lambda: job.ask("first") == 0, 100, "the first order is taken")
        [optimizer] = place.optimizers()
        until(lambda: staged(place) == FILES, 60, "the files are staged")
        for number in range(2):
            waited = stop_for_a_while(job, optimizer, "first")
            claim(waited < 1.5, f"the job waited {waited:.2f} s for an optimizer that is stopped")
            print(f"waited {waited * 1000:.0f} ms in {STOPPED} s")
            until(lambda: job.ask(f"again {number}") == 0, 100, "orders are taken again")  # pylint: disable=W0640
        claim(place.optimizers() == [optimizer], "the optimizer is another one")
    finally:
        job.end()
    # Another job's first question is late: its stage is to be had afterwards.
    keeper, late = Job(place), Job(place)
    try:
        until(lambda: keeper.ask("answered") == 0, 100, "the next job's order is taken")
        claim(late.ask("late") in (0, -107, -110), "another job")
        stop_for_a_while(late, optimizer, "later")
        before = staged(place)
        until(lambda: late.ask("at last") == 0, 100, "a late job's order is taken")
        until(lambda: staged(place) >= before, 60, "its files are staged")
    finally:
        keeper.end()
        late.end()


if __name__ == "__main__":
    harness.main(test)
