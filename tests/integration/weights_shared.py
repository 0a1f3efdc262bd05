#!/usr/bin/python3
# test: timeout=200
"""A process that reads its rows of the tensors of a safetensors file, in any order: little more than its rows is read from
storage. A header that is damaged changes nothing but that: the job runs as without Sluice."""
import json
import os
import random
import shutil
import struct
import sys

import harness
import slowfs_harness
from harness import claim

MIB = 1 << 20
TENSORS, TENSOR = 48, 8 * MIB
OWN = {"SLUICE_CHECKPOINT": None, "SLUICE_DISTANCE": None, "SLUICE_DATASET": None}
READ = f"""
import mmap, sys
begin, order = int(sys.argv[2]), [int(word) for word in sys.argv[3].split(",")]
part = {TENSOR} // 4
with open(sys.argv[1], "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
    print([sum(memory[at:at + part:4096]) for at in (begin + tensor * {TENSOR} + 2 * part for tensor in order)])
"""


def header_of(**changes):
    entries = {f"layers.{at}.weight": {"dtype": "U8", "shape": [TENSOR // 1024, 1024],
                                       "data_offsets": [at * TENSOR, (at + 1) * TENSOR]} for at in range(TENSORS)}
    entries.update(changes)
    text = json.dumps(entries).encode()
    return text + b" " * (-len(text) % 4096 + 4096 - 8)  # rows begin at a page


def damaged():
    good = header_of()
    yield "text that ends early", struct.pack("<Q", len(good)) + good.replace(b"}", b" ")
    yield "offsets beyond the end", struct.pack("<Q", len(good)) + good.replace(b"[0, ", b"[9, ").replace(
        f", {TENSORS * TENSOR}]".encode(), f", {TENSORS * TENSOR * 9}]".encode()).ljust(len(good))[:len(good)]
    yield "a length beyond the end", struct.pack("<Q", 1 << 60) + good
    yield "nested without end", struct.pack("<Q", len(good)) + b"[" * len(good)


def write(path, head):
    part = random.Random(1).randbytes(MIB)
    with open(path, "wb") as file:
        file.write(head)
        for number in range(TENSORS * (TENSOR // MIB)):
            file.write(part[number:] + part[:number])


def test(place):
    if not os.path.exists("/dev/fuse") or not shutil.which("fusermount3"):
        harness.skip("FUSE is needed")
    source = os.path.join(place.work, "source")
    os.makedirs(source)
    path = os.path.join(source, "model.safetensors")
    ascending = list(range(TENSORS))
    shuffled = random.Random(3).sample(ascending, TENSORS)

    def run(order, begin, library):
        with slowfs_harness.Mount(place.folder, source, "--read-latency", "2") as mount:
            done = place.run([sys.executable, "-c", READ, mount.path("model.safetensors"), str(begin),
                              ",".join(map(str, order))], **library, **OWN)
            claim(done.returncode == 0, done.stderr)
            return done.stdout, mount.stats()["totals"]["read_bytes"]

    good = header_of()
    write(path, struct.pack("<Q", len(good)) + good)
    needed = TENSORS * TENSOR // 4
    for name, order in (("in the file's order", ascending), ("shuffled", shuffled)):
        plain, _ = run(order, len(good) + 8, {"library": None})
        found, asked = run(order, len(good) + 8, {})
        print(f"{name}: {asked / needed:.2f} times what is needed")
        claim(found == plain, f"{name}: another result")
        claim(asked <= 1.5 * needed, f"{name}: {asked} bytes were read, {needed} are needed")
    for name, head in damaged():
        write(path, head)
        plain, _ = run(ascending[:8], len(head), {"library": None})
        found, _ = run(ascending[:8], len(head), {})
        claim(found == plain, f"{name}: another result")


if __name__ == "__main__":
    harness.main(test)
