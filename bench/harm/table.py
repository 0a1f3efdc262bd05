"""The table of all rows, for the terminal and for docs/benchmarks.md."""
import statistics

from bench.harm.bounds import epochs_of, geometric_mean, interval, worst_of
from bench.lib import docs

SAVINGS_GROUND, SAVINGS_SECONDS, SAVINGS_SHARE = "@slow10", 0.3, 0.2
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
    cells.append("{1:.2f}, {2:.2f} s".format(*savings_error(rounds)) if "saved" in rounds[0]["sluice"] else "")
    for side in ("sluice", "again"):
        low, mean, high, epoch = worst_of(rounds, side)
        which = "whole" if epoch == "all" else f"epoch {epoch}"
        cells.append(f"{ratio(low)} to {ratio(high)} ({which})" if len(rounds) > 1 else f"{ratio(mean)} ({which})")
    return f"| {job} | {ground} | {len(rounds)} | " + " | ".join(cells) + " |"


def lines(results):
    """Rows with the worst first. Ratios are Sluice's wall time over the plain run's of the same round."""
    found = ["| job | ground | rounds | plain | epoch 1 | epoch 2 | epoch 3 | whole | processor | "
             "requests, bytes | said, saved | worst bounds | plain / plain |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    order = sorted(results, reverse=True, key=lambda name: (worst_of(results[name], "sluice")[:2]))
    return found + [line(name, results[name]) for name in order]


def write(results, about):
    docs.replace(BEGIN, END, [*lines(results), "", about])


def savings_error(rounds):
    """(error, said, saved): by how much what the reports said, in seconds, is off from what was saved, in parts
    of what is allowed: 0.3 s, or a fifth of it where that is more. Means of all rounds."""
    said = statistics.fmean([one["sluice"]["saved"] for one in rounds])
    saved = statistics.fmean([(one["plain"]["whole"] + one["again"]["whole"]) / 2 - one["sluice"]["whole"]
                              for one in rounds])
    return abs(said - saved) / max(SAVINGS_SECONDS, SAVINGS_SHARE * abs(saved)), said, saved


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
    errors = {row: savings_error(rounds) for row, rounds in results.items() if row.endswith(SAVINGS_GROUND)}
    if errors:
        row = max(errors, key=lambda one: errors[one][0])
        error, said, saved = errors[row]
        found["savings_error"] = (error, min(one[0] for one in errors.values()), error,
                                  f"{row}: {said:.2f} s said, {saved:.2f} s saved")
    found["harm_mean"] = (mean, low, high, f"{len(means)} epochs of {len(results)} rows")
    return found
