"""Shuffled whole files through an ordinary PyTorch loader, from network mounts of three kinds."""
import contextlib
import functools
import json
import os
import random
import shutil
import subprocess
import tempfile

from bench.lib import jobs
from bench.lib.bench import must_agree_on
from bench.lib.place import TOP, Failed, program
from bench.lib.storage import SlowMount, touch_memory

LINK = 200  # MB/s, of the one link
PROFILES = {"near": "0.5", "busy": "2", "cloud": "10"}  # milliseconds of metadata and reads
FILES, BYTES, CLASSES = 10000, 100_000, 10
# Memory for what is fetched ahead, and next to nothing else.
WINDOW, SMALL_WINDOW = "64M", "8M"
ROUNDS = 3
HIT_FILES = 1000

PROVIDES = [f"files_link_share_{profile}" for profile in PROFILES] + [
    "files_first_epoch_link_share_busy", "files_speedup_busy", "files_speedup_cloud"]
BEST = ["files_speedup_best_workers"]
PLAIN_WORKERS = (4, 8, 16, 32, 48, 64)
MEMORY = ["files_bytes_at_20", "two_jobs_bytes"]
HIT = ["files_hit_over_page_cache", "files_tmpfs_over_page_cache"]


def data(bench):
    """Folder of classes of files of about BYTES bytes each."""
    count = 500 if bench.request.small else FILES
    path = os.path.join(bench.request.data, f"classes-{count}")
    if not os.path.exists(path):
        shutil.rmtree(path + ".partial", ignore_errors=True)
        for label in range(CLASSES):
            os.makedirs(os.path.join(path + ".partial", f"class-{label}"))
        draw = random.Random(1)
        for index in range(count):
            name = os.path.join(path + ".partial", f"class-{index % CLASSES}", f"{index:06d}.bin")
            with open(name, "wb") as file:
                file.write(draw.randbytes(BYTES + draw.randrange(-2000, 2001)))
        os.rename(path + ".partial", path)
    return path


def files_below(folder):
    return [os.path.join(above, name) for above, _, names in os.walk(folder) for name in names]


def read_below(folder):
    size = 0
    for path in files_below(folder):
        with open(path, "rb", buffering=0) as file:
            size += len(file.readall())
    return size


def drop_cached(mount, source):
    """Nothing of the mount is cached, and all that the storage stand-in shows: that is its disk."""
    mount.drop_cached()
    read_below(source)


def load_files(folder, epochs, seed=3, workers=4):
    return ["/usr/bin/python3", os.path.join(TOP, "bench/reader/load_files.py"), folder, str(epochs),
            str(seed), str(workers)]


class Loader:
    """A job whose epochs begin on request."""

    def __init__(self, command, sluice, cgroup=None):
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1"}
        if sluice:
            environment.update(sluice.environment())
        self.job = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, env=environment,
                                    preexec_fn=jobs.joins(cgroup))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        jobs.end(self.job)
        with contextlib.suppress(OSError):
            self.job.stdin.close()

    def ready(self):
        for line in self.job.stderr:
            if line.startswith("ready"):
                return
        raise Failed(f"the loader ended early: status {self.job.wait()}")

    def go(self):
        self.job.stdin.write("\n")
        self.job.stdin.flush()

    def passes(self):
        out, err = self.job.communicate(timeout=jobs.JOB_LIMIT)
        if self.job.returncode:
            raise Failed(f"the loader: status {self.job.returncode}: {err.strip()}")
        return json.loads(out)["passes"]


def epochs(bench, source, profile, count, sluice, job=load_files):
    """Each epoch of job(folder, epochs) with what it asked of the storage, nothing cached when it begins."""
    touch_memory(1 << 30)
    options = ["--latency", PROFILES[profile], "--bandwidth", str(LINK)]
    read = []
    with SlowMount(bench, "staged", source, *options) as mount:
        with Loader(job(mount.folder, count), sluice) as loader:
            for _ in range(count):
                loader.ready()
                drop_cached(mount, source)
                read.append(mount.stats()["totals"]["read_bytes"])
                loader.go()
            passes = loader.passes()
        if sluice:
            sluice.stop()
        read.append(mount.stats()["totals"]["read_bytes"])
    for number, one in enumerate(passes):
        one["asked"] = read[number + 1] - read[number]
    return passes


def rate(one):
    """MB/s over the link: what was retained from an epoch before does not count."""
    return min(one["bytes"], one["asked"]) / one["seconds"] / 1e6


