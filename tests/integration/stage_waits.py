#!/usr/bin/python3
# test: timeout=120
"""A file that is being fetched when the job opens it is waited for, which is read from storage once;
but not for longer than the deadline, after which the job reads it for itself."""
import hashlib
import os
import sys

import harness
import stage_testing
from harness import claim, until
from stage_testing import SETTINGS, Ground

# argv: adapters/python, the file. Announces that it will be read, opens it on a word from the test, and
# prints what it held and whether it came from memory.
JOB = r"""
import ctypes, hashlib, sys
sys.path.insert(0, sys.argv[1])
import sluice
path = sys.argv[2]
number = sluice.dataset("waits", 1)
sluice.locate_files(number, 0, [path])
sluice.publish_order(number, 0, [0], whole=True)
print("announced", flush=True)
sys.stdin.readline()
with sluice.sample(number, 0):
    with open(path, "rb") as file:
        about = (ctypes.c_long * 16)()
        ctypes.CDLL(None).syscall(138, file.fileno(), about)
        print(hashlib.sha256(file.read()).hexdigest(), about[0] == 0x01021994, flush=True)
"""


def reads(ground):
    return ground.mount.stats()["totals"]["read_bytes"]


def check(place, latency, waits):
    """Opens the file while the optimizer is at it. `waits`: long enough for the copy."""
    with Ground(place, "mount", latency) as ground:
        data = os.urandom(60000)
        with open(os.path.join(ground.source, "sample"), "wb") as file:
            file.write(data)
        before = ground.mount.stats()["totals"]
        job = place.start([sys.executable, "-c", JOB, os.path.join(harness.TOP, "adapters/python"),
                           ground.folder("sample")], stdin=harness.subprocess.PIPE, **SETTINGS)
        claim(job.stdout.readline() == "announced\n", "the job does not begin")
        until(lambda: ground.mount.stats()["totals"]["requests"] > before["requests"], 20,
              "the optimizer asks for the file")
        out, err = job.communicate("now\n", timeout=100)
        claim(job.returncode == 0, err)
        digest, from_memory = out.split()
        claim(digest == hashlib.sha256(data).hexdigest(), "not its bytes")
        what = f"{latency} ms: from memory: {from_memory}; {err}"
        if waits:
            harness.in_time(from_memory == "True", what)
        else:
            claim(from_memory == "False", what)
        if waits:
            claim(reads(ground) - before["read_bytes"] <= len(data) + 4096, "it was read twice")


def test(place):
    stage_testing.need_slow_mounts()
    harness.repeated(place, check, place, "200", True)
    check(place, "2500", False)


if __name__ == "__main__":
    harness.main(test)
