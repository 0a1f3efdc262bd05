"""A paced LMDB reader on a local disk that gives 300 MB/s."""
import os

from bench.lib import jobs
from bench.lib.bench import must_agree, ratios
from bench.lib.place import DISK_LIMIT, Failed
from bench.lib.storage import LoopDisk, read_folder, touch_memory

PROVIDES = ["lmdb_cold_over_warm_disk"]
SHARE = 0.75  # of the limit, consumed by the reader
TOLERANCE = 0.1  # of the limit, that dd may be above it: the kernel starts with a burst


def run(bench):
    pace = bench.pace(DISK_LIMIT * SHARE)
    bench.drop_warm()
    with LoopDisk(bench, DISK_LIMIT) as disk:
        held = disk.measured_limit()
        bench.say(f"the throttled disk gives dd {held:.1f} MB/s")
        if held > DISK_LIMIT * (1 + TOLERANCE) and not bench.request.small:
            raise Failed(f"the throttle does not hold {DISK_LIMIT} MB/s, dd gets {held:.1f}")
        folder = os.path.join(disk.folder, "lmdb")
        command = jobs.reader("lmdb", folder, pace=pace)

        def warm():
            read_folder(folder)
            return jobs.run([command], cgroup=disk.cgroup)

        def cold(settings):
            disk.cold()
            touch_memory(bench.request.disk_size)
            if settings is None:
                return jobs.run([command], cgroup=disk.cgroup)
            with jobs.Sluice(**settings) as sluice:
                return jobs.run([command], sluice, cgroup=disk.cgroup)

        variants = {"warm": warm, "cold": lambda: cold({})}
        if bench.wants("figure7"):
            variants["baseline"] = lambda: cold(None)
            variants["detect_only"] = lambda: cold({"prefetch": "off", "checkpoint": "cell"})
        runs = bench.rounds(variants, bench.request.rounds)
        must_agree(*runs.values())
        raw = {name: [one.raw() for one in some] for name, some in runs.items()}
        bench.save("disk", {"dd_mb_s": held, **raw})
        bench.record("lmdb_cold_over_warm_disk", ratios(runs["cold"], runs["warm"]))
