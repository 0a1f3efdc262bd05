"""What importance costs: in accuracy, by real training that the decisions are taken for as it runs; in time,
where there is nothing to gain; and at the moment when a new list of importances comes into force."""
import concurrent.futures
import contextlib
import gzip
import json
import os
import shutil
import statistics
import subprocess
import tempfile

from bench.lib import jobs
from bench.lib.bench import ratios
from bench.lib.icache_speed import MEMORY, WARM_UP
from bench.lib.place import TOP, Failed, Skipped, program
from bench.lib.train import HEADERS, SIDE, SOURCE

ACCURACY = ["icache_top1_loss_points", "icache_top1_full", "icache_top1_substituted"]
OVERHEAD = ["hlist_report_overhead"]
SWAP = ["icache_stall_during_swap_us"]
SELECTION = ["icache_select_ms", "icache_begin_ms", "icache_serve_ms", "icache_read_ms", "icache_begin_ranks_ms"]
RANKS = 8
PROVIDES = ACCURACY + OVERHEAD + SWAP + SELECTION
MODELS, SEEDS, EPOCHS = ("shufflenet", "resnet"), 3, 10
# Of an image and its file's page, in memory.
BYTES_IN_MEMORY = 5120
OVERHEAD_ROUNDS, OVERHEAD_EPOCHS = 5, 3
# Left alone, malloc gives memory back after each step in one training, and in the next not, as it happens to lie; faulting it
# in anew takes up to a sixth of an epoch, which is far more than what is to be seen. So no training returns memory.
STEADY_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 32), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}
IN_MEMORY = "/dev/shm"


def data(bench):
    """All training images, one file each, in a folder a label; and how many."""
    try:
        with gzip.open(os.path.join(SOURCE, "train-images-idx3-ubyte.gz")) as file:
            images = file.read()[HEADERS[0]:]
        with gzip.open(os.path.join(SOURCE, "train-labels-idx1-ubyte.gz")) as file:
            labels = file.read()[HEADERS[1]:]
    except FileNotFoundError:
        raise Skipped("dataset-fashion-mnist is not installed") from None
    if bench.request.small:
        labels = labels[:1000]
    path = os.path.join(bench.request.data, f"images-{len(labels)}")
    if not os.path.exists(path):
        shutil.rmtree(path + ".partial", ignore_errors=True)
        for label in set(labels):
            os.makedirs(os.path.join(path + ".partial", str(label)))
        for index, label in enumerate(labels):
            with open(os.path.join(path + ".partial", str(label), f"{index:06d}"), "wb") as file:
                file.write(images[index * SIDE * SIDE:(index + 1) * SIDE * SIDE])
        os.rename(path + ".partial", path)
    return path, len(labels)


def train(folder, model, epochs, seed, sluice, settings=None):
    command = ["/usr/bin/python3", "-W", "ignore", os.path.join(TOP, "bench/reader/train_accuracy.py")]
    return jobs.run([[*command, folder, model, str(epochs), str(seed)]], sluice, settings=settings)


def pair(folder, count, model, epochs, seed):
    """(without, under Sluice), the same seed."""
    plain = train(folder, model, epochs, seed, None)
    # Local files are staged for this, or nothing would be retained that could substitute.
    with jobs.Sluice(memory=max(count * BYTES_IN_MEMORY * MEMORY // 100, 1 << 20), stage="always",
                     importance=f"iis:warmup={WARM_UP},substitute=any") as sluice:
        return plain, train(folder, model, epochs, seed, sluice)


def accuracy(bench):
    folder, count = data(bench)
    seeds, epochs = (1, 2) if bench.request.small else (SEEDS, EPOCHS)
    models = MODELS[:1] if bench.request.small else MODELS
    wanted = [(model, seed) for seed in range(1, seeds + 1) for model in models]
    # Nothing is timed: as many at a time as there are processors.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        pairs = list(pool.map(lambda one: pair(folder, count, one[0], epochs, one[1]), wanted))
    lost = {}
    for (model, seed), (plain, ours) in zip(wanted, pairs):
        report = ours.report
        bench.say(f"{model}, seed {seed}: top-1 {plain.reader['top1']:.2f} of all samples, "
                  f"{ours.reader['top1']:.2f} of {report['samples_selected']} of "
                  f"{report['samples_offered']}, {report['l_hits_substituted']} substituted")
        lost.setdefault(seed, []).append(plain.reader["top1"] - ours.reader["top1"])
    bench.save("icache_accuracy", [
        {"model": model, "seed": seed, "plain": plain.raw(), "sluice": ours.raw()}
        for (model, seed), (plain, ours) in zip(wanted, pairs)])
    bench.record("icache_top1_loss_points", [statistics.mean(one) for one in lost.values()])
    bench.record("icache_top1_full", [plain.reader["top1"] for plain, _ in pairs])
    bench.record("icache_top1_substituted",
                 [ours.report["l_hits_substituted"] / sum(one["samples"] for one in ours.reader["passes"])
                  for _, ours in pairs])


class Steady:
    """A run's epochs but the first, in which files are found and losses known for the first time."""

    def __init__(self, result):
        self.passes = result.reader["passes"]
        self.wall = sum(one["seconds"] for one in self.passes[1:])


@contextlib.contextmanager
def in_memory(folder, count):
    """A copy of `count` files that no kernel takes out of memory, as some do with idle pages of the page cache."""
    if not os.path.isdir(IN_MEMORY) or shutil.disk_usage(IN_MEMORY).free < 2 * count * BYTES_IN_MEMORY:
        raise Skipped(f"{IN_MEMORY} has no room for {count} files")
    with tempfile.TemporaryDirectory(prefix="sluice-bench-", dir=IN_MEMORY) as place:
        yield shutil.copytree(folder, os.path.join(place, "images"))


def overhead(bench):
    """Files that are all in memory, and are read from there: all that is left is observing."""
    folder, count = data(bench)
    with in_memory(folder, count) as held:
        def importance(level):
            def one():
                with jobs.Sluice(importance=level) as sluice:
                    return Steady(train(held, "shufflenet", OVERHEAD_EPOCHS, 1, sluice, STEADY_MEMORY))
            return one
        runs = bench.rounds({level: importance(level) for level in ("off", "loss")},
                            min(OVERHEAD_ROUNDS, bench.request.rounds))
    bench.save("icache_overhead", {level: [one.passes for one in many]
                                   for level, many in runs.items()})
    bench.record("hlist_report_overhead", ratios(runs["loss"], runs["off"]))


def printed(words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def swap(bench):
    words = [program("bench/swap")] + ["20000"] * bench.request.small
    raw = [printed(words) for _ in range(bench.request.rounds)]
    bench.save("icache_swap", raw)
    bench.record("icache_stall_during_swap_us", [each for one in raw for each in one["longest_us"]])


def selection(bench):
    words = [program("bench/selection"), "20000" if bench.request.small else "1280000"]
    alone, ranks = ([printed([*words, str(number)]) for _ in range(bench.request.rounds)]
                    for number in (1, RANKS))
    bench.save("icache_selection", {"alone": alone, "ranks": ranks})
    for name in SELECTION[:-1]:
        bench.record(name, [each for one in alone for each in one[name.removeprefix("icache_")]])
    bench.record(SELECTION[-1], [each for one in ranks for each in one["begin_ms"]])


def run(bench):
    for names, measure in ((SWAP, swap), (SELECTION, selection), (OVERHEAD, overhead), (ACCURACY, accuracy)):
        if bench.wants(*names):
            measure(bench)
