"""How fast epochs are: iCache live, under Sluice, beside the systems that it was compared with.

Those decide by the same simulator that gives their hit ratios, and are followed by a job of the same
workers: what they hit is read from memory, what they miss from the mount, by whichever worker asks
for it, as they were published: nothing is fetched ahead of the workers. Sluice runs the job as it is.
"""
import csv
import json
import os
import statistics
import subprocess
import tempfile

from bench.lib import jobs, train
from bench.lib.bench import ratios
from bench.lib.place import TOP, program
from bench.lib.staged import LINK, PROFILES, files_below, read_below
from bench.lib.storage import SlowMount, touch_memory

SYSTEMS = ["default", "base", "quiver", "coordl", "ilfu", "iis", "hc", "icache", "oracle"]
COMPARED = ["default", "base", "quiver", "coordl", "ilfu"]
PROVIDES = ([f"icache_epoch_speedup_{name}" for name in COMPARED]
            + ["icache_epoch_speedup_exact", "icache_epoch_speedup_iis_only",
               "icache_ablation_iis", "icache_ablation_hc", "icache_ablation_packages",
               "icache_ablation_all",
               "icache_io_speedup_default", "quiver_io_speedup_default", "coordl_io_speedup_default",
               "ilfu_io_speedup_default", "icache_over_oracle"]
            + [f"icache_workers_{workers}" for workers in (2, 16)])
MEMORY = 20  # percent of the dataset
# The simulator's epochs after its warm-up of five: two that select, and one that takes all.
FOLLOWED = (8, 9, 10)
# The same of a job that warms up for one epoch.
WARM_UP, EPOCHS, TIMED = 1, 7, slice(4, 7)
# What a GPU would compute a batch of 256 in, so that Default waits for storage seven eighths of its time,
# or two thirds.
MODELS = {"shufflenet": 40, "resnet": 105}  # milliseconds
PACKS = 64 << 20
PADDED = 100_000  # bytes of an image, about a photograph's
ROUNDS = 2


def decisions(bench, source, count, size):
    """{system: its epochs, as train_importance.py follows them}"""
    with tempfile.NamedTemporaryFile(dir=bench.request.out, suffix=".csv") as out:
        subprocess.run([program("sluice"), "simulate", "--system", ",".join(SYSTEMS), "--samples",
                        str(count), "--size-distribution", f"fixed:{size // count}", "--epochs",
                        str(FOLLOWED[-1] + 1), "--memory", f"{MEMORY}%", "--decisions", out.name],
                       stdout=subprocess.DEVNULL, check=True)
        found = {name: {number: [] for number in FOLLOWED} for name in SYSTEMS}
        with open(out.name, encoding="ascii") as text:
            for one in csv.DictReader(text):
                epoch = found[one["system"]].get(int(one["epoch"]))
                if epoch is not None:
                    epoch.append([int(one["served"]), int(not one["how"].startswith("miss")),
                                  int(one["packages"])])
    fetched = [len(found["iis"][number]) / count for number in FOLLOWED]
    return {name: {"memory": source, "epochs": list(epochs.values()),
                   # Computing-oriented importance sampling fetches all and computes those.
                   "computed": fetched if name == "base" else [1.0] * len(FOLLOWED)}
            for name, epochs in found.items()}


class Timed:
    """A run's epochs, of which bench.rounds wants the time; `asked` of the mount, in bytes, in all epochs; the policy
    by which Sluice retained files; its status after the job."""

    def __init__(self, passes, result, asked, status):
        self.passes, self.result, self.asked, self.status = passes, result, asked, status
        self.policy = (status.get("stage") or {}).get("policy")
        self.wall = sum(one["seconds"] for one in passes)
        self.waited = sum(one["waited"] for one in passes)

    def raw(self):
        return {"passes": self.passes, "report": self.result.raw().get("report", {}), "asked": self.asked,
                "policy": self.policy}


MOUNT = ["--latency", PROFILES["busy"], "--bandwidth", str(LINK)]


