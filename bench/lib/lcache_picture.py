"""LCache's Figures 2 and 5 as they are here: what the stand-in for an SSD gives to scattered and to large reads, and the rate
at which epochs are read with all files on it, and with a part."""
import os
import statistics

from bench.lib import figures
from bench.lib.lcache import FIRST

PLAIN, OTHER, OURS = "#bbbbbb", "#ccbb44", "#4477aa"
LABELS = {"plain": "without\nSluice", "nopfs": "NoPFS's\npolicy", "prefetch": "Sluice,\nno log", "lcache": "LCache"}
PUBLISHED = {"lcache": "all on the SSD (published: 9.4 x PyTorch)",
             "lcache_partial": "48 % on the disk, rest remote (published: 1.45 x)"}


def rates(rounds):
    """MB/s of the later epochs of each round."""
    return [sum(one["bytes"] for one in passes[FIRST:]) / sum(one["seconds"] for one in passes[FIRST:]) / 1e6
            for passes in rounds]


def bars(axes, values, labels, colours):
    """With the spread, and how many times the first."""
    middle = [statistics.median(several) for several in values]
    axes.bar(range(len(values)), middle, 0.7, color=colours)
    for at, several in enumerate(values):
        axes.plot([at, at], [min(several), max(several)], color="black", linewidth=1)
        over = f"\n{middle[at] / middle[0]:.2f} x" if at else ""
        axes.text(at, max(several), f"{middle[at]:.0f}{over}", ha="center", va="bottom", fontsize=8)
    axes.set_xticks(range(len(values)), labels, fontsize=8)
    axes.set_ylabel("MB/s")
    axes.margins(y=0.2)
    axes.spines[["top", "right"]].set_visible(False)


def draw(pyplot, folder, path):
    found = {name: figures.load(os.path.join(folder, name + ".json")) for name in PUBLISHED}
    fio = found["lcache"].pop("fio", {})
    if not fio and not found["lcache_partial"]:
        return False
    figure, axes = pyplot.subplots(1, 3, figsize=(14, 4.5))
    if fio:
        # Of "randread 100k depth 6", say.
        labels = [f"{'random' if way == 'randread' else 'sequential'}\n{size}\ndepth {depth}"
                  for way, size, _, depth in map(str.split, fio)]
        bars(axes[0], [[rate] for rate in fio.values()], labels, [OTHER if "random" in name else OURS for name in labels])
        axes[0].set_title("the stand-in for an SSD, by fio (as Figure 2)", fontsize=10)
    for panel, (name, title) in zip(axes[1:], PUBLISHED.items()):
        variants = [one for one in LABELS if one in found[name]]
        panel.set_title(f"epochs, {title}", fontsize=10)
        if not variants:
            panel.text(0.5, 0.5, "not measured", ha="center")
        else:
            colours = [OURS if one == "lcache" else PLAIN if one == "plain" else OTHER for one in variants]
            bars(panel, [rates(found[name][one]) for one in variants], [LABELS[one] for one in variants], colours)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    return True
