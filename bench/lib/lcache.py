"""LCache's log against the same files without it, on a stand-in for an SSD: a loop device whose requests are limited,
so that scattered samples are read several times more slowly than large ranges."""
import contextlib
import json
import os
import random
import shutil
import statistics

from bench.lib import jobs, staged
from bench.lib.bench import must_agree_on
from bench.lib.place import Skipped, bytes_of, program
from bench.lib.staged import Loader, files_below
from bench.lib.storage import LoopDisk, SlowMount, call, touch_memory

PROVIDES = ["ssd_random_over_sequential", "lcache_over_plain_ssd", "lcache_over_plain_ssd_bound", "lcache_over_prefetch_ssd",
            "lcache_over_nopfs_policy", "lcache_ssd_share", "lcache_ssd_share_cached"]
CHUNKS = ["chunks_read_share", "chunks_read_share_disk"]
REMOTE = ["lcache_remote_bytes_epoch2", "lcache_remote_bytes_epoch3"]
PARTIAL = ["lcache_partial_48", "lcache_partial_48_prefetch"]
# Of the dataset, both logs together: as 12 of 25 GB, of which one log holds a half.
PARTIAL_SHARE = 0.48
# A request is at most 1 MiB, as for the kernel's block layer. By these a sample's read is a sixth of the rate.
BANDWIDTH, REQUESTS = 500, 833  # MB/s, a second
FILES, BYTES, WORKERS, EPOCHS, FIRST = 8000, 100_000, 6, 5, 1
MEMORY_FILES = "/dev/shm"
MEMORY = "160M"  # a fifth of the files
ROUNDS = 3
CHUNK_COUNT, CHUNK_BYTES, DEPTH = 192, 4 << 20, 4  # as bench/reader/read_chunks.cc and CopyLog have them
READ_SECONDS = 4
# Bytes: both logs in the page cache and in the stand-in's image, the copies, and the job.
FILLED = 5 << 30


def fio(path, rw, block, depth, cgroup=None):
    """MB/s of direct reads of the file, in the group."""
    command = ["fio", "--name=ssd", f"--filename={path}", f"--rw={rw}", f"--bs={block}", f"--iodepth={depth}",
               "--ioengine=io_uring", "--direct=1", "--readonly", "--time_based", f"--runtime={READ_SECONDS}",
               "--output-format=json"]
    printed = call(*within(cgroup), *command)
    return json.loads(printed[printed.index("{"):])["jobs"][0]["read"]["bw_bytes"] / 1e6


def within(cgroup):
    return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', cgroup] if cgroup else []


def write_random(path, bytes_):
    draw = random.Random(1)
    with open(path, "wb") as file:
        for _ in range(bytes_ // CHUNK_BYTES):
            file.write(draw.randbytes(CHUNK_BYTES))
        os.fsync(file.fileno())


class Ssd(LoopDisk):
    """With a folder of files, and room for both logs. Its image is in memory: writes take what they take there, rather than
    at what this machine's disk has left for them, which an SSD of these read rates would exceed."""

    def __init__(self, bench):
        super().__init__(bench, BANDWIDTH)
        self.count = 1000 if bench.request.small else FILES
        self.size = 10 * self.count * BYTES  # of which at most 4: ext4 writes at once what has no room to wait
        self.image = os.path.join(MEMORY_FILES, f"sluice-bench-ssd-{os.getpid()}.img")
        self.files = os.path.join(self.folder, "files")
        self.cache = os.path.join(self.folder, "cache")

    def __enter__(self):
        if shutil.disk_usage(MEMORY_FILES).free < self.size:
            raise Skipped(f"{MEMORY_FILES} has no {self.size >> 20} MiB for the stand-in")
        return super().__enter__()

    def __exit__(self, *error):
        try:
            super().__exit__(*error)
        finally:
            for path in self.image, self.image + ".partial":
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)

    def throttles(self):
        return {**super().throttles(), "read_iops_device": REQUESTS}

    def fill(self):
        os.makedirs(self.files)
        os.makedirs(self.cache)
        draw = random.Random(1)
        for number in range(self.count):
            with open(os.path.join(self.files, f"{number:06d}.bin"), "wb") as file:
                file.write(draw.randbytes(BYTES))
        write_random(os.path.join(self.folder, "range"), self.count * BYTES)

    def drop(self):
        """Nothing of the content of the files is cached, even of those that are open."""
        for path in files_below(self.files):
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def job(folder, count=EPOCHS):
    return [*staged.load_files(folder, count, workers=WORKERS), "own"]


