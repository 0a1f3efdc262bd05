#!/usr/bin/python3
# test: timeout=120
"""The keys of an LMDB were looked for to the end, however slow the mount, though the job that had declared
them was long gone: the mount could not be taken off."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
import slowfs_harness
import stage_testing
from harness import claim, until

# Records so small that they lie in some 18000 leaf pages.
MAKE = """
import lmdb, sys
with lmdb.open(sys.argv[1], map_size=1 << 28) as env, env.begin(write=True) as txn:
    for i in range(400000):
        txn.put(b"%08d" % i, b"v" * 150, append=True)
"""
JOB = """
import sys
sys.path.insert(0, sys.argv[1])
import sluice
number = sluice.dataset("set", 1000)
keys = [b"%08d" % i for i in range(1000)]
print(sluice.locate_keys(number, 0, sys.argv[2] + "/data.mdb", keys), flush=True)
sys.stdin.readline()
"""


def test(place):
    if not stage_testing.slow_mounts():
        harness.skip("no FUSE here")
    source = os.path.join(place.work, "set")
    done = place.run([sys.executable, "-c", MAKE, source], library=None)
    claim(done.returncode == 0, done.stderr)
    with slowfs_harness.Mount(place.work, source, "--latency", "300") as mount:
        argv = [sys.executable, "-c", JOB, os.path.join(harness.TOP, "adapters/python"), mount.point]
        job = place.start(argv, stdin=subprocess.PIPE, SLUICE_DATASET=None, SLUICE_PLACES="off",
                          SLUICE_LINGER="60")
        claim(job.stdout.readline() == "0\n", "the keys were refused")
        before = mount.stats()["totals"]["read_bytes"]
        until(lambda: mount.stats()["totals"]["read_bytes"] > before + (256 << 10), 30, "the listing")
        _, err = job.communicate("\n", timeout=30)
        claim(job.returncode == 0, err)

        def taken_off():
            return not subprocess.run(["fusermount3", "-u", mount.point], capture_output=True,
                                      check=False).returncode
        until(taken_off, 10, "the mount is free after its job")


if __name__ == "__main__":
    harness.main(test)
