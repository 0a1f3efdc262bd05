#!/usr/bin/python3
# test: timeout=120
"""A job with long-lived mappings lost pre-caching for good when the optimizer was killed. Now the
next is notified of them; the job's own locks on the file stay; and `sluice stop` is obeyed."""
import fcntl
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
from harness import claim, until

# Maps, and at each line of its input touches what comes next and says so.
JOB = """
import fcntl, mmap, sys
file = open(sys.argv[1], "rb")
data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
lock = open(sys.argv[1], "rb+")
fcntl.lockf(lock, fcntl.LOCK_EX, 64, 1 << 40)
at = 0
for line in sys.stdin:
    print(data[at] + data[at + 70000], flush=True)
    at = at + 65536 if at + 65536 + 70000 < len(data) else 0
"""


def is_locked(path):
    with open(path, "rb+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 64, 1 << 40)
        except BlockingIOError:
            return True
        return False


class Job:
    def __init__(self, place, path, mode):
        self.process = place.start([sys.executable, "-c", JOB, path], stdin=subprocess.PIPE,
                                   SLUICE_CHECKPOINT=mode)

    def step(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        claim(self.process.stdout.readline() != "", "the job ended early")


def follows(place):
    """What an optimizer other than those that died knows: jobs that have read something."""
    found = harness.status(place)
    return found is not None and len(found["streams"]) > 0


def killed(place, path, mode):
    job = Job(place, path, mode)

    def until_followed(what):
        def condition():
            job.step()
            return follows(place)
        until(condition, 20, f"{mode}: {what}")

    until_followed("followed by the first optimizer")
    for _ in range(2):
        dead = place.optimizers()
        for pid in dead:
            os.kill(pid, signal.SIGKILL)
        until_followed("followed by the next optimizer")
        claim(place.optimizers() and place.optimizers() != dead, "by another one")
        claim(is_locked(path), f"{mode}: the job lost its lock")
    return job


def end(job):
    out, err = harness.communicate(job.process, 30)
    claim(job.process.returncode == 0, f"status {job.process.returncode}: {out} {err}")
    claim("Traceback" not in err, err)


def test(place):
    path = os.path.join(place.work, "data", "mapped.bin")
    with open(path, "wb") as file:
        for i in range(512):
            file.write(bytes([i % 256]) * 65536)
    for mode in "cell", "page", "observe":
        end(killed(place, path, mode))
    job = killed(place, path, "cell")
    harness.drive.end_optimizer(place.sockets)
    # The library looks once a second whether the optimizer died.
    deadline = time.monotonic() + 2.5
    while time.monotonic() < deadline:
        job.step()
    claim(not place.optimizers(), "an optimizer that was stopped was replaced")
    end(job)


if __name__ == "__main__":
    harness.main(test)
