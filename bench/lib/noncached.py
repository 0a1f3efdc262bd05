"""Bytes that the job itself had to demand from storage, where the optimizer runs already."""
import os

from bench.lib import jobs
from bench.lib.bench import must_agree

MODES = {"noncached_bytes_cell": ("lmdb", "cell"), "noncached_bytes_observe": ("map", "observe"),
         "noncached_bytes_page": ("lmdb", "page")}
PROVIDES = list(MODES)


def cold(bench, mode, checkpoint):
    with bench.slow("cold", "--profile", "pfs") as mount:
        path = mount.folder if mode == "lmdb" else os.path.join(mount.folder, "data.mdb")
        settings = {"checkpoint": checkpoint}
        if mode == "map" and bench.request.size < 256 << 20:
            settings["dataset"] = path  # a file that `auto` would find too small
        with jobs.Sluice(**settings) as sluice:
            sluice.start_by_hand()
            result = jobs.run([jobs.reader(mode, path, pace=bench.train_pace)], sluice)
        result.asked = mount.stats()
    return result


def run(bench):
    _ = bench.train_pace  # measured before the first mount is made
    variants = {name: lambda m=mode: cold(bench, *m) for name, mode in MODES.items()
                if bench.wants(name)}
    runs = bench.rounds(variants, bench.request.rounds)
    must_agree(*(some for name, some in runs.items() if MODES[name][0] == "lmdb"))
    bench.save("noncached", {name: [one.raw() for one in some] for name, some in runs.items()})
    for name, some in runs.items():
        bench.record(name, [one.asked_by_readers() for one in some])
