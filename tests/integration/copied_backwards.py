#!/usr/bin/python3
# test: timeout=300 turns
"""A mapped file whose bytes are read from its end to its begin, as the C library copies large blocks that lie alike
within their pages: the whole at once, or tensor after tensor. It is in memory in time, and little else is read."""
import json
import os
import shutil
import sys

import harness
import slowfs_harness
from harness import claim

MIB = 1 << 20
SIZE = 160 * MIB
OWN = {"SLUICE_CHECKPOINT": None, "SLUICE_DISTANCE": None, "SLUICE_DATASET": None}
# argv: file, bytes of a tensor, bytes that are read.
JOB = """
import hashlib, mmap, sys
path, tensor, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
whole = hashlib.sha256()
with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
    for begin in range(0, size, tensor):
        for page in range(begin + tensor - 4096, begin - 1, -4096):
            whole.update(memory[page:page + 4096])
print(whole.hexdigest())
"""


def check(place, source, tensor, size):
    argv = [sys.executable, "-c", JOB]
    tail = [str(tensor), str(size)]
    plain = place.run([*argv, os.path.join(source, "data"), *tail], library=None)
    report = os.path.join(place.work, f"report-{tensor}-{size}")
    with slowfs_harness.Mount(place.folder, source, "--latency", "2", "--bandwidth", "200") as mount:
        under = place.run([*argv, mount.path("data"), *tail], SLUICE_REPORT=report, **OWN)
        stats = mount.stats()
        harness.drive.end_optimizer(place.sockets)
    harness.same(plain, under, f"tensors of {tensor} bytes")
    own = sum(one["read_bytes"] for one in stats["processes"].values() if one["command"] != "sluice-optimize")
    read = stats["totals"]["read_bytes"]
    with open(report, encoding="utf-8") as text:
        metrics = json.load(text)
    os.unlink(report)
    what = f"tensors of {tensor}, {size} bytes: {own} read by the job, {read} in all, {metrics}"
    harness.in_time(own <= size // 2, f"most was not read ahead: {what}")
    claim(read < size * 2, f"too much was read: {what}")


def test(place):
    if not os.path.exists("/dev/fuse") or not shutil.which("fusermount3"):
        harness.skip("FUSE is needed")
    source = os.path.join(place.work, "source")
    os.makedirs(source)
    with open(os.path.join(source, "data"), "wb") as file:
        for _ in range(SIZE // MIB):
            file.write(os.urandom(MIB))
    for tensor, size in ((80 * MIB, 80 * MIB), (10 * MIB, SIZE)):
        harness.repeated(place, check, place, source, tensor, size)


if __name__ == "__main__":
    harness.main(test)
