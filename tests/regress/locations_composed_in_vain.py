#!/usr/bin/python3
# test: timeout=300
"""A dataset's paths and an order's indices were written to memory at each attempt to pass them on, also while
no question would be asked: some 60 ms of the job for nothing."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "integration"))
import harness  # noqa: E402
from harness import claim  # noqa: E402

JOB = """
import errno, os, signal, sys, time
sys.path.insert(0, sys.argv[1])
import sluice
def written():
    with open("/proc/self/io") as text:
        return next(int(line.split()[1]) for line in text if line.startswith("wchar:"))
SAMPLES = 40000
begun = time.monotonic()
while (number := sluice.dataset("data", SAMPLES)) <= 0 and time.monotonic() < begun + 100:
    assert number in (-errno.EAGAIN, -errno.ENOTCONN, -errno.ETIMEDOUT), number  # a busy machine
assert number > 0, number
paths = ["/data/%08d" % at for at in range(SAMPLES)]
print("declared", flush=True)
sys.stdin.readline()
calls = {"locations": lambda: sluice.locate_files(number, 0, paths),
         "order": lambda: sluice.publish_order(number, 1, range(SAMPLES))}
deadline, late = time.monotonic() + 120, 0
while late < 3:  # then nothing is left to wait with, for seconds
    late += sluice.dataset("other", 7) == -errno.ETIMEDOUT
    assert time.monotonic() < deadline, "questions are still asked"
assert sluice.dataset("other", 7) == -errno.EAGAIN
for name, call in calls.items():
    before = written()
    error = call()
    assert error == -errno.EAGAIN, (name, error)
    print(name, written() - before, flush=True)
"""


def test(place):
    place.patience = None
    job = place.start([sys.executable, "-c", JOB, harness.PYTHON_ADAPTER], stdin=subprocess.PIPE,
                      SLUICE_STAGE="always")
    claim(job.stdout.readline() == "declared\n", "the dataset is declared")
    [optimizer] = place.optimizers()
    os.kill(optimizer, signal.SIGSTOP)
    try:
        out, err = job.communicate("\n", timeout=200)
    finally:
        os.kill(optimizer, signal.SIGCONT)
    claim(job.returncode == 0, err)
    for line in out.splitlines():
        name, size = line.split()
        claim(int(size) < 4096, f"{size} bytes were written for the {name}, though no question was asked")


if __name__ == "__main__":
    harness.main(test)
