#!/usr/bin/python3
"""Telling where samples are opened and closed the file, and closing any descriptor of a file takes the
process's locks on it away. And a FIFO in a file's place was waited for."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
from harness import claim

JOB = """
import fcntl, os, subprocess, sys
sys.path.insert(0, sys.argv[1])
import sluice
path, pipe = sys.argv[2], sys.argv[3]
number = sluice.dataset("set", 8)
with open(path, "rb+") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    located = sluice.locate_extents(number, 0, path, range(0, 8000, 1000), [1000] * 8)
    piped = sluice.locate_extent(number, 0, pipe, 0, 1)
    other = subprocess.run([sys.executable, "-c", sys.argv[4], path], env={})
    print(number > 0, located, piped < 0, other.returncode)
"""
LOCK = """
import fcntl, sys
try:
    fcntl.lockf(open(sys.argv[1], "rb+"), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit(3)
"""


def test(place):
    path, pipe = (os.path.join(place.work, "data", name) for name in ("some.bin", "pipe"))
    with open(path, "wb") as file:
        file.write(os.urandom(8000))
    os.mkfifo(pipe)
    done = place.run([sys.executable, "-c", JOB,
                      os.path.join(harness.TOP, "adapters", "python"), path, pipe, LOCK])
    claim(done.returncode == 0, done.stderr)
    claim(done.stdout == "True 0 True 3\n", f"{done.stdout}{done.stderr}")
    claim(subprocess.run([sys.executable, "-c", LOCK, path], check=False).returncode == 0,
          "the lock outlived the job")


if __name__ == "__main__":
    harness.main(test)
