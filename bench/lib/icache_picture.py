"""iCache's Figures 8, 9, 10, 11, 14, 15 and 16: what the paper publishes, and beside it what was measured here."""
import os

from bench.lib import figures

SHARES = (20, 40, 60, 80)
PAPER, OURS, OTHER = "#bbbbbb", "#4477aa", "#ccbb44"
# Names of figures, what they are called, and the paper's values: maxima over its models in Figure 8,
# means in Figure 9, ShuffleNet in Figures 10, 11 and 16.
EPOCHS = (("icache_epoch_speedup_default", "Default", 2.3), ("icache_epoch_speedup_base", "Base", 2.3),
          ("icache_epoch_speedup_quiver", "Quiver", 2.0), ("icache_epoch_speedup_coordl", "CoorDL", 1.9),
          ("icache_epoch_speedup_ilfu", "iLFU", 1.6))
WAITING = (("icache_io_speedup_default", "iCache", 2.4), ("quiver_io_speedup_default", "Quiver", 1.2),
           ("coordl_io_speedup_default", "CoorDL", 1.3), ("ilfu_io_speedup_default", "iLFU", 1.4))
PARTS = (("icache_ablation_iis", "+IIS", 1.4), ("icache_ablation_hc", "+HC", 1.7),
         ("icache_ablation_packages", "All, as\npublished", 2.3), ("icache_ablation_all", "All, under\nSluice", 2.3))
HITS = (("lru_hit_20", "Default", 0.02), ("icache_hc_hit_20", "+HC", 0.25), ("icache_hit_20", "iCache", 0.37))
JOBS = (("icache_multi_job_first", "keeping for\nthe one", 1.1),
        ("icache_multi_job_second", "keeping for\nthe other", 1.2))
WORKERS = (("icache_workers_2", "2", 3.9), ("icache_workers_16", "16", 1.2))
SIZES = {"iCache": ("icache_hit", (0.37, 0.55, 0.69, 0.83)), "Default": ("lru_hit", (0.02, 0.09, 0.23, 0.48))}


def beside(axes, rows, found, title, unit):
    """Pairs of bars; nothing where a figure was not measured."""
    places = range(len(rows))
    axes.bar([at - 0.2 for at in places], [paper for _, _, paper in rows], 0.38, color=PAPER,
             label="published")
    ours = [found.get(name) for name, _, _ in rows]
    axes.bar([at + 0.2 for at in places], [one["value"] if one else 0 for one in ours], 0.38, color=OURS,
             label="here")
    for at, one in zip(places, ours):
        if one:
            axes.plot([at + 0.2] * 2, [one["low"], one["high"]], color="black", linewidth=1)
    for at, (row, one) in enumerate(zip(rows, ours)):
        axes.text(at - 0.2, row[2], f"{row[2]:g}", ha="center", va="bottom", fontsize=8)
        axes.text(at + 0.2, one["high"] if one else 0, f"{one['value']:.3g}" if one else "not\nmeasured",
                  ha="center", va="bottom", fontsize=8)
    axes.set_xticks(list(places), [label for _, label, _ in rows])
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(unit)
    axes.margins(y=0.15)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)


def _prefetched(axes, found):
    """Over the bars of EPOCHS, the same systems with Sluice's prefetcher."""
    points = [(at + 0.2, found[f"{name}_prefetched"]["value"]) for at, (name, _, _) in enumerate(EPOCHS)
              if f"{name}_prefetched" in found]
    if points:
        axes.plot(*zip(*points), "D", color=OTHER, markeredgecolor="black", label="here, both under Sluice")
        axes.legend(frameon=False, fontsize=8)


def _sizes(axes, found):
    for (label, (prefix, published)), colour in zip(SIZES.items(), (OURS, OTHER)):
        ours = [found.get(f"{prefix}_{share}") for share in SHARES]
        axes.plot(SHARES, published, "o--", color=colour, fillstyle="none", label=f"{label}, published")
        if all(ours):
            axes.plot(SHARES, [one["value"] for one in ours], "s-", color=colour, label=f"{label}, here")
    axes.set_xticks(SHARES)
    axes.set_ylim(0, 1)
    axes.set_xlabel("memory, percent of the samples")
    axes.set_ylabel("hit ratio")
    axes.set_title("Figure 16 (here: simulated)", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)


def draw(plot, folder, path):
    found = figures.load(os.path.join(os.path.dirname(folder), "bench.json"))
    if "icache_hit_20" not in found and "icache_epoch_speedup_default" not in found:
        return False
    figure, axes = plot.subplots(2, 4, figsize=(18, 8))
    beside(axes[0][0], EPOCHS, found, "Figure 8: epochs of ... / of iCache", "ratio")
    _prefetched(axes[0][0], found)
    beside(axes[0][1], WAITING, found, "Figure 9: waiting for data, Default / ...", "ratio")
    beside(axes[0][2], PARTS, found, "Figure 10: epochs of Base / ...", "ratio")
    beside(axes[1][0], HITS, found, "Figure 11: hits at 20 % (here: simulated)", "hit ratio")
    beside(axes[1][1], JOBS, found, "Figure 14: two jobs (here: simulated)", "time of ... / of iCache")
    beside(axes[1][2], WORKERS, found, "Figure 15: by workers", "epochs of Default / of iCache")
    _sizes(axes[1][3], found)
    axes[0][3].axis("off")
    axes[0][3].text(0, 0.9, "Published: CIFAR-10, A100, OrangeFS; the best model in\nFigure 8, the mean in"
                    " Figure 9, ShuffleNet elsewhere.\n\nHere: a job of six workers on slowfs, 2 ms and 200"
                    " MB/s,\nsamples of 100 KB, 20 % in memory. The other systems decide\nas in the simulator and"
                    " read as published: nothing is\nfetched ahead of the workers, as Sluice does it.\nDiamonds:"
                    " with the prefetcher of Sluice.",
                    va="top", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    return True
