"""Draws build/bench/*.png from the raw figures beside them; needs matplotlib only then."""
import os
import statistics

from bench.lib import chunk_picture, chunk_sizes, figures, icache_picture, lcache_picture, sample_sizes

VARIANTS = ["baseline", "detect_only", "cold", "warm"]
LABELS = ["baseline", "prefetch-off", "prefetch-on", "warm cache"]
# Seconds that the text of the paper (section 4.1) gives. Prefetch-off is said to equal the
# baseline; the local SSD's prefetch-on to equal its warm cache. It gives no warm cache for FEFS.
PAPER = {"FEFS SSD": [280, 280, 180, None], "local SSD": [320, 320, 160, 160]}
MIB = 1 << 20


def plot():
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    return pyplot


def _bars(axes, groups, colours):
    width = 0.8 / len(groups)
    for number, (label, values) in enumerate(groups.items()):
        places = [i + (number - (len(groups) - 1) / 2) * width for i in range(len(values))]
        axes.bar(places, [v or 0 for v in values], width * 0.95, label=label,
                 color=colours[number])
        for place, value in zip(places, values):
            axes.text(place, value or 0, f"{value:.3g}" if value else "not given", ha="center",
                      va="bottom", fontsize=8, rotation=0 if value else 90)
    axes.set_xticks(range(len(LABELS)), LABELS)
    axes.set_ylabel("seconds")
    axes.margins(y=0.2)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper right")


def _seconds(raw, names):
    return [statistics.median(one["wall"] for one in raw[name]) if raw.get(name) else None
            for name in names]


def figure7(folder, path):
    ours = {}
    slow = figures.load(os.path.join(folder, "slow.json"))
    if "baseline" in slow and "cold_pfs" in slow:
        ours["slowfs, 0.5 ms, 400 MB/s"] = _seconds(
            slow, ["baseline", "detect_only", "cold_pfs", "warm"])
    disk = figures.load(os.path.join(folder, "disk.json"))
    if "baseline" in disk:
        ours["disk limited to 300 MB/s"] = _seconds(disk, VARIANTS)
    if not ours:
        return False
    colours = ["#4477aa", "#ccbb44"]
    figure, (left, right) = plot().subplots(1, 2, figsize=(12, 4.5))
    _bars(left, PAPER, colours)
    left.set_title("The paper's Figure 7: values that its text gives")
    _bars(right, ours, colours)
    right.set_title("Sluice: medians, reader at 75 % of the storage's rate")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    return True


def figure8(folder, path):
    raw = figures.load(os.path.join(folder, "figure8.json"))
    if not raw:
        return False
    points = {(p["distance"] // MIB, p["size"] // MIB): p["over_warm"] for p in raw["points"]}
    distances = sorted({d for d, _ in points})
    sizes = sorted({s for _, s in points})
    figure, axes = plot().subplots(figsize=(8, 4.5))
    for number, size in enumerate(sizes):
        at = [d for d in distances if (d, size) in points]
        spread = [points[d, size] for d in at]
        middle = [statistics.median(values) for values in spread]
        # Sizes stand beside each other, or their spreads would hide one another.
        places = [distances.index(d) + (number - (len(sizes) - 1) / 2) * 0.12 for d in at]
        axes.errorbar(places, middle, capsize=3, marker="o", label=f"size {size} MiB",
                      color=["#4477aa", "#228833", "#cc6677", "#ccbb44"][number % 4],
                      yerr=[[m - min(v) for m, v in zip(middle, spread)],
                            [max(v) - m for m, v in zip(middle, spread)]])
        for place, value, distance in zip(places, middle, at):
            if (distance, size) == (8, 50):
                axes.annotate(f"default: {value:.3f}", (place, value), textcoords="offset points",
                              xytext=(-8, 14), ha="right", fontweight="bold", fontsize=9,
                              arrowprops={"arrowstyle": "-"})
    axes.axhline(1, color="black", linewidth=0.8, linestyle="--")
    axes.set_xticks(range(len(distances)), [f"{d} MiB" for d in distances])
    axes.set_xlim(-0.7, len(distances) - 0.5)
    axes.set_xlabel("distance")
    axes.set_ylabel("cold with Sluice / warm without")
    axes.set_title("Distance and size in page mode (as the paper's Figure 8)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    return True


def separate_files(folder, path):
    raw = figures.load(os.path.join(folder, "files.json"))
    if not raw:
        return False
    figure, axes = plot().subplots(figsize=(5, 4.5))
    values = [statistics.median(raw["files_s"]), statistics.median(raw["lmdb_s"])]
    axes.bar([0, 1], values, 0.6, color=["#4477aa", "#ccbb44"])
    for place, value in enumerate(values):
        axes.text(place, value, f"{value:.3g} s", ha="center", va="bottom")
    axes.set_xticks([0, 1], ["separate files", "one LMDB"])
    axes.set_ylabel("seconds")
    axes.set_title(f"{raw['records']:,} records of 192 KiB, cold, without Sluice\n"
                   f"slowfs, 0.5 ms, 400 MB/s: LMDB is {values[0] / values[1]:.1f} times faster")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    return True


def draw(folder):
    """Whatever there is data for. Says which pictures were made."""
    own = {"figure7": figure7, "figure8": figure8, "files": separate_files}
    others = {"icache": icache_picture, "chunks": chunk_picture, "sample_sizes": sample_sizes, "chunk_sizes": chunk_sizes,
              "lcache": lcache_picture}
    for name in (*own, *others):
        path = os.path.join(folder, name + ".png")
        if own[name](folder, path) if name in own else others[name].draw(plot(), folder, path):
            print(f"bench: drew {os.path.relpath(path)}")
