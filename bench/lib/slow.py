"""A paced LMDB reader on slow mounts, cold and warm: what the whole project is for."""
from bench.lib import jobs
from bench.lib.bench import must_agree, ratios
from bench.lib.place import Failed, Skipped, is_root

PROVIDES = ["lmdb_cold_over_warm_pfs", "lmdb_baseline_over_warm_pfs",
            "lmdb_baseline_over_warm_pfs_ra16m", "lmdb_cold_over_warm_far",
            "noncached_bytes_cold_start", "optimizer_cpu_s_per_gb", "optimizer_rss_mb"]


def cold(bench, profile, settings, *mount_options):
    """A run on a mount of its own; with Sluice unless `settings` is None."""
    with bench.slow("cold", "--profile", profile, *mount_options) as mount:
        command = jobs.reader("lmdb", mount.folder, pace=bench.train_pace)
        if settings is None:
            result = jobs.run([command])
        else:
            with jobs.Sluice(**settings) as sluice:
                result = jobs.run([command], sluice)
        result.asked = mount.stats()
    if result.asked["totals"]["read_bytes"] < result.reader["passes"][0]["bytes"]:
        raise Failed("the cold run found pages in the cache")
    return result


def run(bench):
    pace = bench.train_pace
    variants = {"warm": lambda: bench.run_warm(
        jobs.reader("lmdb", bench.warm().folder, pace=pace))}
    if bench.wants("lmdb_cold_over_warm_pfs", "noncached_bytes_cold_start", "figure7",
                   "optimizer_cpu_s_per_gb", "optimizer_rss_mb"):
        variants["cold_pfs"] = lambda: cold(bench, "pfs", {})
    if bench.wants("lmdb_cold_over_warm_far"):
        variants["cold_far"] = lambda: cold(bench, "far", {})
    if bench.wants("lmdb_baseline_over_warm_pfs", "figure7"):
        variants["baseline"] = lambda: cold(bench, "pfs", None)
    if bench.wants("figure7"):
        variants["detect_only"] = lambda: cold(
            bench, "pfs", {"prefetch": "off", "checkpoint": "cell"})
    wants_large = bench.wants("lmdb_baseline_over_warm_pfs_ra16m")
    if wants_large and is_root():
        variants["ra16m"] = lambda: cold(bench, "pfs", None, "--read-ahead", "16384")
    if len(variants) > 1:
        report(bench, bench.rounds(variants, bench.request.rounds))
    if wants_large and not is_root():
        raise Skipped("lmdb_baseline_over_warm_pfs_ra16m: a read-ahead of 16 MiB needs root")


def report(bench, runs):
    must_agree(*runs.values())
    bench.save("slow", {name: [one.raw() for one in some] for name, some in runs.items()})
    figure_of = {"cold_pfs": "lmdb_cold_over_warm_pfs", "cold_far": "lmdb_cold_over_warm_far",
                 "baseline": "lmdb_baseline_over_warm_pfs",
                 "ra16m": "lmdb_baseline_over_warm_pfs_ra16m"}
    for variant, name in figure_of.items():
        if variant in runs:
            bench.record(name, ratios(runs[variant], runs["warm"]))
    with_us = runs.get("cold_pfs", [])
    bench.record("noncached_bytes_cold_start", [one.asked_by_readers() for one in with_us])
    bench.record("optimizer_cpu_s_per_gb",
                 [one.optimizer["cpu_s"] / (one.reader["file_bytes"] / 1e9) for one in with_us])
    bench.record("optimizer_rss_mb", [one.optimizer["rss_bytes"] / 1e6 for one in with_us])
