"""The command line of scripts/bench-formats: measures how fast model weights load and the first epoch over files is,
without Sluice and with it."""
import argparse
import fcntl
import os
import signal
import subprocess
import sys
import time

from bench.formats.rows import FAR, GROUNDS, GROUPS, LINK, MAKERS, PYTHON, ROWS
from bench.formats import table as tables
from bench.lib import conditions, figures, jobs
from bench.lib.bench import must_agree_on
from bench.lib.place import BUILD, LIBRARY, TOP, Failed, Skipped, program
from bench.lib.storage import SlowMount, call, read_through, remove_leftovers, touch_memory

DATA = os.path.join(BUILD, "bench-data", "formats")
GROUP_LIMIT = 2400  # seconds: no round of a group begins that might end later
MAKE_LIMIT = 600  # seconds


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="scripts/bench-formats",
        description="Loads the same random weights from slow mounts by the libraries that people load models with "
        "(scripts/setup formats), and records the figures in build/bench.json. Every run is cold on a mount of its "
        "own, except the warm ones, whose mount is wholly cached.",
        epilog="Groups: " + ", ".join(GROUPS))
    parser.add_argument("group", nargs="*", help="groups of rows (all)")
    parser.add_argument("--row", action="append", default=[], help="one row by its name; may be repeated")
    parser.add_argument("--rounds", type=int, default=5, help="paired runs of each row (5)")
    parser.add_argument("--quick", action="store_true", help="one round, at 10 ms where a row has several; records no figure")
    parser.add_argument("--no-plain", action="store_true", help="leave out the slow plain runs; records no figure")
    parser.add_argument("--small", action="store_true", help="smoke test with few weights; records no figure")
    parser.add_argument("--docs", action="store_true", help="write what was measured into docs/; measures nothing")
    parser.add_argument("--list", action="store_true", help="print the rows")
    options = parser.parse_args(arguments)
    for group in options.group:
        if group not in GROUPS:
            parser.error(f"unknown group '{group}' (one of {', '.join(GROUPS)})")
    for name in options.row:
        if name not in [row.name for row in ROWS]:
            parser.error(f"unknown row '{name}' (--list shows them)")
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    if options.quick:
        options.rounds = 1
    return options


class Place:
    """What bench.lib's mounts want to know of a benchmark."""

    class request:
        data = DATA


class Runner:
    def __init__(self, small):
        self.small = small
        self.sizes = {maker: sizes[small] for maker, sizes in MAKERS.items()}

    def made(self, maker):
        return os.path.join(DATA, f"{maker}-{self.sizes[maker]}")

    def source(self, row):
        return os.path.join(self.made(row.maker), row.data)

    def make(self, rows):
        for maker, size in self.sizes.items():
            missing = {row.data: self.source(row) for row in rows
                       if row.maker == maker and not os.path.exists(self.source(row))}
            if not missing:
                continue
            partial = self.made(maker) + ".partial"
            make_data(f"make_{maker}.py", partial, str(size), *sorted(missing))
            os.makedirs(self.made(maker), exist_ok=True)
            for kind, folder in missing.items():
                os.rename(os.path.join(partial, kind), folder)
            os.rmdir(partial)

    def run(self, row, latency, side):
        """A run of one side (plain, sluice, warm): what its processes printed, and what the storage was asked."""
        source = self.source(row)
        size = read_tree(source)
        touch_memory(2 * size)
        settings = {"HF_HUB_OFFLINE": "1", "HF_HOME": os.path.join(DATA, "hf"), **dict(row.settings)}
        with SlowMount(Place, "formats", source, "--latency", str(latency), "--bandwidth", str(LINK)) as mount:
            if side == "warm":
                call(program("sluice"), "warm", mount.folder)
            before = mount.stats()["totals"]
            commands = row.commands(mount.folder)
            if side == "sluice":
                named = {"dataset": mount.folder} if self.small else {}
                with jobs.Sluice(**named) as sluice:
                    result = jobs.run(commands, sluice, settings=settings)
            else:
                result = jobs.run(commands, settings=settings)
            after = mount.stats()["totals"]
        begun = min(rank["started_ns"] for rank in result.ranks)
        ended = max(rank["ended_ns"] for rank in result.ranks)
        return {"seconds": (ended - begun) / 1e9, "bytes": sum(rank["bytes"] for rank in result.ranks),
                "sums": [rank["sum"] for rank in result.ranks], "wall": result.wall,
                "asked": after["read_bytes"] - before["read_bytes"], "requests": after["read"] - before["read"],
                "optimizer": result.optimizer}


def make_data(script, partial, *arguments):
    subprocess.run(["rm", "-rf", partial], check=True)
    os.makedirs(partial)
    made = subprocess.run([PYTHON, os.path.join(TOP, "bench", "formats", script), partial, *arguments],
                          capture_output=True, text=True, timeout=MAKE_LIMIT, check=False)
    if made.returncode:
        raise Failed(f"{script}: {made.stderr.strip()}")


