"""Writes the figures of bench.json into docs/benchmarks.md, between two marks. What bench.json does not have stays
as the document has it, with what is said there of how it was taken: groups are measured one at a time."""
import os
import re

from bench.lib import conditions, figures
from bench.lib.place import TOP, Failed

DOCUMENT = os.path.join(TOP, "docs", "benchmarks.md")
BEGIN, END = "<!-- figures: begin, made by scripts/bench --docs -->", "<!-- figures: end -->"


def number(value):
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def goal_of(name):
    figure = figures.figure_of(name)
    if figure.goal is None:
        return "reported"
    return f"{'>=' if figure.least else '<='} {figure.goal:,}"


def verdict(name, entry):
    """Not decided: the runs are further apart than their value is from the goal. The highest of all runs is
    what it is."""
    met = figures.met(name, entry["value"])
    if met is None:
        return ""
    if name not in figures.HIGHEST and entry["high"] - entry["low"] > abs(entry["value"] - figures.figure_of(name).goal):
        return "not decided"
    return "yes" if met else "**no**"


def table(measured, known=()):
    """The rows of all figures: anew of those that are `measured`, else as `known` has them, by name."""
    lines = ["| figure | value | spread | unit | goal | met | meaning |",
             "|---|---|---|---|---|---|---|"]
    for name, figure in {**figures.FIGURES, **figures.ELSEWHERE}.items():
        start = f"| `{name}` | "
        if name not in measured and name in known:
            lines.append(known[name])
            continue
        if name not in measured:
            lines.append(f"{start}not measured | | {figure.unit} | {goal_of(name)} | | "
                         f"{figure.meaning} |")
            continue
        entry = measured[name]
        lines.append(f"{start}{number(entry['value'])} | {number(entry['low'])} to "
                     f"{number(entry['high'])} | {figure.unit} | {goal_of(name)} | "
                     f"{verdict(name, entry)} | {figure.meaning} |")
    return lines


def rows(text):
    """The rows of figures that were measured, by name."""
    found = ((re.match(r"\| `(\w+)` \|", line), line) for line in text.splitlines())
    return {match[1]: line for match, line in found if match and "| not measured |" not in line}


def still_said(text, measured):
    """Sentences on how figures were taken, without those that are `measured` anew."""
    lines = []
    for line in text.splitlines():
        which, colon, how = line.partition(": ")
        names = re.findall(r"`(\w+)`", which)
        if not colon or line.startswith(("|", "<")):
            continue
        if which in ("All", "All others"):
            lines.append(f"All others: {how}")
        elif names and set(names) - set(measured):
            left = ", ".join(f"`{name}`" for name in names if name not in measured)
            lines.append(f"{left}: {how}")
    return lines


def replace(begin, end, lines, document=DOCUMENT):
    """Replaces what is between two marks, by what `lines` are or, called with that, return. Failed if the document
    has lost its marks."""
    with open(document, encoding="utf-8") as text:
        content = text.read()
    if content.count(begin) != 1 or content.count(end) != 1:
        raise Failed(f"{document} has not one pair of marks '{begin}'")
    before, rest = content.split(begin)
    between, after = rest.split(end)
    lines = lines(between) if callable(lines) else lines
    with open(document + ".new", "w", encoding="utf-8") as text:
        text.write("\n".join([before + begin, "", *lines, "", end + after]))
    os.replace(document + ".new", document)


def write(out, document=DOCUMENT):
    measured = figures.load(os.path.join(out, "bench.json"))

    def lines_of(between):
        known = rows(between)
        lines = table(measured, known)
        others = set(known) & {*figures.FIGURES, *figures.ELSEWHERE} - set(measured)
        for sentence in conditions.sentences(os.path.join(out, "bench"), measured, bool(others)):
            lines += ["", sentence]
        for sentence in still_said(between, measured) if others else ():
            lines += ["", sentence]
        return lines

    replace(BEGIN, END, lines_of, document)
