"""The figures by name: unit, goal and what each means; statistics; build/bench.json."""
import json
import os
import statistics

from bench.lib.figure_table import ELSEWHERE, FIGURES


def figure_of(name):
    return FIGURES.get(name) or ELSEWHERE[name]


# Where the longest of all runs is the figure, or what is a bound already, not the usual one.
HIGHEST = {"icache_stall_during_swap_us", "harm_worst", "harm_plain_worst", "savings_error"}


def summary(name, values):
    """Value (median, or the highest where that is the figure) and spread (lowest and highest) of
    paired runs, as bench.json holds it."""
    figure = figure_of(name)
    value = max(values) if name in HIGHEST else statistics.median(values)
    return {"value": _rounded(value), "unit": figure.unit,
            "goal": figure.goal, "least": figure.least, "low": _rounded(min(values)), "high": _rounded(max(values))}


def _rounded(value):
    return round(value, 5) if isinstance(value, float) else value


def met(name, value):
    """True, False, or None where there is no goal."""
    figure = figure_of(name)
    if figure.goal is None:
        return None
    return value >= figure.goal if figure.least else value <= figure.goal


def load(path):
    try:
        with open(path, encoding="utf-8") as text:
            return json.load(text)
    except FileNotFoundError:
        return {}


def store(path, content):
    """Whole or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as text:
        json.dump(content, text, indent=1)
        text.write("\n")
    os.replace(path + ".new", path)


def merge(path, found):
    """Adds figures to bench.json, in the order of the table above."""
    known = {**load(path), **found}
    order = list(FIGURES) + list(ELSEWHERE) + sorted(set(known) - set(FIGURES) - set(ELSEWHERE))
    store(path, {name: known[name] for name in order if name in known})


def describe(name, entry):
    verdict = {True: "met", False: "MISSED", None: "reported"}[met(name, entry["value"])]
    goal = ""
    if entry["goal"] is not None:
        goal = f", goal {'>=' if figure_of(name).least else '<='} {entry['goal']:g}"
    return (f"{name} = {entry['value']:g} {entry['unit']}"
            f" (from {entry['low']:g} to {entry['high']:g}{goal}): {verdict}")