def epochs(disk, sluice, cached=False):
    """Each epoch, nothing of the files cached when it begins, or from the second on all; the optimizer joins the group."""
    touch_memory(FILLED)
    with Loader(job(disk.files), sluice, disk.cgroup) as loader:
        for _ in range(EPOCHS):
            loader.ready()
            if not cached:
                disk.drop()
            loader.go()
        passes = loader.passes()
    if sluice:
        stage = (sluice.status() or {}).get("stage") or {}
        passes[-1]["log"] = stage.get("log")
        sluice.stop()
    return passes


def seconds(passes):
    return statistics.mean(one["seconds"] for one in passes[FIRST:])


def run(bench):
    settings = {"memory": MEMORY, "stage": "always"}
    with Ssd(bench) as disk:
        disk.cold()
        rates = {f"{rw} {block} depth {depth}": fio(os.path.join(disk.folder, "range"), rw, block, depth, disk.cgroup)
                 for rw, block in (("randread", "100k"), ("read", "4m")) for depth in (1, 6, 32)}
        bench.say("fio, MB/s: " + ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items()))
        # NoPFS retains in memory what fits, and reads the rest from the disk, sample by sample, with a queue of its own.
        variants = {"plain": None, "cached": None, "prefetch": settings, "nopfs": {**settings, "policy": "minio"},
                    "lcache": {**settings, "policy": "lcache", "cache_dir": disk.cache}}
        found = {name: [] for name in variants}
        for number in range(min(ROUNDS, bench.request.rounds)):
            for name in variants if number % 2 == 0 else reversed(variants):
                disk.cold()
                if variants[name] is None:
                    found[name].append(epochs(disk, None, name == "cached"))
                else:
                    with jobs.Sluice(**variants[name]) as sluice:
                        found[name].append(epochs(disk, sluice))
                bench.say(f"round {number + 1}: {name}: "
                          + ", ".join(f"{one['seconds']:.2f} s" for one in found[name][-1])
                          + f" {found[name][-1][-1].get('log') or ''}")
    must_agree_on([[one["digest"] for one in passes] for many in found.values() for passes in many])
    bench.save("lcache", {"fio": rates, **found})
    sequential = rates["read 4m depth 6"]
    bench.record("ssd_random_over_sequential", [rates["randread 100k depth 6"] / sequential])
    for figure, name in (("lcache_over_plain_ssd", "plain"), ("lcache_over_prefetch_ssd", "prefetch"),
                         ("lcache_over_nopfs_policy", "nopfs")):
        bench.record(figure, [seconds(other) / seconds(ours) for other, ours in zip(found[name], found["lcache"])])
    # What no log of any kind can leave unread. (In the smoke test all files would fit.)
    beyond = disk.count * (BYTES - bytes_of(MEMORY) / FILES)
    bench.record("lcache_over_plain_ssd_bound", [seconds(one) / (beyond / sequential / 1e6) for one in found["plain"]])
    for figure, name in ("lcache_ssd_share", "lcache"), ("lcache_ssd_share_cached", "cached"):
        bench.record(figure, [statistics.mean(one["bytes"] for one in each[FIRST:]) / seconds(each) / 1e6 / sequential
                              for each in found[name]])


def chunk_share(folder, cgroup=None):
    """(ours, fio's) rates of one round, in MB/s."""
    path = os.path.join(folder, "range")
    theirs = fio(path, "read", str(CHUNK_BYTES), DEPTH, cgroup)
    printed = json.loads(call(*within(cgroup), program("bench/read-chunks"), folder, str(CHUNK_COUNT), str(READ_SECONDS),
                              str(DEPTH)))
    if not printed["direct"]:
        raise Skipped(f"the file system of {folder} reads nothing past the page cache")
    return printed["bytes"] / printed["seconds"] / 1e6, theirs


