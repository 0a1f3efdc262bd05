"""iCache live where requests are scarce: substitutes come in packages, chunks on the same storage, and all systems fetch
ahead with the same prefetcher and memory. A hit is a sample that was retained, or that a package brought for an
earlier request, in the last epochs of a training of 13, whose losses are its own."""
import os
import subprocess

from bench.lib import jobs
from bench.lib.bench import ratios
from bench.lib.icache_speed import MODELS, WARM_UP, data, run_job
from bench.lib.place import Failed, program
from bench.lib.storage import SlowMount

UNLIMITED = ["--no-keep-cache"]


def ground(requests):
    """A mount that answers so many requests a second."""
    return [*UNLIMITED, "--latency", "2", "--requests", str(requests), "--bandwidth", "500"]


GROUND, SCARCE = ground(2000), ground(500)
# The published 256 are half a percent of CIFAR10's 50,000 samples, and so are these of 12,000: what six workers have in
# flight is the same part of the memory.
BATCH = 64
PERCENTS, EACH, ROUNDS = (20, 40, 60, 80), 10, 3
# Two turns of two epochs that select and one that takes all, as most of the 90 that were published: what the first
# ones retain is of a memory that was empty, and of losses that change from epoch to epoch.
HITS_EPOCHS, COUNTED = 13, 6
SELECTS = {"importance": f"iis:warmup={WARM_UP}"}
# Of the paper's systems: what is selected, by which policy it is retained, and what substitutes.
SYSTEMS = {"default": {"policy": "lru"}, "quiver": {"policy": "quiver"}, "coordl": {"policy": "minio"},
           "ilfu": {"policy": "lfu", **SELECTS}}


def icache(most, packages="auto"):
    return {"importance": f"{SELECTS['importance']},substitute=any,most-substituted={most},packages={packages}"}


HITS = [f"icache_live_hit_{percent}" for percent in PERCENTS]
# By how much may be substituted, in percent, and where.
OVER_NONE = {"icache_live_packages_over_none": (100, GROUND), "icache_live_packages_over_none_12": (12, GROUND),
             "icache_live_packages_over_none_500": (100, SCARCE)}
OVER_NONE_BOUND = "icache_live_packages_over_none_bound"
OVER = [f"icache_over_{name}_requests" for name in SYSTEMS]
BOUND = "bytes_over_bound_iis"
PROVIDES = HITS + ["icache_live_substituted_20", "icache_live_package_share_20"] + [
    *OVER_NONE, OVER_NONE_BOUND] + OVER + [BOUND]


