"""The one pause of the integration tests: they wait for conditions, with deadlines."""
import time

_PAUSE = 0.002  # s between two looks


def wait_for(condition, seconds):
    """What `condition()` returns once that is true; what it last returned after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        got = condition()
        if got or time.monotonic() > deadline:
            return got
        time.sleep(_PAUSE)
