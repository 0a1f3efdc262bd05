#!/usr/bin/python3
"""An optimizer that is ending listens no more but holds its lock for a moment: the one that a job
started in that moment found the lock taken and went, and the job ran without pre-caching."""
import fcntl
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
from harness import claim, until

JOB = """
import sys
for line in sys.stdin:
    with open(sys.argv[1], "rb") as file:
        while file.read(65536):
            pass
    print("read", flush=True)
"""


def waiting(place):
    """Whether an optimizer has found the lock taken and is still there."""
    return bool(harness.drive.optimizers_of(place.sockets))


def test(place):
    path = os.path.join(place.work, "data", "some.bin")
    with open(path, "wb") as file:
        file.write(os.urandom(4 << 20))
    with open(os.path.join(place.sockets, "s.lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        job = place.start([sys.executable, "-c", JOB, path], stdin=harness.subprocess.PIPE)
        try:
            job.stdin.write("now\n")
            job.stdin.flush()
            until(lambda: waiting(place), 20, "the job starts an optimizer")
            fcntl.flock(lock, fcntl.LOCK_UN)
            until(lambda: os.path.exists(os.path.join(place.sockets, "s.sock")), 20,
                  "the optimizer takes over")
            # The job may have been refused by now: it asks again, later.
            def followed():
                job.stdin.write("now\n")
                job.stdin.flush()
                claim(job.stdout.readline() == "read\n", "the job did not go on")
                return harness.processes_followed(place) == [job.pid]
            until(followed, 30, "the job is followed")
            _, err = harness.communicate(job, 30)
            claim(job.returncode == 0, err)
        finally:
            job.kill()


if __name__ == "__main__":
    harness.main(test)
