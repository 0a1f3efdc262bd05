"""The command line of scripts/bench-harm: measures all rows, the worst ones again, and says what it found."""
import argparse
import fcntl
import json
import os
import signal
import subprocess
import sys
import time

from bench.harm import bounds, plan, table
from bench.harm.grounds import Grounds
from bench.harm.run import Runner
from bench.lib import conditions, figures
from bench.lib.place import BUILD, Failed, Skipped, is_root
from bench.lib.storage import remove_leftovers

DATA = os.path.join(BUILD, "bench-data", "harm")
RAW = os.path.join(BUILD, "bench")
ROWS = os.path.join(RAW, "harm.json")


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="scripts/bench-harm",
        description="Runs jobs that were not written for Sluice without and with it (bench/harm/harm.toml), and "
        "records harm_worst, harm_plain_worst, harm_mean and savings_error in build/bench.json once every row is "
        "measured. "
        "What was measured of the same library is not measured again.")
    parser.add_argument("--quick", action="store_true", help="one round of each row, and none again")
    parser.add_argument("--only", metavar="JOB", action="append", default=[], help="one job; may be repeated")
    parser.add_argument("--ground", metavar="GROUND", action="append", default=[], help="one ground; likewise")
    parser.add_argument("--fresh", action="store_true", help="measure again what is already measured")
    parser.add_argument("--list", action="store_true", help="print the rows' names")
    parser.add_argument("--docs", action="store_true", help="write the rows into docs/benchmarks.md")
    return parser.parse_args(arguments)


def choose(rows, options):
    """The requested rows. Optional grounds only by name."""
    for given, known in ((options.only, {row.job.name for row in rows}),
                         (options.ground, {row.ground.name for row in rows})):
        for name in given:
            if name not in known:
                raise ValueError(f"unknown '{name}' (one of {', '.join(sorted(known))})")
    return [row for row in rows if (not options.only or row.job.name in options.only)
            and (row.ground.name in options.ground if options.ground else not row.ground.optional)]


class Book:
    """Rounds of each row, written to disk after each; those of another library or plan are left out."""

    def __init__(self, fresh):
        self.now = plan.fingerprint()
        saved = figures.load(ROWS)
        self.rows = {} if fresh or saved.get("fingerprint") != self.now else saved["rows"]

    def add(self, name, measured):
        self.rows.setdefault(name, []).append(measured)
        figures.store(ROWS, {"fingerprint": self.now, "commit": conditions.commit(), "rows": self.rows})


def one_round(row, number, runner, grounds):
    """Plain, Sluice and plain again, or the other way round, each from the same state of the caches."""
    source = runner.source(row.job, row.ground)
    order = ["plain", "sluice", "again"]
    measured, digests = {}, {}
    for side in order if number % 2 == 0 else reversed(order):
        with grounds.ready(row.ground, source) as folder:
            result = runner.run(row.job, folder, side == "sluice", row.ground.kind == "slowfs")
            measured[side] = {"epochs": result.epochs, "whole": result.whole, "cpu": result.cpu}
            if row.ground.kind == "slowfs":
                measured[side]["asked"] = asked_of(folder)
                measured[side]["saved"] = result.saved
        digests[side] = result.digest
        if result.said:
            measured[side]["said"] = result.said
    if digests["plain"] != digests["again"]:
        raise Failed(f"{row.name}: two plain runs differ: the job cannot be compared")
    if digests["sluice"] != digests["plain"]:
        raise Failed(f"{row.name}: its output is DIFFERENT under Sluice")
    return measured


def asked_of(mount):
    """What was asked of a slow mount, by everybody: requests and bytes. No load on the machine changes them."""
    with open(os.path.join(mount, ".slowfs-stats"), encoding="utf-8") as text:
        totals = json.load(text)["totals"]
    return {"requests": totals["requests"], "read_bytes": totals["read_bytes"]}


def measure(rows, count, book, runner, grounds):
    """Brings each row to `count` rounds. Returns the names of rows that broke, or cannot be measured here."""
    broken, skipped = [], []
    for place, row in enumerate(rows, 1):
        started = time.monotonic()
        try:
            while len(book.rows.get(row.name, [])) < count:
                book.add(row.name, one_round(row, len(book.rows.get(row.name, [])), runner, grounds))
        except Skipped as why:
            skipped.append(row.name)
            print(f"harm: {place}/{len(rows)} {row.name}: skipped: {why}", flush=True)
            continue
        except (Failed, OSError, ValueError, subprocess.SubprocessError) as why:
            broken.append(row.name)
            print(f"harm: {place}/{len(rows)} {row.name}: FAILED: {why}", flush=True)
            continue
        print(f"harm: {place}/{len(rows)} {summary(row.name, book.rows[row.name])}"
              f" ({time.monotonic() - started:.0f} s)", flush=True)
    return broken, skipped


