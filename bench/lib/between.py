"""Figures of two commits, each built from its own tree and measured in turn: scripts/bench-between."""
import argparse
import os
import statistics
import subprocess
import sys

from bench.lib import figures
from bench.lib.place import BUILD, TOP

# Twenty that span the folders: the library alone, streams, records, samples, orders, the simulator.
USUAL = ["start_cost_us", "start_cost_over_empty_us", "arm_1tib_ms", "arm_1tib_vmas", "checkpoint_overhead",
         "observe_overhead", "random_lmdb_overhead", "noncached_bytes_cell", "noncached_bytes_observe",
         "lmdb_link_share", "stream_link_share", "skipping_link_share", "optimizer_cpu_s_per_gb", "optimizer_rss_mb",
         "lmdb_random_link_share_busy", "files_link_share_busy", "files_first_epoch_link_share_busy",
         "order_overhead_4k", "simulate_14m_s", "index_bytes_per_sample"]


def is_less_better(name):
    """Without a goal, too: what is only reported is a cost, unless it says so."""
    return not figures.figure_of(name).least


def verdict(name, before, after):
    """'worse' only if the two commits' values lie further apart than those of either: each list is of its rounds."""
    low, high = (before, after) if is_less_better(name) else (after, before)
    apart = statistics.median(high) - statistics.median(low)
    spread = max(max(values) - min(values) for values in (before, after))
    if apart <= 0:
        return "not worse"
    return "worse" if apart > spread and max(low) < min(high) else "within its spread"


def row(name, before, after):
    def shown(values):
        return f"{statistics.median(values):.4g} ({min(values):.4g} to {max(values):.4g})"
    return f"| `{name}` | {shown(before)} | {shown(after)} | {figures.figure_of(name).unit} | " \
           f"{verdict(name, before, after)} |"


def checked(*command, cwd):
    done = subprocess.run(command, cwd=cwd, check=False)
    if done.returncode:
        sys.exit(f"bench-between: {' '.join(command)} failed in {os.path.relpath(cwd, TOP)}")


def tree_of(commit, jobs):
    """The commit's own tree, built; a later call finds it again."""
    name = subprocess.run(["git", "rev-parse", "--short=12", commit + "^{commit}"], cwd=TOP, capture_output=True,
                          text=True, check=False)
    if name.returncode:
        sys.exit(f"bench-between: {commit} is no commit of this repository")
    path = os.path.join(BUILD, "between", name.stdout.strip())
    if not os.path.exists(path):
        checked("git", "clone", "-q", "--no-checkout", TOP, path, cwd=TOP)
        checked("git", "checkout", "-q", "--detach", name.stdout.strip(), cwd=path)
    checked("make", "--no-print-directory", f"-j{jobs}", "programs", cwd=path)
    return path


def measured(tree, data, options):
    """One round: the figures that the tree's own scripts/bench records. One that fails is left out, and said."""
    out = os.path.join(tree, "build", "between-out")
    recorded = os.path.join(out, "bench.json")
    if os.path.exists(recorded):
        os.unlink(recorded)
    command = [os.path.join(tree, "scripts/bench"), "--rounds", "1", "--overhead-rounds", "3", "--sweep-rounds", "1",
               "--size", options.size, "--data", data, "--out", out, *(["--small"] if options.small else []),
               *options.name]
    done = subprocess.run(command, cwd=tree, check=False)
    if done.returncode:
        print(f"bench-between: scripts/bench ended with {done.returncode} in {os.path.relpath(tree, TOP)}", flush=True)
    return {name: entry["value"] for name, entry in figures.load(recorded).items()}


def main(arguments):
    parser = argparse.ArgumentParser(prog="scripts/bench-between", description=(
        "Measures figures of two commits, each built below build/between, in alternating order, and prints a table. "
        "Exits with 1 if one is worse by more than its spread."))
    parser.add_argument("before", help="a commit")
    parser.add_argument("after", help="a commit")
    parser.add_argument("name", nargs="*", help="figures (twenty that span the folders)")
    parser.add_argument("--rounds", type=int, default=3, help="of both, in turn (3)")
    parser.add_argument("--size", default="1G", help="of the file on slow storage (1G)")
    parser.add_argument("--small", action="store_true", help="smoke test: fewest points")
    parser.add_argument("--jobs", type=int, default=2, help="of make (2)")
    options = parser.parse_args(arguments)
    options.name = options.name or USUAL
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    trees = [tree_of(commit, options.jobs) for commit in (options.before, options.after)]
    data = os.path.join(BUILD, "bench-data")
    found = [{}, {}]
    for number in range(options.rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            for name, value in measured(trees[which], data, options).items():
                found[which].setdefault(name, []).append(value)
    print(f"| figure | {options.before} | {options.after} | unit | {options.rounds} rounds in turn |")
    print("|---|---|---|---|---|")
    common = [name for name in options.name if name in found[0] and name in found[1]]
    for name in common:
        print(row(name, found[0][name], found[1][name]))
    for name in options.name:
        if name not in common:
            print(f"bench-between: {name} was not measured in both")
    return int(any(verdict(name, found[0][name], found[1][name]) == "worse" for name in common))
