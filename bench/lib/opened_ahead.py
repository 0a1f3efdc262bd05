"""The design that was not taken: originals that a sidecar opens and reads ahead, and hands over with SCM_RIGHTS,
beside copies in a memory file system; per file of a job that does nothing else."""
import os
import shutil
import tempfile
from typing import NamedTuple

from bench.harm.gluster import Gluster
from bench.lib import jobs, staged
from bench.lib.place import Skipped, program
from bench.lib.storage import SlowMount

COUNT, RATE = 400, "800mbit"


class Ground(NamedTuple):
    milliseconds: str  # of slowfs; None: GlusterFS
    batch: int = 1  # originals a message
    age: int = 0  # milliseconds between opening ahead and use
    options: tuple = ()


GROUNDS = {"near": Ground("0.5"), "busy": Ground("2"), "cloud": Ground("10"), "cloud_old": Ground("10", age=2000),
           "cloud_batch": Ground("10", batch=32), "cloud_no_keep": Ground("10", options=("--no-keep-cache",)),
           "gluster": Ground(None)}
PROVIDES = [f"opened_ahead_over_copy_{name}" for name in GROUNDS]


def measure(ground, originals, copies, count):
    printed = jobs.run([[program("bench/opened-ahead"), originals, copies, str(count), str(ground.batch),
                         str(ground.age)]]).reader
    return printed["handed_ns"], printed["copy_ns"]


def slow(bench, ground, source, copies, count):
    options = ["--latency", ground.milliseconds, "--bandwidth", str(staged.LINK), *ground.options]
    with SlowMount(bench, "opened", source, *options) as mount:
        return measure(ground, mount.folder, copies, count)


def run(bench):
    source = os.path.join(staged.data(bench), "class-0")
    count = 20 if bench.request.small else COUNT
    raw = {}
    with tempfile.TemporaryDirectory(prefix="sluice-bench-", dir="/dev/shm") as copies, \
            tempfile.TemporaryDirectory(prefix="opened-", dir=bench.request.data) as some:
        folder = os.path.join(some, "files")
        os.mkdir(folder)
        for name in sorted(os.listdir(source))[:count]:
            shutil.copy(os.path.join(source, name), copies)
            shutil.copy(os.path.join(source, name), folder)
        for name, ground in GROUNDS.items():
            if not bench.wants(f"opened_ahead_over_copy_{name}"):
                continue
            try:
                raw[name] = list(rounds(bench, ground, folder, copies, count))
            except Skipped as why:
                bench.say(f"skipped opened_ahead_over_copy_{name}: {why}")
                continue
            bench.say(f"{name}: " + "; ".join(
                f"{handed / 1e3:.1f} us, copy {copy / 1e3:.1f} us" for handed, copy in raw[name]))
            bench.record(f"opened_ahead_over_copy_{name}", [handed / copy for handed, copy in raw[name]])
    bench.save("opened_ahead", raw)


def rounds(bench, ground, source, copies, count):
    number = bench.request.rounds
    if ground.milliseconds is not None:
        for _ in range(number):
            yield slow(bench, ground, source, copies, count)
        return
    with Gluster(bench.request.data, RATE) as volume:
        for _ in range(number):
            with volume.fresh(source) as folder:
                yield measure(ground, folder, copies, count)
