"""How many samples a chunk should hold (Brand's Figures 13 and 14): epochs of policy brand and pool over chunks of 2 to
256 files, beside the job without Sluice, which reads file by file."""
import os
import statistics

from bench.lib import figures, pool
from bench.lib.storage import SlowMount

PROVIDES = ["chunk_sizes"]
SIZES, SMALL = (2, 8, 32, 64, 128, 256), (8, 64)
PERCENT = 25
LABELS = {"brand": "Brand", "pool": "pool"}
COLOURS = {"brand": "#ccbb44", "pool": "#cc6677"}


def point(passes, chunks=None):
    """Of one run: of each later epoch the seconds, and bytes read from storage; how often it read each chunk."""
    later = passes[pool.FIRST:]
    one = {"seconds": pool.seconds(passes), "asked": statistics.mean(epoch["asked"] for epoch in later)}
    if chunks:
        one["loads"] = passes[-1]["chunks"]["jobs"][0]["loads"] / pool.EPOCHS / chunks
    return one


def run(bench):
    source, count = pool.data(bench)
    common = {"memory": str(max(count * pool.CHARGED * PERCENT // 100, 1 << 20)), "stale": pool.STALE}
    found = []
    with SlowMount(bench, "pool", source, *pool.GROUNDS["requests"]) as mount:
        def measure(name, chunks=None):
            return [point(pool.run_variant(mount, source, name, common), chunks) for _ in range(bench.request.sweep_rounds)]
        found.append({"samples": 1, "plain": measure("plain")})
        for size in SMALL if bench.request.small else SIZES:
            pool.make_chunks(source, mount, size)
            found.append({"samples": size, **{name: measure(name, -(-count // size)) for name in LABELS}})
            bench.say(f"{size} samples: " + ", ".join(
                f"{name} {one['seconds']:.2f} s, {one['loads']:.2f} loads a chunk"
                for name in LABELS for one in found[-1][name]))
    bench.save("chunk_sizes", found)


def draw(pyplot, folder, path):
    raw = figures.load(os.path.join(folder, "chunk_sizes.json"))
    if not raw:
        return False
    sizes = [one["samples"] for one in raw[1:]]
    panels = (("read from storage, MB/s (as Brand's Figure 13)", lambda one: one["asked"] / one["seconds"] / 1e6),
              ("reads of each chunk in an epoch, the first included (Figure 14)", lambda one: one.get("loads")),
              ("seconds of an epoch (Figure 14)", lambda one: one["seconds"]))
    figure, axes = pyplot.subplots(1, len(panels), figsize=(14, 4.5))
    for panel, (title, of) in zip(axes, panels):
        for name, label in LABELS.items():
            values = [[of(one) for one in point_[name]] for point_ in raw[1:]]
            middle = [statistics.median(several) for several in values]
            panel.errorbar(sizes, middle, marker="o", capsize=3, color=COLOURS[name], label=label,
                           yerr=[[m - min(v) for m, v in zip(middle, values)], [max(v) - m for m, v in zip(middle, values)]])
        plain = [of(one) for one in raw[0]["plain"]]
        if None not in plain:
            panel.axhline(statistics.median(plain), color="black", linewidth=0.8, linestyle="--",
                          label="without Sluice, file by file")
        panel.set_xscale("log", base=2)
        panel.set_xticks(sizes, sizes)
        panel.xaxis.set_minor_locator(pyplot.NullLocator())
        panel.set_ylim(bottom=0)
        panel.set_xlabel("samples of a chunk")
        panel.set_title(title, fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
    axes[2].axvline(64, color="black", linewidth=0.8, linestyle=":")
    axes[2].text(64, 0.02, " published\n optimum", fontsize=8, transform=axes[2].get_xaxis_transform())
    axes[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    return True
