#!/usr/bin/python3
# test: timeout=200
"""Each entry of SLUICE_DATASET was looked up in the file system before the next was compared: where the mount of one
answered nothing, a job waited that opened files of another."""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
import stage_testing
from harness import claim
from stage_testing import Ground

BYTES = 8 << 20


def test(place):
    stage_testing.need_slow_mounts()
    path = os.path.join(place.work, "data", "big")
    with open(path, "wb") as file:
        file.write(os.urandom(BYTES))
    with Ground(place, "hung", 1, "--entry-timeout", "0") as hung:
        os.makedirs(os.path.join(hung.source, "data"))
        dataset = f"{hung.folder()}:{os.path.dirname(path)}"
        os.kill(hung.mount.pid, signal.SIGSTOP)
        try:
            done = place.run(["sha256sum", path], timeout=60, SLUICE_DATASET=dataset)
        finally:
            os.kill(hung.mount.pid, signal.SIGCONT)
    native = place.run(["sha256sum", path], library=None)
    claim((done.returncode, done.stdout) == (native.returncode, native.stdout), f"{done.returncode} {done.stderr}")


if __name__ == "__main__":
    harness.main(test)
