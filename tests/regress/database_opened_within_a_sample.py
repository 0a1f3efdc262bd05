#!/usr/bin/python3
"""A worker that opens its database when it reads its first sample was taken for one whose sample is that
whole file: it was copied to memory, and the next worker waited for the copy."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
from harness import claim, until

BYTES, COUNT = 100 << 20, 64
JOB = f"""
import os, sys
sys.path.insert(0, sys.argv[1])
import sluice
number = sluice.dataset("set", {COUNT})
for epoch in range(3):
    sluice.publish_order(number, epoch, range({COUNT}), whole=True)
    print("ordered", flush=True)
    sys.stdin.readline()
    file = None
    for index in range({COUNT}):
        with sluice.sample(number, index):
            if file is None:
                file = os.open(sys.argv[2] + "/large", os.O_RDONLY)
            os.pread(file, 1000, index * 1000)
            if index > 0:
                with open(sys.argv[2] + "/small%d" % index, "rb") as small:
                    small.read()
    os.close(file)
print("read", flush=True)
sys.stdin.readline()
"""


def fetched(place):
    return (harness.status(place) or {}).get("stage", {"fetched_files": 0, "fetched_bytes": 0})


def test(place):
    folder = os.path.join(place.work, "set")
    os.mkdir(folder)
    with open(os.path.join(folder, "large"), "wb") as file:
        file.truncate(BYTES)
    for number in range(COUNT):
        with open(os.path.join(folder, f"small{number}"), "wb") as file:
            file.write(b"small")
    argv = [sys.executable, "-c", JOB, os.path.join(harness.TOP, "adapters", "python"), folder]
    job = place.start(argv, stdin=harness.subprocess.PIPE, SLUICE_STAGE="always",
                      SLUICE_MEMORY="1G", SLUICE_DATASET=None, SLUICE_CHECKPOINT=None,
                      SLUICE_DISTANCE=None, SLUICE_PLACES="off")
    try:
        for epoch in range(3):
            claim(job.stdout.readline() == "ordered\n", "the job ended early")
            if epoch > 0:
                until(lambda: fetched(place)["fetched_files"] >= COUNT - 1, 10,
                      "the small files are staged")
            job.stdin.write("\n")
            job.stdin.flush()
        claim(job.stdout.readline() == "read\n", "the job ended early")
        known = harness.status(place)["datasets"][0]["known"]
        claim(known == COUNT - 1, f"{known} samples are known: the large file is one of them")
        claim(fetched(place)["fetched_bytes"] < BYTES, "the large file was staged")
        _, err = job.communicate("\n", timeout=30)
        claim(job.returncode == 0, err)
    finally:
        job.kill()


if __name__ == "__main__":
    harness.main(test)
