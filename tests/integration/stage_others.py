#!/usr/bin/python3
# test: timeout=300
"""What another process under the library stores to a shared mapping, or mounts, is in the next open."""
import os
import signal
import subprocess
import time

import harness
import stage_testing
from harness import claim
from stage_testing import SETTINGS, Ground, Tally, victim

NAME = "stage_others"
# The test takes part.
LATE = "mounted_over_while_late", "mounted_over_by_process_without_samples"


def mounted_while_late(place, ground, case):
    """The optimizer is stopped while a process of the job mounts over a staged file: that is waited for."""
    outputs = []
    for library in None, harness.LIBRARY:
        argv = victim(NAME, case, ground.make("late"))
        job = place.start(argv, library, stdin=subprocess.PIPE, **(SETTINGS if library else {}))
        claim(job.stdout.readline() == "staged\n", "the job does not begin")
        pids = place.optimizers() if library else []
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        job.stdin.write("go\n")
        job.stdin.flush()
        if pids:
            time.sleep(0.6)  # longer than an ordinary question is waited for, shorter than a silence
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        out, err = harness.communicate(job, 60)
        claim(job.returncode == 0, err)
        outputs.append(out)
        harness.drive.end_optimizer(place.sockets)
    claim(outputs[0] == outputs[1], case + ": "
          + stage_testing.first_difference(*outputs))


def test(place):
    tally = Tally()
    with Ground(place, "disk") as ground:
        for case in stage_testing.cases_of(place, NAME):
            if case in LATE:
                continue
            argv = victim(NAME, case, ground.make(case))
            plain = place.run(argv, library=None)
            ground.make(case)
            tally.compare(case, plain, place.run(argv, timeout=100, **SETTINGS))
            harness.drive.end_optimizer(place.sockets)
        with place.impatient():
            for case in LATE:
                mounted_while_late(place, ground, case)
    tally.end()


if __name__ == "__main__":
    harness.main(test)
