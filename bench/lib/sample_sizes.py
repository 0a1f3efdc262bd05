"""Where chunks pay: epochs of files of 4 to 200 KB from storage that answers so many requests a second, without Sluice, as
it supplies them exactly, retained as CoorDL does, and in orders that chunks decide."""
import math
import os
import random
import shutil
import statistics

from bench.lib import figures, pool
from bench.lib.bench import must_agree_on
from bench.lib.storage import SlowMount

PROVIDES = ["sample_sizes"]
# Bytes of a file, and how many files: at most 300 MB.
SIZES = {4_000: 16_000, 10_000: 16_000, 25_000: 8_000, 50_000: 4_000, 100_000: 3_000, 200_000: 1_500}
SMALL = {4_000: 500, 50_000: 200}
PERCENT, PAGE, RECORD = 20, 4096, 1024  # of the samples in memory; what one takes there is whole pages, and its record
LABELS = {"plain": "without Sluice", "exact": "Sluice, exact", "coordl": "CoorDL's cache", "brand": "Brand", "pool": "pool"}
COLOURS = dict(zip(LABELS, ("#bbbbbb", "#4477aa", "#228833", "#ccbb44", "#cc6677")))


def data(bench, size, count):
    path = os.path.join(bench.request.data, f"sizes-{size}-{count}")
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(os.path.join(path, "files"))
    draw = random.Random(size)
    for number in range(count):
        with open(os.path.join(path, "files", f"{number:06d}.bin"), "wb") as file:
            file.write(draw.randbytes(size))
    return path


def measure(bench, size, count):
    """By variant, the passes of each round."""
    source = data(bench, size, count)
    charged = count * (-(-size // PAGE) * PAGE + RECORD)
    common = {"memory": str(max(charged * PERCENT // 100, 1 << 20)), "stale": pool.STALE}
    found = {name: [] for name in LABELS}
    try:
        with SlowMount(bench, "sizes", source, *pool.GROUNDS["requests"]) as mount:
            pool.make_chunks(source, mount)
            for number in range(bench.request.sweep_rounds):
                for name in LABELS if number % 2 == 0 else reversed(LABELS):
                    found[name].append(pool.run_variant(mount, source, name, common))
                bench.say(f"{size} bytes, round {number + 1}: " + ", ".join(
                    f"{name} {pool.seconds(rounds[-1]):.2f} s" for name, rounds in found.items()))
    finally:
        shutil.rmtree(source)
    exact = [name for name in LABELS if name not in pool.CHUNKED]
    must_agree_on([[one["digest"] for one in passes] for name in exact for passes in found[name]])
    return {name: [pool.seconds(passes) for passes in rounds] for name, rounds in found.items()}


def run(bench):
    sizes = SMALL if bench.request.small else SIZES
    bench.save("sample_sizes", [{"bytes": size, "samples": count, "seconds": measure(bench, size, count)}
                                for size, count in sizes.items()])


def crossings(sizes, one, other):
    """Sizes at which two lines cross, between measured ones in proportion on logarithmic axes."""
    lead = [math.log(a / b) for a, b in zip(one, other)]
    return [math.exp(math.log(low) + (math.log(high) - math.log(low)) * before / (before - after))
            for low, high, before, after in zip(sizes, sizes[1:], lead, lead[1:]) if before * after < 0]


def draw(pyplot, folder, path):
    raw = figures.load(os.path.join(folder, "sample_sizes.json"))
    if not raw:
        return False
    sizes = [point["bytes"] for point in raw]
    figure, axes = pyplot.subplots(figsize=(9, 5))
    middle = {}
    for name, label in LABELS.items():
        rates = [[point["bytes"] * point["samples"] / 1e6 / one for one in point["seconds"][name]] for point in raw]
        middle[name] = [statistics.median(values) for values in rates]
        axes.errorbar(sizes, middle[name], marker="o", capsize=3, color=COLOURS[name], label=label,
                      yerr=[[m - min(v) for m, v in zip(middle[name], rates)],
                            [max(v) - m for m, v in zip(middle[name], rates)]])
    for one, other in (("brand", "exact"), ("pool", "exact"), ("brand", "plain"), ("exact", "plain")):
        for at in crossings(sizes, middle[one], middle[other]):
            axes.axvline(at, color="black", linewidth=0.8, linestyle=":")
            axes.text(at, 0.02, f" {LABELS[one]} and\n {LABELS[other]}: {at / 1000:.0f} KB", fontsize=8,
                      transform=axes.get_xaxis_transform())
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{size // 1000}" for size in sizes])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.xaxis.set_minor_locator(pyplot.NullLocator())
    axes.set_xlabel("size of a sample, KB")
    axes.set_ylabel("samples delivered, MB/s")
    axes.set_title("2 ms, 2,000 requests a second, 500 MB/s; memory for a fifth, 6 workers", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    return True