def run_job(bench, source, compute, sluice, followed=None, workers=6, options=MOUNT, computed=(), batch=None,
            epochs=EPOCHS, timed=TIMED, counted=False):
    read_below(source)
    touch_memory(1 << 30)
    command = ["/usr/bin/python3", "-W", "ignore",
               os.path.join(TOP, "bench/reader/train_importance.py")]
    with SlowMount(bench, "icache", source, *options) as mount, \
            tempfile.NamedTemporaryFile("w", dir=bench.request.out, suffix=".json") as file:
        words = [mount.folder, str(epochs), str(compute), "--workers", str(workers)]
        if followed:
            json.dump(followed, file)
            file.flush()
            words += ["--shared", file.name]
        if batch:
            words += ["--batch", str(batch)]
        if counted:
            words += ["--status", program("sluice")]
        if computed:
            words += ["--computed", *map(str, computed)]
        # What a GPU would compute takes no processor: the thread of OpenBLAS spins between batches.
        result, status = jobs.run([[*command, *words]], sluice, settings={"OMP_NUM_THREADS": "1"}), {}
        if sluice:
            status = sluice.status() or {}
            sluice.stop()
        asked = mount.stats()["totals"]["read_bytes"]
    passes = result.reader["passes"]
    return Timed(passes if followed else passes[timed], result, asked, status)


def under_sluice(bench, source, size, compute, workers=6, options=MOUNT, computed=(), **settings):
    with jobs.Sluice(memory=size * MEMORY // 100, **settings) as sluice:
        return run_job(bench, source, compute, sluice, workers=workers, options=options, computed=computed)


OURS = {"sluice": {"importance": f"iis:warmup={WARM_UP},substitute=any"}, "sluice iis": {"importance": f"iis:warmup={WARM_UP}"},
        "sluice exact": {}}


def data(bench):
    """(folder, images, bytes of them)"""
    source = train.data(bench, PADDED)
    packs = os.path.join(source, "packs")
    if not os.path.exists(packs):
        with open(packs + ".partial", "wb") as file:
            file.write(os.urandom(PACKS))
        os.rename(packs + ".partial", packs)
    sizes = [os.path.getsize(path) for label in os.listdir(source) if label.isdigit()
             for path in files_below(os.path.join(source, label))]
    return source, len(sizes), sum(sizes)


def variants(bench, source, size, systems, names, compute):
    def follow(name):
        return lambda: run_job(bench, source, compute, None, systems[name])

    def ours(name):
        return lambda: under_sluice(bench, source, size, compute, **OURS[name])
    return {name: follow(name) if name in systems else ours(name) for name in names}


def by_workers(bench, source, size, systems):
    """Epochs of Default, of which one is followed, over those under Sluice."""
    followed, compute = dict(systems["default"]), MODELS["shufflenet"]
    followed["epochs"] = followed["epochs"][:1]
    for workers in (2, 16):
        runs = bench.rounds({
            "default": lambda count=workers: run_job(bench, source, compute, None, followed, count),
            "sluice": lambda count=workers: under_sluice(bench, source, size, compute, count, **OURS["sluice"])},
            min(ROUNDS, bench.request.rounds))
        bench.record(f"icache_workers_{workers}", ratios(
            runs["default"], runs["sluice"], lambda one: one.wall / len(one.passes)))


def run(bench):
    source, count, size = data(bench)
    systems = decisions(bench, source, count, size)
    runs = {}
    for model, compute in MODELS.items():
        names = [*SYSTEMS, *OURS] if model == "shufflenet" else [
            "default", "quiver", "coordl", "ilfu", "oracle", "sluice"]
        bench.say(f"{model}: {compute} ms a batch")
        if bench.request.small:  # a smoke test: the others stand for no more than that they are counted
            names, all_names = ["default", "oracle", "sluice"], names
        runs[model] = bench.rounds(variants(bench, source, size, systems, names, compute),
                                   min(ROUNDS, bench.request.rounds))
        if bench.request.small:
            runs[model].update({name: runs[model]["default"] for name in all_names if name not in names})
    bench.save("icache_speed", {model: {name: [one.raw() for one in many]
                                        for name, many in found.items()}
                                for model, found in runs.items()})
    bound = runs["shufflenet"]

    def speedup(name, over, of="sluice"):
        bench.record(name, ratios(bound[over], bound[of]))
    for name in COMPARED:
        speedup(f"icache_epoch_speedup_{name}", name)
    speedup("icache_epoch_speedup_exact", "sluice exact")
    speedup("icache_epoch_speedup_iis_only", "sluice iis")
    for name, of in (("iis", "iis"), ("hc", "hc"), ("packages", "icache"), ("all", "sluice")):
        speedup(f"icache_ablation_{name}", "base", of)
    for name, figure in (("sluice", "icache"), ("quiver", "quiver"), ("coordl", "coordl"),
                         ("ilfu", "ilfu")):
        by_model = [ratios(found["default"], found[name], lambda one: one.waited)
                    for found in runs.values()]
        bench.record(f"{figure}_io_speedup_default", [statistics.mean(one) for one in zip(*by_model)])
    bench.record("icache_over_oracle", ratios(runs["resnet"]["sluice"], runs["resnet"]["oracle"]))
    by_workers(bench, source, size, systems)