def run(bench):
    source = data(bench)
    ours, plain = {name: [] for name in PROFILES}, {"busy": [], "cloud": []}
    wanted = [name for name in PROFILES
              if bench.wants(f"files_link_share_{name}", f"files_speedup_{name}")
              or (name == "busy" and bench.wants("files_first_epoch_link_share_busy"))]
    for number in range(min(ROUNDS, bench.request.rounds)):
        for name in wanted:
            window = SMALL_WINDOW if bench.request.small else WINDOW
            with jobs.Sluice(memory=window) as sluice:
                ours[name].append(epochs(bench, source, name, 3, sluice))
            text = f"round {number + 1}: {name}: " + ", ".join(
                f"{one['seconds']:.2f} s" for one in ours[name][-1])
            if bench.wants(f"files_speedup_{name}"):
                plain[name].append(epochs(bench, source, name, 1, None))
                text += f"; without {plain[name][-1][0]['seconds']:.2f} s"
            bench.say(text)
    for name in wanted:
        must_agree_on([passes[0]["digest"] for passes in ours[name] + plain.get(name, [])])
        bench.record(f"files_link_share_{name}", [rate(one[-1]) / LINK for one in ours[name]])
        if plain.get(name):
            bench.record(f"files_speedup_{name}",
                         [a[0]["seconds"] / b[-1]["seconds"]
                          for a, b in zip(plain[name], ours[name])])
    bench.record("files_first_epoch_link_share_busy",
                 [rate(one[0]) / LINK for one in ours["busy"]])
    bench.save("staged", {"plain": plain, "sluice": ours})


def best_workers(bench):
    """Against the plain loader with as many workers as suit the mount best."""
    source = data(bench)
    window = SMALL_WINDOW if bench.request.small else WINDOW
    few = PLAIN_WORKERS[:2] if bench.request.small else PLAIN_WORKERS
    plain, ours = {workers: [] for workers in few}, []
    for number in range(min(ROUNDS, bench.request.rounds)):
        with jobs.Sluice(memory=window) as sluice:
            ours.append(epochs(bench, source, "cloud", 3, sluice))
        for workers, some in plain.items():
            some.append(epochs(bench, source, "cloud", 1, None, functools.partial(load_files, workers=workers)))
        bench.say(f"round {number + 1}: {ours[-1][-1]['seconds']:.2f} s; without, by workers: " + ", ".join(
            f"{workers}: {some[-1][0]['seconds']:.2f} s" for workers, some in plain.items()))
    must_agree_on([passes[0]["digest"] for passes in ours + sum(plain.values(), [])])
    best = min(plain, key=lambda workers: sum(passes[0]["seconds"] for passes in plain[workers]))
    bench.record("files_speedup_best_workers", [without[0]["seconds"] / one[-1]["seconds"]
                                                for without, one in zip(plain[best], ours)])
    bench.save("best_workers", {"plain": plain, "sluice": ours, "best": best})


def memory(bench):
    source = data(bench)
    size = read_below(source)
    fifth, two = [], []
    for _ in range(min(ROUNDS, bench.request.rounds)):
        if bench.wants("files_bytes_at_20"):
            with jobs.Sluice(memory=size // 5) as sluice:
                # A fourth is read: what is fetched ahead for an epoch that never comes is not the third's.
                fifth.append(epochs(bench, source, "near", 4, sluice)[2]["asked"] / size)
            bench.say(f"at 20 %: {fifth[-1]:.4f} of the bytes")
        if bench.wants("two_jobs_bytes"):
            two.append(two_jobs(bench, source) / size)
            bench.say(f"two jobs: {two[-1]:.4f} of the bytes")
    bench.record("files_bytes_at_20", fifth)
    bench.record("two_jobs_bytes", two)


def two_jobs(bench, source):
    """Bytes that two jobs ask for together, started together, each in an order of its own."""
    options = ["--latency", PROFILES["busy"], "--bandwidth", str(LINK)]
    with SlowMount(bench, "staged", source, *options) as mount:
        with jobs.Sluice(memory=f"{2 << 30}") as sluice:
            with Loader(load_files(mount.folder, 1, 3), sluice) as one, \
                    Loader(load_files(mount.folder, 1, 4), sluice) as two:
                one.ready()
                two.ready()
                drop_cached(mount, source)
                before = mount.stats()["totals"]["read_bytes"]
                one.go()
                two.go()
                one.passes()
                two.passes()
            sluice.stop()
        return mount.stats()["totals"]["read_bytes"] - before


def hit(bench):
    source = os.path.join(data(bench), "class-0")
    count = str(HIT_FILES)
    ratios, bounds = [], []
    with SlowMount(bench, "staged", source, "--latency", PROFILES["near"]) as mount, \
            tempfile.TemporaryDirectory(prefix="sluice-bench-", dir="/dev/shm") as plain:
        for name in sorted(os.listdir(source))[:HIT_FILES]:
            shutil.copy(os.path.join(source, name), plain)
        for number in range(bench.request.rounds):
            def warm():
                read_below(source)
                return jobs.run([[program("bench/open-files"), source, count]])

            def staged():
                with jobs.Sluice(memory="1G") as sluice:
                    result = jobs.run([[program("bench/open-files"), mount.folder, count]], sluice)
                    sluice.stop()
                return result

            def bound():
                """A bound for whatever holds samples in a memory file system."""
                return jobs.run([[program("bench/open-files"), plain, count]])

            order = [warm, staged, bound]
            took = {one: one().reader["ns"]
                    for one in (order if number % 2 == 0 else reversed(order))}
            ratios.append(took[staged] / took[warm])
            bounds.append(took[bound] / took[warm])
            bench.say(f"round {number + 1}: staged {took[staged] / 1e3:.1f} us a file, "
                      f"warm {took[warm] / 1e3:.1f} us, tmpfs without Sluice "
                      f"{took[bound] / 1e3:.1f} us")
    bench.record("files_hit_over_page_cache", ratios)
    bench.record("files_tmpfs_over_page_cache", bounds)
