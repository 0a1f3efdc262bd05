"""The command line of scripts/bench: chooses groups of figures and runs them in turn."""
import argparse
import fcntl
import os
import signal
import sys
import time
import traceback

from bench.lib import (chunk_sizes, chunk_training, disk, docs, figures, icache_all, icache_packages, icache_prefetched,
                       imports, lcache, link, noncached, opened_ahead, order, overhead, packs, pictures, pool, pool_records,
                       promises, runs, sample_sizes, samples, scale, scan, slow, small, staged, sweep, torch2, train, window)
from bench.lib.bench import Bench
from bench.lib.place import (BUILD, LIBRARY, Failed, Request, Skipped, available_memory, bytes_of,
                             program)
from bench.lib.storage import remove_leftovers

# Name, what it gives (figures, and data for pictures), how.
GROUPS = [
    ("start", small.START, small.start),
    ("arm", small.ARM, small.arm),
    ("slow", slow.PROVIDES + ["figure7"], slow.run),
    ("overhead", overhead.PROVIDES, overhead.run),
    ("random", small.RANDOM, small.random),
    ("figure8", ["figure8"], sweep.sweep),
    ("link", link.PROVIDES, link.run),
    ("noncached", noncached.PROVIDES, noncached.run),
    ("files", sweep.FILES_PROVIDE + ["files"], sweep.files),
    ("samples", samples.PROVIDES, samples.run),
    ("samples memory", samples.MEMORY, samples.memory),
    ("runs", runs.PROVIDES, runs.run),
    ("hit", staged.HIT, staged.hit),
    ("staged", staged.PROVIDES, staged.run),
    ("best_workers", staged.BEST, staged.best_workers),
    ("memory", staged.MEMORY, staged.memory),
    ("window", window.PROVIDES, window.run),
    ("opened_ahead", opened_ahead.PROVIDES, opened_ahead.run),
    ("train", train.PROVIDES, train.run),
    ("order", order.PROVIDES, order.run),
    ("scan", scan.PROVIDES, scan.run),
    ("imports", imports.PROVIDES, imports.run),
    ("simulate", scale.SIMULATE, scale.simulate),
    ("index", scale.INDEX, scale.index),
    ("packs", packs.PROVIDES, packs.run),
    ("metaindex", scale.METAINDEX, scale.metaindex),
    ("chunks", lcache.CHUNKS, lcache.chunks),
    ("pool", pool.POOL, pool.pool),
    ("pool records", pool_records.PROVIDES, pool_records.run),
    ("brand", pool.BRAND, pool.brand),
    ("sample_sizes", sample_sizes.PROVIDES, sample_sizes.run),
    ("chunk_sizes", chunk_sizes.PROVIDES, chunk_sizes.run),
    ("chunk_training", chunk_training.PROVIDES, chunk_training.run),
    ("icache_packages", icache_packages.PROVIDES, icache_packages.run),
    ("lcache remote", lcache.REMOTE, lcache.remote),
    ("lcache partial", lcache.PARTIAL, lcache.partial),
    ("lcache", lcache.PROVIDES, lcache.run),
    ("promises", promises.PROVIDES, promises.run),
    ("icache", icache_all.PROVIDES, icache_all.run),
    ("icache_prefetched", icache_prefetched.PROVIDES, icache_prefetched.run),
    ("exactness", torch2.EXACTNESS, torch2.exactness),
    ("compile_step", list(torch2.STEPS.values()), torch2.steps),
    ("disk", disk.PROVIDES + ["figure7"], disk.run),
]
# Held at once: the file, and two slow mounts' copies of it; and some room for everything else.
COPIES = 3.5


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="scripts/bench", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measures figures into build/bench.json, and draws pictures into build/bench.",
        epilog="Groups: " + ", ".join(f"{name} ({len(gives)})" for name, gives, _ in GROUPS))
    parser.add_argument("name", nargs="*", help="figures, groups or pictures (all)")
    parser.add_argument("--size", default="3G", help="of the file on slow storage (3G)")
    parser.add_argument("--disk-size", default="2G", help="of the file on the throttled disk (2G)")
    parser.add_argument("--rounds", type=int, default=5, help="paired runs of each figure (5)")
    parser.add_argument("--overhead-rounds", type=int, default=9,
                        help="the same for the cost of detection (9)")
    parser.add_argument("--sweep-rounds", type=int, default=3, help="runs of each point (3)")
    parser.add_argument("--small", action="store_true", help="smoke test: fewest points")
    parser.add_argument("--data", default=os.path.join(BUILD, "bench-data"),
                        help="folder for data that is made once (build/bench-data)")
    parser.add_argument("--out", default=BUILD, help="folder of bench.json (build)")
    parser.add_argument("--list", action="store_true", help="print the figures' names and goals")
    parser.add_argument("--draw", action="store_true", help="draw the pictures from what is there")
    parser.add_argument("--docs", action="store_true",
                        help="write bench.json's figures into docs/benchmarks.md")
    options = parser.parse_args(arguments)
    for name in ("rounds", "overhead_rounds", "sweep_rounds"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    try:
        options.size = bytes_of(options.size)
        options.disk_size = bytes_of(options.disk_size)
    except ValueError as why:
        parser.error(f"not a size: {why}")
    return options


def choose(names):
    """What is requested by its own name or its group's: figures and pictures; groups to run."""
    gives = {name: set(given) for name, given, _ in GROUPS}
    wanted, groups = set(), set()
    for name in names or gives:
        if name in gives:
            wanted |= gives[name]
            groups.add(name)
            continue
        givers = {group for group, given in gives.items() if name in given}
        if not givers:
            raise ValueError(f"unknown figure '{name}' (--list shows them)")
        wanted.add(name)
        groups |= givers
    return wanted, groups


def request_of(options):
    size = options.size
    fits = int(available_memory() / COPIES)
    if size > fits:
        print(f"bench: {size} bytes are too much for this machine's memory: {fits} instead")
        size = fits
    return Request(size=size, disk_size=min(options.disk_size, size), rounds=options.rounds,
                   overhead_rounds=options.overhead_rounds, sweep_rounds=options.sweep_rounds,
                   random_reads=500 if options.small else 100000,
                   start_pairs=20 if options.small else 1000, small=options.small,
                   data=os.path.abspath(options.data), out=os.path.abspath(options.out))


def measure(request, wanted, groups):
    """Runs the groups for what is wanted of them. Returns the exit status."""
    os.makedirs(request.data, exist_ok=True)
    os.makedirs(request.out, exist_ok=True)
    lock = open(os.path.join(request.data, "lock"), "w", encoding="ascii")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Failed("another scripts/bench is measuring") from None
    remove_leftovers(request.data)
    started = time.monotonic()
    broken = []
    with Bench(request, wanted) as bench:
        for name, _, run in GROUPS:
            if name not in groups:
                continue
            began = time.monotonic()
            try:
                run(bench)
            except Skipped as why:
                bench.say(f"skipped {name}: {why}")
            except Exception as why:  # the other groups' figures are still worth having
                if not isinstance(why, Failed):
                    traceback.print_exc()
                bench.say(f"FAILED {name}: {why}")
                broken.append(name)
            bench.say(f"{name} took {time.monotonic() - began:.0f} s")
        found = bench.found
    pictures.draw(request.raw)
    print(f"\nbench: {(time.monotonic() - started) / 60:.1f} minutes")
    for name in figures.FIGURES:
        if name in found:
            print("  " + figures.describe(name, found[name]))
        elif name in wanted:
            print(f"  {name}: not measured")
    if broken:
        print(f"bench: these broke: {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


def on_signal(number, _):
    raise KeyboardInterrupt(number)


def main(arguments):
    options = parse(arguments)
    signal.signal(signal.SIGTERM, on_signal)
    try:
        wanted, groups = choose(options.name)
        if options.list:
            for name, figure in figures.FIGURES.items():
                sign = ">=" if figure.least else "<="
                goal = "reported" if figure.goal is None else f"{sign} {figure.goal:g}"
                print(f"{name:36} {goal:12} {figure.meaning}")
            return 0
        out = os.path.abspath(options.out)
        if options.draw:
            pictures.draw(os.path.join(out, "bench"))
        if options.docs:
            docs.write(out)
        if options.draw or options.docs:
            return 0
        for name in ("bench/slowfs", "bench/reader", "bench/make-data", "sluice",
                     "sluice-optimizer"):
            program(name)
        if not os.path.exists(LIBRARY):
            raise Failed("libsluice.so is not built")
        return measure(request_of(options), wanted, groups)
    except ValueError as why:
        print(f"bench: {why}", file=sys.stderr)
        return 2
    except Failed as why:
        print(f"bench: {why}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return 130
