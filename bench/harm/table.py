"""The table of all rows, for the terminal and for docs/benchmarks.md."""
import os

from bench.harm.bounds import epochs_of, geometric_mean, interval, worst_of
from bench.lib.docs import DOCUMENT
from bench.lib.place import Failed

BEGIN, END = "<!-- harm: begin, made by scripts/bench-harm --docs -->", "<!-- harm: end -->"


def ratio(value):
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def processor(rounds):
    """The job's processor time with Sluice / without."""
    return geometric_mean([one["sluice"]["cpu"] / one["plain"]["cpu"] for one in rounds])


def storage(rounds):
    """Requests to a slow mount and bytes read from it with Sluice / without; "" of a ground without such counts."""
    some = [one for one in rounds if "asked" in one["sluice"]]
    return " ".join(ratio(geometric_mean([(one["sluice"]["asked"][kind] + 1) / (one["plain"]["asked"][kind] + 1)
                                          for one in some]))
                    for kind in ("requests", "read_bytes")) if some else ""


def line(name, rounds):
    job, _, ground = name.partition("@")
    ours = epochs_of(rounds, "sluice")
    plain = rounds[0]["plain"]
    cells = [f"{plain['whole']:.2f} s"]
    cells += [ratio(geometric_mean(ours[epoch])) if epoch in ours else "" for epoch in (1, 2, 3, "all")]
    cells += [ratio(processor(rounds)), storage(rounds)]
    for side in ("sluice", "again"):
        low, mean, high, epoch = worst_of(rounds, side)
        which = "whole" if epoch == "all" else f"epoch {epoch}"
        cells.append(f"{ratio(low)} to {ratio(high)} ({which})" if len(rounds) > 1 else f"{ratio(mean)} ({which})")
    return f"| {job} | {ground} | {len(rounds)} | " + " | ".join(cells) + " |"


def lines(results):
    """Rows with the worst first. Ratios are Sluice's wall time over the plain run's of the same round."""
    found = ["| job | ground | rounds | plain | epoch 1 | epoch 2 | epoch 3 | whole | processor | requests, bytes | worst bounds | plain / plain |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    order = sorted(results, reverse=True, key=lambda name: (worst_of(results[name], "sluice")[:2]))
    return found + [line(name, results[name]) for name in order]


def write(results, about):
    """Replaces what is between the marks. Failed if the document has lost them."""
    with open(DOCUMENT, encoding="utf-8") as text:
        content = text.read()
    if content.count(BEGIN) != 1 or content.count(END) != 1:
        raise Failed(f"{DOCUMENT} has not one pair of marks for the rows of harm")
    before, rest = content.split(BEGIN)
    after = rest.split(END)[1]
    with open(DOCUMENT + ".new", "w", encoding="utf-8") as text:
        text.write("\n".join([before + BEGIN, "", *lines(results), "", about, "", END + after]))
    os.replace(DOCUMENT + ".new", DOCUMENT)


def figures_of(results):
    """harm_worst and the like as bench.json holds them, with the row and epoch that decide them."""
    found = {}
    for name, side in (("harm_worst", "sluice"), ("harm_plain_worst", "again")):
        row = max(results, key=lambda one: worst_of(results[one], side)[0])
        low, mean, high, epoch = worst_of(results[row], side)
        found[name] = (low, low, high, f"{row}, {'whole' if epoch == 'all' else f'epoch {epoch}'}: {mean:.3f}")
    means = [geometric_mean(ratios) for rounds in results.values()
             for ratios in epochs_of(rounds, "sluice").values()]
    low, mean, high = interval(means)
    found["harm_mean"] = (mean, low, high, f"{len(means)} epochs of {len(results)} rows")
    return found
