#!/usr/bin/python3
# test: timeout=30
"""What docs/benchmarks.md says of a figure: met, not met, or not decided where runs spread wider than the
goal is far; the longest where the longest is the figure; the commit that it is of; and which of two commits is
worse."""
import errno
import os
import sys
import unittest.mock

import harness
from harness import claim

sys.path.insert(0, harness.TOP)
from bench.lib import between, conditions, docs, figures  # noqa: E402


def entry(value, low, high):
    return {"value": value, "low": low, "high": high}


def main():
    for name, found, wanted in (
            ("lmdb_link_share", entry(0.999, 0.997, 1.0), "yes"),
            ("lmdb_link_share", entry(0.9, 0.899, 0.901), "**no**"),
            ("checkpoint_overhead", entry(1.009, 0.983, 1.039), "not decided"),
            ("checkpoint_overhead", entry(1.011, 0.983, 1.039), "not decided"),
            ("files_speedup_best_workers", entry(3.0, 2.0, 4.0), "")):
        claim(docs.verdict(name, found) == wanted, f"{name}: {found}: {docs.verdict(name, found)}")
    longest = figures.summary("icache_stall_during_swap_us", [86.4, 171.4, 280.9])
    claim(longest["value"] == 280.9 and docs.verdict("icache_stall_during_swap_us", longest) == "**no**",
          f"{longest}")
    for name, before, after, wanted in (
            ("start_cost_us", [100, 110, 105], [130, 140, 135], "worse"),
            ("start_cost_us", [130, 140, 135], [100, 110, 105], "not worse"),
            ("start_cost_us", [100, 140, 105], [130, 140, 135], "within its spread"),
            ("lmdb_link_share", [0.99, 0.98], [0.9, 0.91], "worse"),
            ("lmdb_link_share", [0.9, 0.91], [0.99, 0.98], "not worse"),
            ("arm_1tib_vmas", [8, 8], [8, 8], "not worse"),
            ("arm_1tib_vmas", [8, 8], [9, 9], "worse")):
        claim(between.verdict(name, before, after) == wanted,
              f"{name}: {before}, {after}: {between.verdict(name, before, after)}")
    claim(len(set(between.USUAL)) == 20 and set(between.USUAL) <= set(figures.FIGURES), "no twenty figures")
    folder = os.environ["TEST_DIR"]
    conditions.note_as(folder, "lmdb_link_share", "settings")
    said = conditions.sentences(folder, ["lmdb_link_share"])
    claim(len(said) == 1 and conditions.commit() in said[0] and "Linux" in said[0], f"{said}")
    parts(folder)
    setting_that_is_busy(folder)


def setting_that_is_busy(folder):
    """A whole group was lost: the kernel refused for a moment to say whether it takes idle pages."""
    refused = []

    def busy_twice(path, **options):
        if len(refused) < 2:
            refused.append(path)
            raise OSError(errno.EBUSY, "Device or resource busy")
        return open(path, **options)

    path = os.path.join(folder, "state")
    with open(path, "w", encoding="ascii") as text:
        text.write("on\n")
    with unittest.mock.patch("bench.lib.conditions.open", busy_twice, create=True):
        claim(conditions.kernel_setting(path) == "on" and len(refused) == 2, f"refused {len(refused)} times")
    claim(conditions.kernel_setting(path + ".none") == "", "a setting that is gone")


def parts(folder):
    """A group's figures replace its own rows, and what is said of how these were taken; the others stay."""
    document, out = os.path.join(folder, "benchmarks.md"), os.path.join(folder, "out")
    os.makedirs(os.path.join(out, "bench"), exist_ok=True)
    with open(document, "w", encoding="utf-8") as text:
        text.write("before\n" + docs.BEGIN + "\n\n| `stream_link_share` | 0.5 | old |\n| `lmdb_link_share` | 0.5 | old |\n"
                   "| `gone` | 1 | old |\n\nAll: once; of an old commit.\n\n" + docs.END + "\nafter\n")
    for name in "lmdb_link_share", "start_cost_us":
        figures.store(os.path.join(out, "bench.json"), {name: entry(0.999, 0.997, 1.0)})
        conditions.note_as(os.path.join(out, "bench"), name, f"settings of {name}")
        docs.write(out, document)
    with open(document, encoding="utf-8") as text:
        lines = text.read().splitlines()
    claim("| `stream_link_share` | 0.5 | old |" in lines, "a row is lost that was not measured again")
    claim([line for line in lines if "`lmdb_link_share` | 0.999" in line], "a row is old")
    claim(not [line for line in lines if "gone" in line], "a row of no figure")
    said = [line for line in lines if ": settings of" in line]
    claim([line.split(":")[0] for line in said] == ["`start_cost_us`", "`lmdb_link_share`"], f"{said}")
    claim("All others: once; of an old commit." in lines, f"{lines[-6:]}")
    claim((lines[0], lines[-1]) == ("before", "after"), "what is outside the marks")


if __name__ == "__main__":
    try:
        main()
    except harness.Failure as failure:
        print(f"failed: {failure}")
        sys.exit(1)