def make_chunks(bench, source):
    """By the paths under which jobs name the samples."""
    cache = os.path.join(source, "chunks")
    os.makedirs(cache, exist_ok=True)
    with SlowMount(bench, "icache", source) as mount:
        labels = [os.path.join(mount.folder, name) for name in sorted(os.listdir(source)) if name.isdigit()]
        done = subprocess.run([program("sluice"), "chunks", "make", "--cache-dir", cache, "--samples", str(EACH), *labels],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(done.stderr.strip())
        return os.path.join(mount.folder, "chunks")


class Job:
    """The training, with chunks on its own storage."""

    def __init__(self, bench):
        self.bench = bench
        self.source, self.count, self.size = data(bench)
        self.chunks = make_chunks(bench, self.source)

    def run(self, percent, settings, options=GROUND, **others):
        packages = "importance" in settings and "packages=auto" in settings["importance"]
        with jobs.Sluice(memory=self.size * percent // 100, packs="0", stale="86400", cache_dir=self.chunks,
                         **settings) as sluice:
            one = run_job(self.bench, self.source, MODELS["shufflenet"], sluice, options=options, batch=BATCH, **others)
        read = (one.status.get("chunks") or {}).get("reads", 0)
        if (read != 0) != packages:
            raise Failed(f"{settings}: {read} chunks were read")
        return one

    def variant(self, percent, settings, **others):
        return lambda: self.run(percent, settings, **others)


def counts(one):
    """The job's own, of all epochs."""
    report = one.result.report
    return {"h_hits": report["h_hits"], "l_exact": report["l_hits_exact"], "l_substituted": report["l_hits_substituted"],
            "misses": report["importance_misses"]}


def counted(one):
    """The same of the last epochs, by what the job asked between epochs."""
    passes = one.result.reader["passes"]
    before, after = passes[-COUNTED - 1]["answered"], passes[-1]["answered"]
    return {kind: after[kind] - before[kind] for kind in ("h_hits", "l_exact", "l_substituted", "misses")}


def hit_ratio(one):
    found = counted(one)
    return 1 - found["misses"] / sum(found.values())


def substituted(one):
    found = counted(one)
    return found["l_substituted"] / sum(found.values())


def hits(bench, job):
    variants = {percent: job.variant(percent, icache(12), epochs=HITS_EPOCHS, timed=slice(0, HITS_EPOCHS), counted=True)
                for percent in PERCENTS}
    runs = bench.rounds(variants, min(ROUNDS, bench.request.rounds))
    bench.save("icache_packages_hits", {str(percent): [{**one.raw(), "status": counts(one), "chunks": one.status["chunks"]}
                                                       for one in many] for percent, many in runs.items()})
    for percent in PERCENTS:
        bench.record(f"icache_live_hit_{percent}", [hit_ratio(one) for one in runs[percent]])
    bench.record("icache_live_substituted_20", [substituted(one) for one in runs[20]])
    bench.record("icache_live_package_share_20", [
        one.status["chunks"]["read_bytes"] / one.asked for one in runs[20]])


def over_none(bench, job):
    for name, (most, options) in OVER_NONE.items():
        bounds = [OVER_NONE_BOUND] if name == "icache_live_packages_over_none" and bench.wants(OVER_NONE_BOUND) else []
        if not bench.wants(name, *bounds):
            continue
        variants = {"none": job.variant(20, icache(most, "off"), options=options),
                    "packages": job.variant(20, icache(most), options=options)}
        if bounds:  # all that no saved request can save: what the job and Sluice compute
            variants["unlimited"] = job.variant(20, icache(most, "off"), options=UNLIMITED)
        runs = bench.rounds(variants, min(ROUNDS, bench.request.rounds))
        bench.save(name, {kind: [{**one.raw(), "status": counts(one)} for one in many] for kind, many in runs.items()})
        bench.record(name, ratios(runs["none"], runs["packages"]))
        for bound in bounds:
            bench.record(bound, ratios(runs["none"], runs["unlimited"]))


def over(bench, job):
    runs = bench.rounds({"icache": job.variant(20, icache(100)),
                         **{name: job.variant(20, settings) for name, settings in SYSTEMS.items()}},
                        min(ROUNDS, bench.request.rounds))
    bench.save("icache_packages_over", {name: [one.raw() for one in many] for name, many in runs.items()})
    for name in SYSTEMS:
        bench.record(f"icache_over_{name}_requests", ratios(runs[name], runs["icache"]))


def over_bound(bench, job):
    """Bytes read in all epochs / the selected samples' beyond what memory can hold after the first epoch."""
    runs = bench.rounds({"iis": job.variant(20, SELECTS)}, min(ROUNDS, bench.request.rounds))["iis"]
    bench.save(BOUND, [one.raw() for one in runs])
    size = job.size / job.count
    shares = []
    for one in runs:
        epochs = [epoch["samples"] * size for epoch in one.result.reader["passes"]]
        shares.append(one.asked / (epochs[0] + sum(epoch - job.size * 20 / 100 for epoch in epochs[1:])))
    bench.record(BOUND, shares)


def run(bench):
    job = Job(bench)
    if bench.wants(*HITS, "icache_live_substituted_20", "icache_live_package_share_20"):
        hits(bench, job)
    over_none(bench, job)
    if bench.wants(*OVER):
        over(bench, job)
    if bench.wants(BOUND):
        over_bound(bench, job)
