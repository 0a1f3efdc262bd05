"""Shuffled samples of an LMDB through an ordinary PyTorch loader, from a busy network mount."""
import ctypes
import json
import mmap
import os
import subprocess

from bench.lib import jobs
from bench.lib.bench import must_agree_on
from bench.lib.place import TOP, Failed
from bench.lib.storage import SlowMount, read_folder, touch_memory

PROVIDES = ["lmdb_random_link_share_busy", "lmdb_random_first_epoch_link_share_busy",
            "lmdb_random_speedup_busy"]
MEMORY = ["lmdb_random_bytes_at_20", "lmdb_random_cached_at_20"]
LINK = 200  # MB/s, of the one link
BUSY = ["--latency", "2", "--bandwidth", str(LINK)]
# A value and its header of 16 bytes fill 16 pages: what crosses the link is what is requested.
RECORD = 65536 - 16
EPOCHS = 3  # in the first, places are guessed or watched
SHARE = 4  # of the file size of the other figures

MAKE = """
import lmdb, random, sys
folder, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
draw = random.Random(1)
with lmdb.open(folder, map_size=1 << 40) as env:
    for first in range(0, count, 1000):
        with env.begin(write=True) as txn:
            for index in range(first, min(first + 1000, count)):
                txn.put(b"%08d" % index, draw.randbytes(size), append=True)
"""


def database(bench, record=RECORD, size=None):
    """Records of so many bytes each, as whole pages `size` bytes together; how many."""
    pages = (record + 16 + 4095) // 4096 * 4096
    count = max((size or bench.request.size // SHARE) // pages, 64)
    path = os.path.join(bench.request.data,
                        f"samples-{count}" + (f"x{record}" if record != RECORD else ""))
    if not os.path.exists(path):
        subprocess.run(["/usr/bin/python3", "-c", MAKE, path + ".partial", str(count),
                        str(record)], check=True)
        os.rename(path + ".partial", path)
    return path, count


def drop(folder):
    """The mount's own pages of the database."""
    handle = os.open(os.path.join(folder, "data.mdb"), os.O_RDONLY)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)


def cached(path):
    """Bytes of the file in the page cache."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    length = ctypes.c_size_t(os.path.getsize(path))
    pages = (ctypes.c_ubyte * ((length.value + 4095) // 4096))()
    with open(path, "rb") as file:
        at = ctypes.c_void_p(libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(),
                                       ctypes.c_long(0)))
    if libc.mincore(at, length, pages) != 0:
        raise Failed("mincore does not work here")
    libc.munmap(at, length)
    return sum(page & 1 for page in pages) * 4096


def epochs(bench, source, sluice, before=drop, storage=tuple(BUSY)):
    """Seconds of each epoch; before each `before` is called, with the mount's folder: by default
    nothing of the database is cached then. And what was asked of the storage in each, bytes and
    requests."""
    read_folder(source)
    touch_memory(bench.request.size // SHARE)
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1"}
    if sluice:
        environment.update(sluice.environment())
    asked = []
    with SlowMount(bench, "samples", source, *storage) as mount:
        job = subprocess.Popen(
            ["/usr/bin/python3", os.path.join(TOP, "bench/reader/load_samples.py"), mount.folder,
             str(EPOCHS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=environment)
        try:
            for line in job.stderr:
                if not line.startswith("ready"):
                    continue
                before(mount.folder)
                asked.append(mount.stats()["totals"])
                job.stdin.write("\n")
                job.stdin.flush()
                if line.split()[1] == str(EPOCHS - 1):
                    break
            out, err = job.communicate(timeout=jobs.JOB_LIMIT)
        finally:
            jobs.end(job)
            job.stdin.close()
        if job.returncode:
            raise Failed(f"the loader: status {job.returncode}: {err.strip()}")
        if sluice:
            sluice.stop()
        asked.append(mount.stats()["totals"])
    passes = json.loads(out)["passes"]
    for number, one in enumerate(passes):
        one["asked"], one["requests"] = (asked[number + 1][what] - asked[number][what]
                                         for what in ("read_bytes", "read"))
    return passes


def run(bench):
    source, count = database(bench)
    plain, ours = [], []
    for number in range(bench.request.rounds):
        def with_sluice():
            with jobs.Sluice() as sluice:
                ours.append(epochs(bench, source, sluice))
            return ours[-1]

        def without():
            plain.append(epochs(bench, source, None))
            return plain[-1]

        order = [without, with_sluice]
        for one in order if number % 2 == 0 else reversed(order):
            passes = one()
            bench.say(f"round {number + 1} of {bench.request.rounds}: {one.__name__}: " +
                      ", ".join(f"{p['seconds']:.2f} s" for p in passes))
    must_agree_on([[p["digest"] for p in passes] for passes in plain + ours])
    bench.save("samples", {"plain": plain, "sluice": ours})
    size = count * RECORD / 1e6
    last = [passes[-1]["seconds"] for passes in ours]
    bench.record("lmdb_random_link_share_busy", [size / seconds / LINK for seconds in last])
    bench.record("lmdb_random_first_epoch_link_share_busy",
                 [size / passes[0]["seconds"] / LINK for passes in ours])
    bench.record("lmdb_random_speedup_busy",
                 [a[-1]["seconds"] / b for a, b in zip(plain, last)])


def memory(bench):
    """With memory for a fifth, nothing dropped but by Sluice."""
    source, count = database(bench)
    size = count * 65536
    requested, resident = [], []
    for number in range(bench.request.rounds):
        left = []

        def look(folder, left=left):
            left.append(cached(os.path.join(folder, "data.mdb")))
            if len(left) == 1:
                drop(folder)

        with jobs.Sluice(memory=size // 5) as sluice:
            requested.append(epochs(bench, source, sluice, look)[-1]["asked"] / size)
        resident.append(left[-1] / (size // 5))
        bench.say(f"round {number + 1}: {requested[-1]:.3f} of the bytes, {resident[-1]:.3f} of the memory")
    bench.record("lmdb_random_bytes_at_20", requested)
    bench.record("lmdb_random_cached_at_20", resident)