def summary(name, rounds):
    sides = []
    for side in ("sluice", "again"):
        means = bounds.epochs_of(rounds, side).items()
        sides.append(" ".join(f"{bounds.geometric_mean(ratios):.2f}" for _, ratios in means))
    return (f"{name}: {sides[0]}; plain {sides[1]}; processor {table.processor(rounds):.2f}; "
            f"{table.storage(rounds) or 'local'}; {rounds[0]['plain']['whole']:.2f} s; "
            f"{len(rounds)} round{'s' if len(rounds) > 1 else ''}")


def record(rows, book):
    """Figures go to bench.json only if they speak of all rows."""
    settings = (f"{len(rows)} rows of bench/harm/harm.toml, "
                f"{min(len(book.rows[row.name]) for row in rows)} to "
                f"{max(len(book.rows[row.name]) for row in rows)} rounds")
    found = table.figures_of({row.name: book.rows[row.name] for row in rows})
    for name, (value, low, high, where) in found.items():
        figure = figures.ELSEWHERE[name]
        entry = {"value": round(value, 5), "unit": figure.unit, "goal": figure.goal, "low": round(low, 5),
                 "high": round(high, 5)}
        figures.merge(os.path.join(BUILD, "bench.json"), {name: entry})
        conditions.note_as(RAW, name, settings)
        print(f"{figures.describe(name, entry)}; {where}")


def run(options, the_plan, rows):
    book = Book(options.fresh)
    runner = Runner(DATA, the_plan.epochs)
    started = time.monotonic()
    broken, skipped = [], []
    with Grounds(DATA) as grounds:
        try:
            broken, skipped = measure(rows, 1 if options.quick else the_plan.rounds, book, runner, grounds)
            there = {row.name: book.rows[row.name] for row in rows
                     if row.name in book.rows and row.name not in broken + skipped}
            if not options.quick and len(rows) > the_plan.worst:
                # Chosen by the same number of rounds of each, whatever an earlier call has added.
                chosen = bounds.worst_rows({name: rounds[:the_plan.rounds] for name, rounds in there.items()},
                                           the_plan.worst)
                broken += measure([row for row in rows if row.name in chosen], the_plan.worst_rounds, book, runner,
                                  grounds)[0]
        finally:
            there = {row.name: book.rows[row.name] for row in rows if row.name in book.rows}
            if there:
                print("\n".join(table.lines(there)))
            print(f"harm: {(time.monotonic() - started) / 60:.1f} minutes")
    ordinary = [row for row in the_plan.rows if not row.ground.optional]
    if broken:
        print(f"harm: these broke: {', '.join(sorted(set(broken)))}", file=sys.stderr)
        return 1
    if not options.quick and all(len(book.rows.get(row.name, [])) >= the_plan.rounds for row in ordinary) and \
            rows == ordinary:
        record(ordinary, book)
    else:
        print("harm: not all rows, or one round only: no figure is recorded")
    return 0


def on_signal(number, _):
    raise KeyboardInterrupt(number)


def main(arguments):
    options = parse(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    try:
        the_plan = plan.load()
        rows = choose(the_plan.rows, options)
        if options.list:
            print("\n".join(row.name for row in rows))
            return 0
        if options.docs:
            saved = figures.load(ROWS)
            if not saved:
                raise Failed("nothing is measured yet")
            table.write(saved["rows"], f"Of {saved['commit']}, on {conditions.machine()}.")
            return 0
        if not is_root():
            raise Failed("needs root: one job runs as another user, and slow mounts are made for each run")
        os.makedirs(DATA, exist_ok=True)
        with open(os.path.join(DATA, "lock"), "w", encoding="ascii") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Failed("another scripts/bench-harm is measuring") from None
            remove_leftovers(DATA)
            return run(options, the_plan, rows)
    except ValueError as why:
        print(f"harm: {why}", file=sys.stderr)
        return 2
    except Failed as why:
        print(f"harm: {why}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("harm: interrupted; the next call continues from here", file=sys.stderr)
        return 130
