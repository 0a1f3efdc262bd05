#!/usr/bin/python3
# test: timeout=1800 turns
"""Every benchmark's code path in a tiny size: scripts/bench runs through, bench.json has the
promised form and is merged, pictures are drawn, and nothing stays mounted or running."""
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

import harness
from harness import claim, skip

sys.path.insert(0, harness.TOP)
from bench.lib import figures  # noqa: E402
from bench.lib.main import GROUPS  # noqa: E402

TINY = ["--small", "--size", "24M", "--disk-size", "24M", "--rounds", "1", "--overhead-rounds", "1",
        "--sweep-rounds", "1"]
# Where a machine without FUSE, or an ordinary user, cannot measure: the groups that may be left
# out, with one line each.
MAY_BE_SKIPPED = {"slow", "overhead", "random", "figure8", "link", "noncached", "files", "disk", "samples",
                  "arm", "icache", "icache_prefetched", "packs", "window", "opened_ahead",
                  "opened_ahead_over_copy_gluster", "exactness", "compile_step"}
# What waits for the storage (10 ms, and one after the other) over what is in memory (20 us), and rates of jobs
# that wait so for a few files, over the link's.
PLAUSIBLE = {**{f"opened_ahead_over_copy_{name}": (0.01, 10_000) for name in ("cloud_old", "cloud_no_keep")},
             **{name: (0.001, 2) for name in figures.FIGURES if name.startswith("window_share_")}}


def bench(folder, *arguments):
    command = ["scripts/bench", "--data", os.path.join(folder, "data"), "--out",
               os.path.join(folder, "out"), *arguments]
    # How long it may take depends on the machine, which run-tests knows.
    return subprocess.run(command, cwd=harness.TOP, capture_output=True, text=True, check=False)


def check_entry(name, entry):
    figure = figures.FIGURES[name]
    claim(set(entry) == {"value", "unit", "goal", "least", "low", "high"}, f"{name}: keys {sorted(entry)}")
    claim(entry["unit"] == figure.unit and entry["goal"] == figure.goal, f"{name}: unit or goal")
    for key in ("value", "low", "high"):
        claim(isinstance(entry[key], (int, float)) and math.isfinite(entry[key]),
              f"{name}: {key} is {entry[key]!r}")
    claim(entry["low"] <= entry["value"] <= entry["high"], f"{name}: spread {entry}")
    if figure.unit == "ratio":
        low, high = PLAUSIBLE.get(name, (0.01, 100))
        claim(low < entry["value"] < high, f"{name}: {entry['value']} is no ratio")
    if figure.unit == "share":
        claim(0 <= entry["value"] <= 1, f"{name}: {entry['value']} is no share")


# Of the groups that take longest in their tiny size; the others are taken each time.
LONG_GROUPS = ("icache", "icache_prefetched", "staged", "best_workers", "samples", "samples memory", "packs", "promises",
               "train", "runs", "memory", "window", "opened_ahead", "exactness", "compile_step", "chunk_training",
               "sample_sizes", "chunk_sizes", "chunks", "pool", "pool records", "brand", "icache_packages", "lcache remote",
               "lcache partial", "lcache", "imports")
PICTURES = {"slow": "figure7", "figure8": "figure8", "files": "files", "icache": "icache", "brand": "chunks",
            "lcache": "lcache", "sample_sizes": "sample_sizes", "chunk_sizes": "chunk_sizes"}


def chosen():
    """The groups of this run, and what they give."""
    turn = harness.in_turn(LONG_GROUPS, 4)
    return {name: gives for name, gives, _ in GROUPS if name in turn or name not in LONG_GROUPS}


def check(folder):
    groups = chosen()
    promised = set().union(*groups.values()) & set(figures.FIGURES)
    done = bench(folder, *TINY, *groups)
    claim(done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}")
    skipped = [line for line in done.stdout.splitlines() if line.startswith("bench: skipped ")]
    with open(os.path.join(folder, "out", "bench.json"), encoding="utf-8") as text:
        found = json.load(text)
    claim(set(found) <= set(figures.FIGURES), f"unknown names: {set(found) - set(figures.FIGURES)}")
    for name, entry in found.items():
        check_entry(name, entry)
    left_out = {line.split()[2].rstrip(":") for line in skipped}
    promised -= left_out.union(*(gives for name, gives in groups.items() if name in left_out))
    claim(set(found) == promised, f"not measured: {promised - set(found)}\n{done.stdout}")
    if not skipped:
        for picture in (PICTURES[name] for name in groups if name in PICTURES):
            with open(os.path.join(folder, "out", "bench", picture + ".png"), "rb") as image:
                claim(image.read(4) == b"\x89PNG", f"{picture}.png is no picture")
    claim(left_out <= MAY_BE_SKIPPED, f"must not be skipped: {left_out - MAY_BE_SKIPPED}")

    again = bench(folder, *TINY, "start")
    claim(again.returncode == 0, f"alone: status {again.returncode}\n{again.stdout}{again.stderr}")
    with open(os.path.join(folder, "out", "bench.json"), encoding="utf-8") as text:
        merged = json.load(text)
    for name in ("start_cost_us", "start_cost_over_empty_us"):
        del merged[name], found[name]
    claim(merged == found, "measuring one figure changed the others")

    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        claim(folder not in mounts.read(), "something is still mounted")
    claim(bench(folder, "no_such_figure").returncode == 2, "an unknown name was not refused")
    with open(os.path.join(harness.TOP, "docs", "benchmarks.md"), encoding="utf-8") as text:
        document = text.read()
    for name in figures.FIGURES:
        claim(f"`{name}`" in document, f"docs/benchmarks.md says nothing of {name}")
    return skipped


def main():
    if os.path.basename(harness.BUILD) in ("asan", "tsan"):
        skip("figures of a sanitized build mean nothing")
    folder = tempfile.mkdtemp(prefix="bench-", dir=os.environ.get("TEST_DIR"))
    try:
        skipped = check(os.path.abspath(folder))
    except harness.Failure as why:
        print(f"failed: {why}")
        sys.exit(1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(skipped) or "every figure was taken")


main()