def chunks(bench):
    """Chunks of the log against fio, on the stand-in for an SSD and on this machine's disk."""
    found = {}
    with Ssd(bench) as disk:
        disk.cold()
        found["chunks_read_share"] = [chunk_share(disk.folder, disk.cgroup) for _ in range(bench.request.rounds)]
    folder = os.path.join(bench.request.data, "chunks")
    os.makedirs(folder, exist_ok=True)
    try:
        write_random(os.path.join(folder, "range"), CHUNK_COUNT * CHUNK_BYTES)
        found["chunks_read_share_disk"] = [chunk_share(folder) for _ in range(bench.request.rounds)]
    finally:
        shutil.rmtree(folder)
    bench.save("chunks", found)
    for name, rates in found.items():
        bench.say(f"{name}: " + ", ".join(f"{ours:.0f} of {theirs:.0f} MB/s" for ours, theirs in rates))
        bench.record(name, [ours / theirs for ours, theirs in rates])


def partial(bench):
    """Files behind a slow mount, of which the logs hold a part, on the local disk."""
    source = staged.data(bench)
    size = sum(os.path.getsize(path) for path in files_below(source))
    common = {"memory": MEMORY}
    variants = {"plain": None, "prefetch": {**common, "packs": "0"},
                "lcache": {**common, "policy": "lcache", "packs": str(int(size * PARTIAL_SHARE))}}
    found = {name: [] for name in variants}
    with SlowMount(bench, "staged", source, "--latency", staged.PROFILES["busy"], "--bandwidth", str(staged.LINK)) as mount:
        for number in range(min(ROUNDS, bench.request.rounds)):
            for name in variants if number % 2 == 0 else reversed(variants):
                found[name].append(partial_epochs(bench, mount, source, variants[name]))
                bench.say(f"round {number + 1}: {name}: "
                          + ", ".join(f"{one['seconds']:.2f} s" for one in found[name][-1])
                          + f" {found[name][-1][-1].get('log') or ''}")
    must_agree_on([[one["digest"] for one in passes] for many in found.values() for passes in many])
    bench.save("lcache_partial", found)
    for figure, name in zip(PARTIAL, ("plain", "prefetch")):
        bench.record(figure, [seconds(other) / seconds(ours) for other, ours in zip(found[name], found["lcache"])])


def partial_epochs(bench, mount, source, settings):
    """Each epoch, nothing of the mount cached when it begins."""
    touch_memory(FILLED)
    cache = os.path.join(bench.request.data, "log")
    os.makedirs(cache, exist_ok=True)
    try:
        with contextlib.ExitStack() as stack:
            sluice = stack.enter_context(jobs.Sluice(cache_dir=cache, **settings)) if settings else None
            with Loader(job(mount.folder), sluice) as loader:
                for _ in range(EPOCHS):
                    loader.ready()
                    staged.drop_cached(mount, source)
                    loader.go()
                passes = loader.passes()
            if sluice:
                passes[-1]["log"] = ((sluice.status() or {}).get("stage") or {}).get("log")
                sluice.stop()
    finally:
        shutil.rmtree(cache)
    return passes


def remote_bytes(bench, source, sluice):
    """What each of three epochs asks of a slow mount, from its first sample on until the next one's: a fourth is begun, as
    what is read ahead for an epoch that never comes is not the third's."""
    touch_memory(FILLED)
    read = []
    with SlowMount(bench, "staged", source, "--latency", staged.PROFILES["busy"], "--bandwidth", str(staged.LINK)) as mount:
        with Loader(job(mount.folder, 4), sluice) as loader:
            for _ in range(4):
                loader.ready()
                read.append(mount.stats()["totals"]["read_bytes"])
                staged.drop_cached(mount, source)
                loader.go()
            passes = loader.passes()
        log = ((sluice.status() or {}).get("stage") or {}).get("log")
        sluice.stop()
    return [after - before for before, after in zip(read, read[1:])], passes, log


def remote(bench):
    """The log holds the whole dataset: what is still read from its storage."""
    source = staged.data(bench)
    found = []
    for number in range(min(ROUNDS, bench.request.rounds)):
        cache = os.path.join(bench.request.data, "log")
        os.makedirs(cache, exist_ok=True)
        try:
            with jobs.Sluice(memory=MEMORY, policy="lcache", cache_dir=cache) as sluice:
                found.append(remote_bytes(bench, source, sluice))
        finally:
            shutil.rmtree(cache)
        bench.say(f"round {number + 1}: bytes by epoch {found[-1][0]}, {found[-1][2]}")
    bench.save("lcache_remote", found)
    must_agree_on([[one["digest"] for one in passes] for _, passes, _ in found])
    for name, epoch in zip(REMOTE, (1, 2)):
        bench.record(name, [asked[epoch] for asked, _, _ in found])
