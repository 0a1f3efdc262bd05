#!/usr/bin/python3
# test: timeout=600 turns alone
"""Datasets of files, written in eight ways: from the first epoch on their files are in memory in time, and what a job
reads, in which order, and the state that it leaves every generator in, are as without Sluice. By Debian's PyTorch and
by PyTorch 2."""
import json
import os
import subprocess
import sys

import harness
import stage_testing
from harness import claim
from stage_testing import Ground

JOB = os.path.join(harness.TOP, "tests", "adapters", "any_job.py")
MAKE = os.path.join(harness.TOP, "bench", "formats", "make_files.py")
PYTHONS = ("/usr/bin/python3", os.path.join(harness.TOP, "build", "venv", "bin", "python3"))
NEEDS = {"frame": "pandas", "imagefolder": "datasets"}
KINDS = ("list", "dict", "frame", "rule", "csv", "subclass", "imagefolder", "nested")
FILES, EPOCHS = 300, 2


def lacks(python, module):
    return not os.path.exists(python) or subprocess.run([python, "-c", f"import {module}"], capture_output=True,
                                                        check=False).returncode != 0


def check(place, ground, python, kind, workers, method="fork", in_time=True):
    """`in_time`: most of its reads must be in memory in time."""
    harness.repeated(place, check_once, place, ground, python, kind, workers, method, in_time)


def check_once(place, ground, python, kind, workers, method, in_time):
    what = f"{kind}, {workers} workers by {method}, {python}"
    argv = [python, "-W", "ignore", JOB, kind, ground.folder("bmp"), str(workers), method]
    report = os.path.join(place.work, "report")
    own = {"HF_HOME": os.path.join(place.work, "hf"), "HF_HUB_OFFLINE": "1"}
    settings = {**stage_testing.by_default(report), **own}
    plain = place.run(argv, library=None, timeout=200, **own)
    claim(plain.returncode == 0, f"{what}: {plain.stderr}")
    under = place.run(argv, timeout=200, **settings)
    harness.same(plain, under, what)
    with open(report, encoding="utf-8") as text:
        found = json.load(text)
    os.remove(report)
    hits, late, misses = (found["sample_" + word] for word in ("hits", "late", "misses"))
    samples = int(plain.stdout.splitlines()[-1].split()[0])
    unknown = dict(zip(found["epochs"]["epoch"], found["epochs"]["sample_unknown"]))
    print(f"{what}: {hits} hits, {late} late, {misses} misses of {EPOCHS * samples}, {unknown[0]} unknown; "
          f"{plain.seconds:.1f} s plain, {under.seconds:.1f} s with Sluice")
    if in_time:
        claim(unknown[0] < samples // 2, f"{what}: {unknown[0]} samples of the first epoch are not known")
        harness.in_time(hits + late > EPOCHS * samples // 2, f"{what}: too few are in memory in time")


def test(place):
    stage_testing.need_slow_mounts()
    pythons = [python for python in PYTHONS if not lacks(python, "torch")]
    if not pythons:
        harness.skip("no Python with PyTorch")
    cases = [(python, kind, workers) for kind in KINDS for workers in (0, 2) for python in pythons]
    with Ground(place, "mount", "1") as ground:
        subprocess.run([sys.executable, MAKE, ground.source, str(FILES), "bmp"], check=True)
        for python, kind, workers in harness.in_turn(cases, 4):
            if kind in NEEDS and lacks(python, NEEDS[kind]):
                print(f"{kind} with {python} is skipped: no {NEEDS[kind]} there (scripts/setup formats)")
                continue
            check(place, ground, python, kind, workers)


if __name__ == "__main__":
    harness.main(test)
