#!/usr/bin/python3
# test: timeout=200
"""Each entry of SLUICE_DATASET was looked up in the file system before the next was compared: where the mount of one
answered nothing, a job waited that opened files of another, or of none, although the mount had answered before."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
import stage_testing
from harness import claim
from stage_testing import Ground

BYTES = 8 << 20
# Opens a file; another one at a line of its input.
JOB = """
import hashlib, sys
for path in sys.argv[1:]:
    with open(path, "rb", buffering=0) as file:
        print(hashlib.sha256(file.readall()).hexdigest(), flush=True)
    sys.stdin.readline()
"""


def make(folder, name):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(os.urandom(BYTES))
    return path


def test(place):
    stage_testing.need_slow_mounts()
    named = make(os.path.join(place.work, "data"), "big")
    others = [make(place.work, name) for name in ("first", "second")]
    job = [sys.executable, "-c", JOB]
    native = place.run([*job, named, *others], library=None).stdout.splitlines()
    with Ground(place, "hung", 1, "--entry-timeout", "0") as hung:
        os.makedirs(os.path.join(hung.source, "data"))
        dataset = f"{hung.folder()}:{os.path.dirname(named)}"
        later = place.start([*job, *others], stdin=subprocess.PIPE, SLUICE_DATASET=dataset)
        claim(later.stdout.readline().strip() == native[1], "the first of no dataset")
        os.kill(hung.mount.pid, signal.SIGSTOP)
        try:
            done = place.run([*job, named], timeout=60, SLUICE_DATASET=dataset)
            out, err = later.communicate("\n\n", timeout=60)
        finally:
            os.kill(hung.mount.pid, signal.SIGCONT)
    claim((done.returncode, done.stdout.splitlines()) == (0, native[:1]), f"{done.returncode} {done.stderr}")
    claim((later.returncode, out.splitlines()) == (0, native[2:]), f"{later.returncode} {err}")


if __name__ == "__main__":
    harness.main(test)
