#!/usr/bin/python3
"""An optimizer that found another one running removed that one's lock file as it went. The next one took the socket
over, and jobs that were with the first were refused: of four workers that started together, one in ten or more."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
from harness import claim, until

JOB = """
import os, sys
with open(sys.argv[1], "rb", 0) as file:
    sys.stdin.readline()
    while file.read(65536):
        pass
"""
JOBS, ROUNDS = 4, 8


def optimizer(place, *arguments):
    return [os.path.join(harness.BUILD, "sluice-optimizer"), "--socket", os.path.join(place.sockets, "s.sock"),
            *arguments]


def lock_stays(place):
    lock = os.path.join(place.sockets, "s.lock")
    with subprocess.Popen(optimizer(place, "--foreground", "--linger", "600"), stderr=subprocess.DEVNULL) as first:
        try:
            until(lambda: harness.status(place), 20, "the optimizer listens")
            inode = os.stat(lock).st_ino
            for _ in range(3):
                other = subprocess.run(optimizer(place, "--foreground"), capture_output=True, text=True, timeout=50,
                                       check=False)
                claim(other.returncode == 0, f"status {other.returncode}: {other.stderr}")
                claim(os.path.exists(lock) and os.stat(lock).st_ino == inode, "the lock file was removed")
                claim(harness.status(place)["pid"] == first.pid, "another took over")
        finally:
            first.terminate()


def jobs_together(place):
    """Each begins with no optimizer running, and all at once."""
    paths = [os.path.join(place.work, "data", f"{number}.bin") for number in range(JOBS)]
    for path in paths:
        with open(path, "wb") as file:
            file.write(os.urandom(2 << 20))
    for number in range(ROUNDS):
        reports = [os.path.join(place.work, f"report-{number}-{job}") for job in range(JOBS)]
        jobs = [place.start([sys.executable, "-c", JOB, path], stdin=subprocess.PIPE, SLUICE_REPORT=report)
                for path, report in zip(paths, reports)]
        for job in jobs:
            job.stdin.write("go\n")
            job.stdin.flush()
        for job, report in zip(jobs, reports):
            _, err = harness.communicate(job, 50)
            claim(job.returncode == 0, err)
            with open(report, encoding="utf-8") as text:
                metrics = json.load(text)
            claim(metrics["passed_refused"] == 0, f"round {number}: refused by an optimizer that it was not with: {err}")
        harness.drive.end_optimizer(place.sockets)


def test(place):
    lock_stays(place)
    jobs_together(place)


if __name__ == "__main__":
    harness.main(test)
