#!/usr/bin/python3
"""What a forked worker had counted was lost to the end-of-run report once the optimizer had seen
the worker end and freed its slot."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
from harness import claim, until

JOB = """
import mmap, os, sys
file = open(sys.argv[1], "rb")
data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
if os.fork() == 0:
    sum(data[::65536])
    os._exit(0)
os.wait()
print("ended", flush=True)
sys.stdin.readline()
"""
CELLS = 128


def test(place):
    path = os.path.join(place.work, "data", "some.bin")
    with open(path, "wb") as file:
        file.write(os.urandom(CELLS * 65536))
    report = os.path.join(place.work, "report.json")
    job = place.start([sys.executable, "-c", JOB, path], stdin=harness.subprocess.PIPE,
                      SLUICE_REPORT=report)
    try:
        claim(job.stdout.readline() == "ended\n", "the job did not get so far")
        until(lambda: harness.processes_followed(place) == [job.pid], 10, "the worker's slot is freed")
        _, err = job.communicate("\n", timeout=30)
        claim(job.returncode == 0, err)
    finally:
        job.kill()
    with open(report, encoding="utf-8") as text:
        hits = json.load(text)["checkpoints_hit"]
    claim(hits >= CELLS - 1, f"{hits} checkpoints hit, the worker alone touched {CELLS} cells")


if __name__ == "__main__":
    harness.main(test)
