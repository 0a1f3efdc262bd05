"""How the integration tests wait: for conditions and for jobs, with deadlines in seconds of an idle
machine (scripts/machine_time.py)."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
import machine_time  # noqa: E402

_PAUSE = 0.002  # s between two looks


def wait_for(condition, seconds):
    """What `condition()` returns once that is true; what it last returned after `seconds`."""
    limit = machine_time.Limit(seconds)
    look = time.monotonic()
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() >= look:
            if limit.expired():
                return got
            look = time.monotonic() + min(machine_time.LOOK_SECONDS, seconds / 4)
        time.sleep(_PAUSE)


def communicate(job, seconds):
    """job.communicate(), and its TimeoutExpired once `seconds` are used up."""
    limit = machine_time.Limit(seconds)
    while True:
        try:
            return job.communicate(timeout=machine_time.LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            if limit.expired():
                raise
