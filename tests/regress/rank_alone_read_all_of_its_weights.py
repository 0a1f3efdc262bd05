#!/usr/bin/python3
# test: timeout=120
"""A process that reads its rows of every tensor of a mapped file, as one rank of a tensor-parallel job does on a machine of
its own, was followed as if it read all of it: on near storage it took more than twice as long as without Sluice."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "integration"))
import harness  # noqa: E402
import slowfs_harness  # noqa: E402
from harness import claim  # noqa: E402

MIB = 1 << 20
TENSORS, TENSOR, ROWS = 64, 6 * MIB, 3 * MIB // 2
READ = f"""
import mmap, sys
with open(sys.argv[1], "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
    print(sum(sum(memory[at:at + {ROWS}:4096])
              for at in range({ROWS}, {TENSORS * TENSOR}, {TENSOR})))
"""
OWN = {"SLUICE_CHECKPOINT": None, "SLUICE_DISTANCE": None, "SLUICE_DATASET": None}


def test(place):
    if not os.path.exists("/dev/fuse") or not shutil.which("fusermount3"):
        harness.skip("FUSE is needed")
    source = os.path.join(place.work, "source")
    os.makedirs(source)
    with open(os.path.join(source, "weights"), "wb") as file:
        for _ in range(TENSORS):
            file.write(os.urandom(MIB) * (TENSOR // MIB))
    asked, printed = {}, {}
    for side, library in (("plain", {"library": None}), ("sluice", {})):
        with slowfs_harness.Mount(place.folder, source, "--read-latency", "1") as mount:
            done = place.run([sys.executable, "-c", READ, mount.path("weights")], **library, **OWN)
            claim(done.returncode == 0, done.stderr)
            printed[side], asked[side] = done.stdout, mount.stats()["totals"]["read_bytes"]
    claim(printed["plain"] == printed["sluice"], f"another result: {printed}")
    needed = TENSORS * ROWS
    print({side: f"{count / needed:.2f} times what is needed" for side, count in asked.items()})
    claim(asked["sluice"] <= 2 * needed, f"{asked['sluice']} bytes were read, {needed} are needed")


if __name__ == "__main__":
    harness.main(test)
