#!/usr/bin/python3
# test: timeout=600
"""A dataset object of its own for each epoch only ever added to the optimizer's memory, and the 257th was
refused without a word."""
import subprocess
import sys

import harness
from harness import claim, until

OBJECTS, SAMPLES, FILES = 600, 40000, 50
MOST = 360 << 20  # bytes; without letting go it were 28 for each sample and object: 672 MB

JOB = """
import sys, time
sys.path.insert(0, sys.argv[2])
import os, sluice
def sure(call, *arguments, **more):  # late on a busy machine; the next question then waits
    deadline = time.monotonic() + 600
    while True:
        got = call(*arguments, **more)
        if got not in (-11, -110) or time.monotonic() > deadline:
            return got
        time.sleep(0.05)
names = [os.path.join(sys.argv[1], name) for name in sorted(os.listdir(sys.argv[1]))]
objects, samples = int(sys.argv[3]), int(sys.argv[4])
first = sure(sluice.dataset, "object 0", samples)
paths = (names * (samples // len(names)))[:samples]
for at in range(objects):
    number = sure(sluice.dataset, "object %d" % at, samples)
    assert number > 0, (at, number)
    assert number == sure(sluice.dataset, "object %d" % at, samples), "the same has two numbers"
    error = sure(sluice.publish_order, number, 1, range(samples - 1, -1, -1), whole=True)
    assert error == 0, (at, error)
    error = sure(sluice.locate_files, number, 0, paths)
    assert error == 0, (at, error)
    for index in range(samples - 1, samples - 20, -1):
        sluice.begin(number, index)
        with open(paths[index], "rb") as file:
            file.read()
        sluice.end(number, index)
assert sure(sluice.dataset, "object 0", samples) == first, "the first has another number"
print("read", flush=True)
sys.stdin.readline()
"""


def test(place):
    place.patience = None
    folder = harness.make_samples(place, FILES)
    job = place.start([sys.executable, "-c", JOB, folder, harness.PYTHON_ADAPTER, str(OBJECTS),
                       str(SAMPLES)],
                      stdin=subprocess.PIPE, SLUICE_STAGE="always")
    try:
        if job.stdout.readline() != "read\n":
            claim(False, job.communicate()[1])
        [optimizer] = place.optimizers()
        last = f"object {OBJECTS - 1}"
        until(lambda: any(one["name"] == last and one["known"] == SAMPLES and one["taken"] >= 19
                          for one in harness.status(place)["datasets"]), 60, "the last is followed")
        known = sum(one["known"] != 0 for one in harness.status(place)["datasets"])
        claim(known <= 129, f"{known} datasets of one job are stored")
        most = harness.most_memory(optimizer)
        claim(most < MOST, f"the optimizer took {most >> 20} MiB")
        print(f"{OBJECTS} objects of {SAMPLES} samples: {most >> 20} MiB, {known} stored")
        _, err = job.communicate("\n", timeout=60)
        claim(job.returncode == 0, err)
    finally:
        job.kill()


if __name__ == "__main__":
    harness.main(test)
