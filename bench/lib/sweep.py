"""Distance and size in page mode (the paper's Figure 8), and LMDB beside separate files."""
from bench.lib import jobs
from bench.lib.bench import must_agree, ratios
from bench.lib.place import MIB
from bench.lib.storage import SlowMount, read_folder

DISTANCES = (4, 8, 16, 32)  # MiB
SIZES = (50, 100, 200)  # MiB
SHARE_OF_FILE = 4  # a quarter of it is read per point
FILES = 2048
FILES_PROVIDE = ["separate_files_over_lmdb_pfs"]


def sweep(bench):
    """Page mode at every pair of distance and size, cold, over the same bytes warm."""
    limit = max(bench.request.size // SHARE_OF_FILE, 1)
    pace = bench.train_pace

    def point(distance, size):
        with bench.slow("cold", "--profile", "pfs") as mount:
            command = jobs.reader("lmdb", mount.folder, "--bytes", limit, pace=pace)
            with jobs.Sluice(checkpoint="page", distance=f"{distance}M", size=f"{size}M") as sluice:
                return jobs.run([command], sluice)

    points = [(d, s) for d in DISTANCES for s in SIZES]
    if bench.request.small:
        points = [(8, 50), (32, 50)]
    variants = {f"{d} {s}": lambda d=d, s=s: point(d, s) for d, s in points}
    variants["warm"] = lambda: bench.run_warm(
        jobs.reader("lmdb", bench.warm().folder, "--bytes", limit, pace=pace))
    runs = bench.rounds(variants, bench.request.sweep_rounds)
    must_agree(*runs.values())
    bench.save("figure8", {"bytes": limit, "points": [
        {"distance": d * MIB, "size": s * MIB, "over_warm": ratios(runs[f"{d} {s}"], runs["warm"])}
        for d, s in points]})


def files(bench):
    """The same records cold from separate files and from LMDB, plain reads, without Sluice."""
    count = min(FILES, max(bench.request.size // 200704 // 2, 1))
    source = bench.data.files(count)

    def separate():
        read_folder(source)
        with SlowMount(bench, "cold", source, "--profile", "pfs") as mount:
            return jobs.run([jobs.reader("files", mount.folder, "--lines")])

    def lmdb():
        with bench.slow("cold", "--profile", "pfs") as mount:
            # Whole pages count: 49 for each record.
            return jobs.run([jobs.reader("lmdb", mount.folder, "--lines", "--bytes",
                                         count * 200704)])

    runs = bench.rounds({"lmdb": lmdb, "files": separate}, bench.request.rounds)
    must_agree(*runs.values())
    bench.save("files", {"records": count, "files_s": [one.wall for one in runs["files"]],
                         "lmdb_s": [one.wall for one in runs["lmdb"]]})
    bench.record("separate_files_over_lmdb_pfs", ratios(runs["files"], runs["lmdb"]))
