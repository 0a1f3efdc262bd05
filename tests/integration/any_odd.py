#!/usr/bin/python3
# test: timeout=600 turns
"""Datasets that are a trap for guesses of where their files are (tests/adapters/any_odd.py): what a job reads, what
its dataset is asked, and the state of its generators are as without Sluice, with workers that are forked, spawned or
none; and wrong guesses are given up."""
import subprocess
import sys

import any_dataset
import harness
import stage_testing
from stage_testing import Ground

KINDS = {"pathlib": True, "bytes": True, "asked": True, "lazy": True, "masked": False, "augmented": True, "shared": False,
         "decoys": False, "closing": True, "joined": True}  # whether half of the reads must be in memory in time
WORKERS = ((0, "fork"), (2, "fork"), (2, "spawn"))


def test(place):
    stage_testing.need_slow_mounts()
    pythons = [python for python in any_dataset.PYTHONS if not any_dataset.lacks(python, "torch")]
    if not pythons:
        harness.skip("no Python with PyTorch")
    cases = [(kind, *workers) for kind in KINDS for workers in WORKERS]
    with Ground(place, "mount", "1") as ground:
        subprocess.run([sys.executable, any_dataset.MAKE, ground.source, "300", "bmp"], check=True)
        for number, (kind, workers, method) in enumerate(harness.in_turn(cases, 5)):
            any_dataset.check(place, ground, pythons[number % len(pythons)], kind, workers, method, KINDS[kind])


if __name__ == "__main__":
    harness.main(test)
