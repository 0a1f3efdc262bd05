"""Epochs whose order chunks decide (policy pool and brand), on storage that answers so many requests a second: against the
job as Sluice supplies it exactly with the same prefetcher and memory, and without Sluice."""
import os
import random
import shutil
import statistics
import subprocess

from bench.lib import jobs, staged
from bench.lib.bench import must_agree_on
from bench.lib.place import Failed, program
from bench.lib.staged import Loader
from bench.lib.storage import SlowMount, touch_memory

PROVIDES = ["pool_over_exact", "pool_over_brand_requests", "brand_over_plain_requests", "pool_loads_per_chunk",
            "brand_loads_per_chunk"]
GROUND = ["--latency", "2", "--requests", "2000", "--bandwidth", "500"]
FILES, BYTES, WORKERS, EPOCHS, FIRST, EACH = 20000, 10_000, 6, 4, 1, 64
SHARE = 5  # of the samples one in so many fits in memory
STALE = "86400"  # the dataset does not change: the same for every variant
ROUNDS = 3


def data(bench):
    """A folder with `files`; chunks of them will be beside it."""
    count = 2000 if bench.request.small else FILES
    path = os.path.join(bench.request.data, f"small-{count}")
    if not os.path.exists(path):
        shutil.rmtree(path + ".partial", ignore_errors=True)
        os.makedirs(os.path.join(path + ".partial", "files"))
        draw = random.Random(1)
        for number in range(count):
            with open(os.path.join(path + ".partial", "files", f"{number:06d}.bin"), "wb") as file:
                file.write(draw.randbytes(BYTES))
        os.rename(path + ".partial", path)
    return path, count


def make_chunks(source, mount):
    """Through the mount, by whose paths the job names the files; it shows the chunks, too."""
    cache = os.path.join(source, "cache")
    shutil.rmtree(cache, ignore_errors=True)
    os.mkdir(cache)
    done = subprocess.run([program("sluice"), "chunks", "make", "--cache-dir", cache, "--samples", str(EACH), "--depth", "64",
                           os.path.join(mount.folder, "files")], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(done.stderr.strip())


def epochs(mount, source, sluice):
    touch_memory(1 << 30)
    counted = []
    with Loader(staged.load_files(os.path.join(mount.folder, "files"), EPOCHS, workers=WORKERS), sluice) as loader:
        for _ in range(EPOCHS):
            loader.ready()
            staged.drop_cached(mount, source)
            counted.append(mount.stats()["counted"])
            loader.go()
        passes = loader.passes()
    if sluice:
        chunks = (sluice.status() or {}).get("chunks")
        passes[-1]["chunks"] = chunks
        sluice.stop()
    counted.append(mount.stats()["counted"])
    for number, one in enumerate(passes):
        one["requests"] = counted[number + 1] - counted[number]
    return passes


def seconds(passes):
    return statistics.mean(one["seconds"] for one in passes[FIRST:])


def loads(passes, count):
    """Of a chunk in an epoch, the first included."""
    return passes[-1]["chunks"]["jobs"][0]["loads"] / EPOCHS / -(-count // EACH)


def run(bench):
    source, count = data(bench)
    memory = {"memory": str(count * (BYTES + 4096) // SHARE), "stale": STALE}
    with SlowMount(bench, "pool", source, *GROUND) as mount:
        make_chunks(source, mount)
        cache = os.path.join(mount.folder, "cache")
        chunks = {**memory, "substitute": "any", "cache_dir": cache}
        variants = {"plain": None, "exact": memory, **{name: {**chunks, "policy": name} for name in ("brand", "pool")}}
        found = {name: [] for name in variants}
        for number in range(min(ROUNDS, bench.request.rounds)):
            for name in variants if number % 2 == 0 else reversed(variants):
                if variants[name] is None:
                    found[name].append(epochs(mount, source, None))
                else:
                    with jobs.Sluice(**variants[name]) as sluice:
                        found[name].append(epochs(mount, source, sluice))
                bench.say(f"round {number + 1}: {name}: " + ", ".join(
                    f"{one['seconds']:.2f} s ({one['requests']} requests)" for one in found[name][-1]))
    bench.save("pool", found)
    must_agree_on([[one["digest"] for one in passes] for name in ("plain", "exact") for passes in found[name]])
    must_agree_on([[one["bytes"] for one in passes] for many in found.values() for passes in many])
    bench.record("pool_over_exact", [seconds(a) / seconds(b) for a, b in zip(found["exact"], found["pool"])])
    bench.record("pool_over_brand_requests", [seconds(a) / seconds(b) for a, b in zip(found["brand"], found["pool"])])
    bench.record("brand_over_plain_requests", [seconds(a) / seconds(b) for a, b in zip(found["plain"], found["brand"])])
    for name in "pool", "brand":
        bench.record(f"{name}_loads_per_chunk", [loads(passes, count) for passes in found[name]])
