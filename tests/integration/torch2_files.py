#!/usr/bin/python3
# test: timeout=300
"""PyTorch 2's loaders over files of a slow mount: with and without workers and __getitems__, and workers that persist
between epochs; every loss is the same as without Sluice, and files were in memory in time."""
import json
import os
import random

import harness
import stage_testing
from harness import claim
from stage_testing import Ground

JOB = os.path.join(harness.TOP, "tests", "adapters", "torch2_job.py")
DATASETS = [f"{kind}-{workers}" for kind in ("Folder", "Batched") for workers in (0, 2)]
FILES = 300


def make(folder):
    draw = random.Random(11)
    for name in DATASETS:
        for number in range(FILES):
            above = os.path.join(folder, name, f"class-{number % 4}")
            os.makedirs(above, exist_ok=True)
            with open(os.path.join(above, f"{number:04}.raw"), "wb") as file:
                file.write(draw.randbytes(20000 + draw.randrange(5000)))


def test(place):
    stage_testing.need_slow_mounts()
    argv = [harness.torch2(), "-W", "ignore", JOB]
    with Ground(place, "mount", "1") as ground:
        make(ground.source)
        report = os.path.join(place.work, "report")
        # Not one of the harness's settings: the job runs by the defaults.
        settings = {"SLUICE_CHECKPOINT": None, "SLUICE_DISTANCE": None, "SLUICE_DATASET": None,
                    "SLUICE_REPORT": report}
        plain = place.run([*argv, ground.path], library=None, timeout=120)
        claim(plain.returncode == 0, plain.stderr)
        under = place.run([*argv, ground.path], timeout=120, **settings)
        harness.same(plain, under, "the losses")
        with open(report, encoding="utf-8") as text:
            found = json.load(text)
        hits, late, misses = (found["sample_" + word] for word in ("hits", "late", "misses"))
        print(f"{plain.stdout.splitlines()[0]}: {hits} hits, {late} late, {misses} misses; "
              f"{plain.seconds:.1f} s plain, {under.seconds:.1f} s with Sluice")
        reads = len(DATASETS) * 3 * FILES
        claim(hits + late > reads // 2, f"of {reads} samples: {found}")


if __name__ == "__main__":
    harness.main(test)
