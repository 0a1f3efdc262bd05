#!/usr/bin/python3
"""SLUICE_DATASET named data by a path with a symbolic link in it, and nothing was followed: open
files are known by the kernel's name for them."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
from harness import claim


def hits(place, dataset):
    report = os.path.join(place.work, "report.json")
    done = place.run(harness.victim("map_scan"), SLUICE_DATASET=dataset, SLUICE_REPORT=report)
    claim(done.returncode == 0, done.stderr)
    if not os.path.exists(report):
        return 0
    with open(report, encoding="utf-8") as text:
        figures = json.load(text)
    os.unlink(report)
    return figures["checkpoints_hit"]


def test(place):
    real = os.path.realpath(harness.DATA)
    link = os.path.join(place.work, "link")
    os.symlink(real, link)
    os.symlink(os.path.join(real, "scan.bin"), os.path.join(place.work, "one"))
    usual = hits(place, f"{real}/scan.bin")
    claim(usual > 100, f"only {usual} checkpoints hit: no test")
    for dataset in (f"{link}/scan.bin", link, f"{link}/", f"{link}/sc?n.bin", f"{link}/*.bin",
                    "link/scan.bin", "./link", f"{place.work}/one"):
        claim(hits(place, dataset) >= usual, f"SLUICE_DATASET={dataset} follows nothing")
    for dataset in (f"{link}/other.bin", f"{place.work}/nowhere", f"{link}/x*", f"{real}/scan"):
        claim(hits(place, dataset) == 0, f"SLUICE_DATASET={dataset} follows scan.bin")


if __name__ == "__main__":
    harness.main(test)
