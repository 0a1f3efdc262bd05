"""Writes the figures of bench.json into docs/benchmarks.md, between two marks."""
import os

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


def table(measured):
    lines = ["| figure | value | spread | unit | goal | met | meaning |",
             "|---|---|---|---|---|---|---|"]
    for name, figure in {**figures.FIGURES, **figures.ELSEWHERE}.items():
        start = f"| `{name}` | "
        if name not in measured:
            lines.append(f"{start}not measured | | {figure.unit} | {goal_of(name)} | | "
                         f"{figure.meaning} |")
            continue
        entry = measured[name]
        lines.append(f"{start}{number(entry['value'])} | {number(entry['low'])} to "
                     f"{number(entry['high'])} | {figure.unit} | {goal_of(name)} | "
                     f"{verdict(name, entry)} | {figure.meaning} |")
    return lines


def write(out):
    """Replaces what is between the marks. Failed if the document has lost them."""
    with open(DOCUMENT, encoding="utf-8") as text:
        content = text.read()
    if content.count(BEGIN) != 1 or content.count(END) != 1:
        raise Failed(f"{DOCUMENT} has not one pair of marks for its figures")
    before, rest = content.split(BEGIN)
    after = rest.split(END)[1]
    measured = figures.load(os.path.join(out, "bench.json"))
    lines = table(measured)
    for sentence in conditions.sentences(os.path.join(out, "bench"), measured):
        lines += ["", sentence]
    with open(DOCUMENT, "w", encoding="utf-8") as text:
        text.write("\n".join([before + BEGIN, "", *lines, "", END + after]))
