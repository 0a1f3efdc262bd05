"""The runs of all rows on disk, the figures that they give, their table in docs/benchmarks.md and their picture."""
import os
import statistics

from bench.formats.rows import FAR, GROUNDS, LINK, ROWS
from bench.lib import conditions, docs, figures, pictures
from bench.lib.place import BUILD, TOP, Failed

RAW = os.path.join(BUILD, "bench")
RUNS = os.path.join(RAW, "formats.json")
PICTURE = os.path.join(TOP, "docs", "formats.png")
BEGIN, END = "<!-- formats: begin, made by scripts/bench-formats --docs -->", "<!-- formats: end -->"
HEADING = ["| load | latency | plain | Sluice | warm | share of the link | bytes read / needed |",
           "|---|---|---|---|---|---|---|"]
COLOURS = {"plain": "#bbbbbb", "sluice": "#4477aa"}


def share(row_bytes, seconds, warm_seconds):
    """Of the link, or of the job's own rate with all in memory where that is less."""
    return max(row_bytes / (LINK * 1e6), warm_seconds) / seconds


def side_of(row):
    return "plain" if row.peer else "sluice"


class Table:
    """Runs by row and ground: each a list of rounds, a round what each side's run gave."""

    def __init__(self, runs=None):
        self.runs = runs or {}

    @classmethod
    def load(cls):
        """What was measured last of each row, and the commits that it was measured at."""
        known = figures.load(RUNS)
        runs = {(row, ground): known[f"{row.name}, {ground}"]["rounds"]
                for row in ROWS for ground in row.grounds if f"{row.name}, {ground}" in known}
        return cls(runs), sorted({entry["commit"] for entry in known.values()})

    def add(self, row, ground, sides, store):
        self.runs.setdefault((row, ground), []).append(sides)
        if not store:
            return
        known = figures.load(RUNS)
        known[f"{row.name}, {ground}"] = {"commit": conditions.commit(), "rounds": self.runs[row, ground]}
        figures.store(RUNS, known)

    def median(self, row, ground, side):
        """Of the seconds; None if there was no such run."""
        seconds = [one[side]["seconds"] for one in self.runs[row, ground] if side in one]
        return statistics.median(seconds) if seconds else None

    def shares(self, row, ground):
        side = side_of(row)
        return [share(one[side]["bytes"], one[side]["seconds"], one["warm"]["seconds"])
                for one in self.runs[row, ground]]

    def line(self, row, ground):
        seconds = [self.median(row, ground, side) for side in ("plain", "sluice", "warm")]
        text = " | ".join("-" if value is None else f"{value:.2f} s" for value in seconds)
        shares = self.shares(row, ground)
        spread = f" ({min(shares):.2f} to {max(shares):.2f})" if len(shares) > 1 else ""
        read = statistics.median(one[side_of(row)]["asked"] / one["warm"]["bytes"] for one in self.runs[row, ground])
        return f"| {row.name} | {ground} | {text} | {statistics.median(shares):.2f}{spread} | {read:.2f} |"

    def values(self):
        """The figures that these runs give: name -> values of the rounds. None of which a row was not measured."""
        found = {}
        here = {row for row, _ in self.runs}
        partial = {row.figure for row in ROWS if row not in here}
        for (row, ground), rounds in self.runs.items():
            if row.peer or not row.figure or row.figure in partial or (ground != FAR and len(row.grounds) > 1):
                continue
            if row.figure.endswith("_bytes"):
                found[row.figure] = [one["sluice"]["asked"] - one["sluice"]["bytes"] for one in rounds]
            elif "_speedup_" in row.figure:
                found[row.figure] = [one["plain"]["seconds"] / one["sluice"]["seconds"] for one in rounds]
            else:
                shares, others = self.shares(row, ground), found.get(row.figure)
                found[row.figure] = shares if others is None else list(map(min, shares, others))
        beside = [rounds for (row, _), rounds in self.runs.items() if row.group == "peers" and not row.peer]
        peers = [rounds for (row, _), rounds in self.runs.items() if row.peer]
        if beside and peers:
            found["load_over_best_peer"] = [
                ours["sluice"]["seconds"] / min(one["plain"]["seconds"] for one in theirs)
                for ours, *theirs in zip(beside[0], *peers)]
        return found

    def complete(self):
        return all((row, ground) in self.runs for row in ROWS for ground in row.grounds)

    def worst(self):
        """Sluice / plain of the row where that is largest, in its median round."""
        return max(statistics.median(one["sluice"]["wall"] / one["plain"]["wall"] for one in rounds)
                   for (row, _), rounds in self.runs.items() if not row.peer)


def write():
    """What was measured last, into docs/benchmarks.md and docs/formats.png."""
    table, commits = Table.load()
    if not table.runs:
        raise Failed("there is nothing to write yet")
    rounds = sorted({len(some) for some in table.runs.values()})
    about = (f"Medians of {' or '.join(map(str, rounds))} round{'' if rounds == [1] else 's'}, the share with its lowest "
             f"and highest where there are several; {', '.join(commits)}.")
    lines = [*HEADING, *(table.line(*where) for where in table.runs), "", about]
    docs.replace(BEGIN, END, lines)
    draw(table)


def draw(table):
    """Seconds of each load at the far ground, without Sluice and with it, beside what the link needs."""
    rows = [row for row in ROWS if (row, FAR) in table.runs and not row.peer and row.group not in ("peers", "header")]
    if not rows:
        return
    figure, axes = pictures.plot().subplots(figsize=(9, 0.6 + 0.42 * len(rows)))
    for number, row in enumerate(reversed(rows)):
        for side, shift in (("plain", 0.2), ("sluice", -0.2)):
            seconds = table.median(row, FAR, side)
            axes.barh(number + shift, seconds, 0.38, color=COLOURS[side])
            axes.text(seconds, number + shift, f" {seconds:.1f} s", va="center", fontsize=8)
        needed = table.runs[row, FAR][0]["warm"]["bytes"] / (LINK * 1e6)
        axes.plot([needed, needed], [number - 0.42, number + 0.42], color="black", linewidth=1)
    axes.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
    axes.set_xlabel(f"seconds, {GROUNDS[FAR]} ms away at {LINK} MB/s: grey without Sluice, blue with it\n"
                    "the line: what the link alone needs", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)
