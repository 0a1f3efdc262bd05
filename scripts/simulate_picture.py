"""Draws what `sluice simulate --csv` wrote: CSV on standard input, the picture's path as argument.

Compiled into the sluice program. Exit status 3: no matplotlib; 1: anything else.
"""
import csv
import sys

COLOURS = ["#4477aa", "#cc6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#222255"]
MIB = 1 << 20


def load(stream):
    """{policy: {memory in bytes: [row of each epoch]}}, in the order of the file."""
    outcomes = {}
    for row in csv.DictReader(stream):
        by_memory = outcomes.setdefault(row["policy"], {})
        by_memory.setdefault(int(row["memory_bytes"]), []).append(row)
    return outcomes


def steady(rows, column):
    """Mean of the epochs but the first, as in the program's table."""
    values = [float(row[column]) for row in rows[1:] or rows]
    return sum(values) / len(values)


def alike(curves):
    """Policies whose curves could not be distinguished, as [(names, curve)]."""
    groups = []
    for name, curve in curves.items():
        for names, other in groups:
            if all(abs(a - b) <= 0.01 * max(*curve, *other) for a, b in zip(curve, other)):
                names.append(name)
                break
        else:
            groups.append(([name], curve))
    return groups


def draw(outcomes, path, pyplot):
    figure, panels = pyplot.subplots(1, 3, figsize=(13, 4.2))
    plots = [("hit_ratio", "hit ratio", 1), ("storage_bytes", "MiB from storage, an epoch", MIB),
             ("stall_s", "seconds of stall, an epoch", 1)]
    memories = sorted({memory for by_memory in outcomes.values() for memory in by_memory})
    for axes, (column, title, unit) in zip(panels, plots):
        curves = {policy: [steady(rows, column) / unit for _, rows in sorted(by_memory.items())]
                  for policy, by_memory in outcomes.items()}
        if len(memories) > 1:
            for names, values in alike(curves):
                axes.plot([memory / MIB for memory in memories], values, marker="o",
                          color=COLOURS[list(curves).index(names[0]) % len(COLOURS)],
                          label=", ".join(names))
            axes.set_xlabel("memory, MiB")
            axes.legend(frameon=False, fontsize=8)
        else:
            axes.bar(list(curves), [values[0] for values in curves.values()], 0.7,
                     color=COLOURS[:len(curves)])
            axes.tick_params(axis="x", rotation=30)
        axes.set_title(title, fontsize=11)
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main():
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return 3
    try:
        draw(load(sys.stdin), sys.argv[1], pyplot)
    except OSError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
