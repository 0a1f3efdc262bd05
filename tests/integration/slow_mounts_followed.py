#!/usr/bin/python3
# test: timeout=120
"""A file of 16 MiB and more is data without being named on a network or FUSE mount, and only there; smaller ones are
not. How many bytes its loader has in memory in time is the report's."""
import json
import os
import shutil
import sys

import harness
import slowfs_harness
from harness import claim

MIB = 1 << 20
SIZES = {"big": 24 * MIB, "small": 12 * MIB}
OWN = {"SLUICE_CHECKPOINT": None, "SLUICE_DISTANCE": None, "SLUICE_DATASET": None}
READ = """
import sys
with open(sys.argv[1], "rb") as file:
    print(sum(part[0] + len(part) for part in iter(lambda: file.read(1 << 18), b"")))
"""
MAP = """
import mmap, sys
with open(sys.argv[1], "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
    print(sum(memory[at] for at in range(0, len(memory), 4096)))
"""


def prefetched(place, code, path, expected):
    """Bytes that were prefetched for a program that reads the file, and prints what is `expected`."""
    argv = [sys.executable, "-c", code, path]
    report = os.path.join(place.work, "report.json")
    done = place.run(argv, SLUICE_REPORT=report, **OWN)
    claim(done.returncode == 0 and done.stdout == expected, done.stdout + done.stderr)
    if not os.path.exists(report):
        return 0
    with open(report, encoding="utf-8") as text:
        found = json.load(text)
    os.unlink(report)
    return found["precached_bytes"]


def test(place):
    if not os.path.exists("/dev/fuse") or not shutil.which("fusermount3"):
        harness.skip("FUSE is needed")
    source = os.path.join(place.work, "source")
    os.makedirs(source)
    for name, size in SIZES.items():
        with open(os.path.join(source, name), "wb") as file:
            file.write(os.urandom(MIB) * (size // MIB))

    def on_a_mount(code, name, followed):
        expected = place.run([sys.executable, "-c", code, os.path.join(source, name)], library=None).stdout
        with slowfs_harness.Mount(place.folder, source, "--read-latency", "5") as mount:
            some = prefetched(place, code, mount.path(name), expected)
            claim(place.run([sys.executable, "-c", code, mount.path(name)], library=None).stdout == expected, name)
        what = f"{some} bytes of {name} were prefetched on a FUSE mount"
        if followed:
            harness.in_time(some > MIB, what)
        else:
            claim(some <= MIB, what)

    for code in (READ, MAP):
        for name, followed in (("big", True), ("small", False)):
            harness.repeated(place, on_a_mount, code, name, followed)
        path = os.path.join(source, "big")
        some = prefetched(place, code, path, place.run([sys.executable, "-c", code, path], library=None).stdout)
        claim(some == 0, f"{some} bytes were prefetched on a local disk")


if __name__ == "__main__":
    harness.main(test)
