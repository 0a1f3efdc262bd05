#!/usr/bin/python3
# test: timeout=200
"""Shards that are read one after the other: when nothing of one is left to be read, the next one is begun, before the job
has opened it. In another order none is."""
import os
import shutil
import subprocess
import sys

import harness
import slowfs_harness
from harness import claim

MIB = 1 << 20
SHARDS, SIZE = 4, 24 * MIB
OWN = {"SLUICE_CHECKPOINT": None, "SLUICE_DISTANCE": None, "SLUICE_DATASET": None}
# Waits for a line before each file.
READ = """
import sys
for line in sys.stdin:
    with open(line.strip(), "rb") as file:
        print(sum(part[0] + len(part) for part in iter(lambda: file.read(1 << 18), b"")), flush=True)
"""


def name(shard):
    return f"model-{shard:05}-of-{SHARDS:05}.safetensors"


class Reader:
    def __init__(self, place, mount):
        self.mount = mount
        self.job = place.start([sys.executable, "-c", READ], stdin=subprocess.PIPE, **OWN)

    def read(self, shard):
        self.job.stdin.write(self.mount.path(name(shard)) + "\n")
        self.job.stdin.flush()
        return self.job.stdout.readline()

    def end(self):
        self.job.stdin.close()
        claim(self.job.wait(30) == 0, "the job failed")


def asked(mount):
    return mount.stats()["totals"]["read_bytes"]


def test(place):
    if not os.path.exists("/dev/fuse") or not shutil.which("fusermount3"):
        harness.skip("FUSE is needed")
    source = os.path.join(place.work, "source")
    os.makedirs(source)
    expected = {}
    for shard in range(1, SHARDS + 1):
        with open(os.path.join(source, name(shard)), "wb") as file:
            file.write(os.urandom(MIB) * (SIZE // MIB))
    for shard in range(1, SHARDS + 1):
        with open(os.path.join(source, name(shard)), "rb") as file:
            expected[shard] = f"{sum(part[0] + len(part) for part in iter(lambda: file.read(1 << 18), b''))}\n"
    with slowfs_harness.Mount(place.folder, source, "--read-latency", "2") as mount:
        job = Reader(place, mount)
        for shard in range(1, SHARDS + 1):
            claim(job.read(shard) == expected[shard], f"shard {shard} differs")
            if shard < SHARDS:
                begun = shard * SIZE + 8 * MIB
                harness.until(lambda least=begun: asked(mount) >= least, 30, f"shard {shard + 1} is begun")
        job.end()
        claim(asked(mount) <= SHARDS * SIZE + MIB, f"{asked(mount)} bytes were read")
    with slowfs_harness.Mount(place.folder, source, "--read-latency", "2") as mount:
        job = Reader(place, mount)
        for shard in (3, 1, 4, 2):
            claim(job.read(shard) == expected[shard], f"shard {shard} differs")
        job.end()
        claim(asked(mount) <= SHARDS * SIZE + MIB, f"{asked(mount)} bytes were read in another order")


if __name__ == "__main__":
    harness.main(test)