def read_tree(folder):
    """Leaves all files in the page cache, and returns their bytes; files with several names count once."""
    seen, size = set(), 0
    for above, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(above, name)
            about = os.stat(path)
            if about.st_ino not in seen:
                seen.add(about.st_ino)
                size += about.st_size
                read_through(path)
    return size


def lacking(modules):
    """Those of the modules that build/venv does not have."""
    code = "import importlib.util, sys; print(*[m for m in sys.argv[1:] if not importlib.util.find_spec(m)])"
    found = subprocess.run([PYTHON, "-c", code, *modules], capture_output=True, text=True, check=True)
    return set(found.stdout.split())


def one_round(runner, row, ground, number, plain):
    sides = ["plain", "warm"] if row.peer else [*(["plain"] if plain else []), "sluice", "warm"]
    runs = {}
    for side in sides if number % 2 == 0 else reversed(sides):
        runs[side] = runner.run(row, GROUNDS[ground], side)
    must_agree_on([one["sums"] for one in runs.values()])
    return runs


def measure(options, rows):
    os.makedirs(DATA, exist_ok=True)
    lock = open(os.path.join(DATA, "lock"), "w", encoding="ascii")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Failed("another scripts/bench-formats is measuring") from None
    remove_leftovers(DATA)
    for row in rows:
        if row.figure:
            figures.figure_of(row.figure)  # fails now rather than when all is measured
    runner = Runner(options.small)
    table, broken = tables.Table(), []
    for group in dict.fromkeys(row.group for row in rows):
        began, longest = time.monotonic(), 0
        here = [row for row in rows if row.group == group]
        absent = lacking({row.needs for row in here})
        for row in here:
            if row.needs in absent:
                print(f"formats: {row.name}: skipped: no {row.needs} in build/venv (scripts/setup formats)", flush=True)
        here = [row for row in here if row.needs not in absent]
        runner.make(here)
        for number in range(options.rounds):
            started = time.monotonic()
            if started - began + longest > GROUP_LIMIT:
                print(f"formats: {group}: {number} rounds are all that {GROUP_LIMIT} s have room for", flush=True)
                break
            for row in here:
                for ground in row.grounds:
                    if options.quick and len(row.grounds) > 1 and ground != FAR:
                        continue
                    try:
                        sides = one_round(runner, row, ground, number, not options.no_plain)
                        table.add(row, ground, sides, store=not (options.small or options.quick or options.no_plain))
                    except (Failed, Skipped, OSError) as why:
                        broken.append(row.name)
                        print(f"formats: {row.name}, {ground}: FAILED: {why}", flush=True)
                        continue
                    print(table.line(row, ground), flush=True)
            longest = max(longest, time.monotonic() - started)
    if not (options.quick or options.small or options.no_plain):
        record(table, bool(broken))
    return 1 if broken else 0


def record(table, broken):
    # Groups are measured one by one, or again after a break: where all rows are of this commit, so are their figures.
    stored, commits = tables.Table.load()
    values = (stored if commits == [conditions.commit()] else table).values()
    if stored.complete() and len(commits) == 1 and not broken:
        values["formats_worst"] = [stored.worst()]
    for name, some in values.items():
        entry = figures.summary(name, some)
        figures.merge(os.path.join(BUILD, "bench.json"), {name: entry})
        size = "1.3 GB" if name.startswith("load_") else "1.0 GB"
        conditions.note_as(tables.RAW, name, f"{len(some)} rounds of bench/formats, {size}, {LINK} MB/s")
        print("formats: " + figures.describe(name, entry))


def on_signal(number, _):
    raise KeyboardInterrupt(number)


def main(arguments):
    options = parse(arguments)
    signal.signal(signal.SIGTERM, on_signal)
    rows = [row for row in ROWS if (not options.group and not options.row) or row.group in options.group
            or row.name in options.row]
    if options.list:
        for row in rows:
            print(f"{row.group:14} {row.name:36} {', '.join(row.grounds):14} {row.figure}")
        return 0
    try:
        if options.docs:
            tables.write()
            return 0
        for name in ("bench/slowfs", "bench/touch-memory", "sluice", "sluice-optimizer"):
            program(name)
        if not os.path.exists(LIBRARY):
            raise Failed("libsluice.so is not built")
        if not os.path.exists(PYTHON):
            raise Skipped("there is no build/venv (scripts/setup formats)")
        print(*tables.HEADING, sep="\n", flush=True)
        return measure(options, rows)
    except Skipped as why:
        print(f"formats: skipped: {why}")
        return 0
    except Failed as why:
        print(f"formats: {why}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("formats: interrupted", file=sys.stderr)
        return 130
