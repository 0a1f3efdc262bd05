"""Epochs whose order chunks decide (policy pool and brand): against the job as Sluice supplies it exactly with the same
prefetcher and memory, against CoorDL's cache with it, and without Sluice, on storage that answers so many requests a
second; and against each other where bytes are scarce."""
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

POOL = ["pool_over_exact", "bytes_over_bound_exact", "bytes_over_bound_pool", "pool_over_brand", "bytes_over_bound_brand",
        "pool_loads_per_chunk_25", "brand_loads_per_chunk_25"]
BRAND = ["brand_over_plain_16", "brand_over_plain_35", "brand_over_coordl_16", "brand_over_coordl_35"]
GROUNDS = {"requests": ["--latency", "2", "--requests", "2000", "--bandwidth", "500"],
           "busy": ["--latency", "2", "--bandwidth", "200"]}
FILES, BYTES, WORKERS, EPOCHS, FIRST, EACH = 20000, 10_000, 6, 4, 1, 64
CHARGED = 13_312  # bytes of memory that a sample takes
STALE = "86400"  # the dataset does not change: the same for every variant
ROUNDS = 3
CHUNKED = ("brand", "pool")
VARIANTS = {"plain": None, "exact": {}, "coordl": {"policy": "minio"},
            **{name: {"policy": name, "substitute": "any"} for name in CHUNKED}}


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


def make_chunks(source, mount, each=EACH):
    """Through the mount, by whose paths the job names the files; it shows the chunks, too. Those of an earlier run, which
    may have been interrupted, or have had another size, are removed: complete ones would stay as they are."""
    cache = os.path.join(source, "cache")
    shutil.rmtree(cache, ignore_errors=True)
    os.makedirs(cache)
    done = subprocess.run([program("sluice"), "chunks", "make", "--cache-dir", cache, "--samples", str(each), "--depth", "64",
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
            counted.append(so_far(mount))
            loader.go()
        passes = loader.passes()
    if sluice:
        passes[-1]["chunks"] = (sluice.status() or {}).get("chunks")
        sluice.stop()
    counted.append(so_far(mount))
    for number, one in enumerate(passes):
        one["requests"], one["asked"] = (after - before for before, after in zip(counted[number], counted[number + 1]))
    return passes


def so_far(mount):
    """Requests to the storage, and bytes read from it."""
    stats = mount.stats()
    return stats["counted"], stats["totals"]["read_bytes"]


def run_variant(mount, source, name, common):
    if VARIANTS[name] is None:
        return epochs(mount, source, None)
    cache = {"cache_dir": os.path.join(mount.folder, "cache")} if name in CHUNKED else {}
    with jobs.Sluice(**common, **VARIANTS[name], **cache) as sluice:
        return epochs(mount, source, sluice)


def measure(bench, ground, percent, names):
    """By variant, the passes of each round; memory for so many percent of the samples."""
    source, count = data(bench)
    found = {name: [] for name in names}
    with SlowMount(bench, "pool", source, *GROUNDS[ground]) as mount:
        if set(names) & set(CHUNKED):
            make_chunks(source, mount)
        common = {"memory": str(max(count * CHARGED * percent // 100, 1 << 20)), "stale": STALE}
        for number in range(min(ROUNDS, bench.request.rounds)):
            for name in names if number % 2 == 0 else reversed(names):
                found[name].append(run_variant(mount, source, name, common))
                bench.say(f"{ground}, {percent} %, round {number + 1}: {name}: " + ", ".join(
                    f"{one['seconds']:.2f} s ({one['requests']} requests)" for one in found[name][-1]))
    bench.save(f"pool-{ground}-{percent}", found)
    must_agree_on([[one["digest"] for one in passes] for name in names if name not in CHUNKED for passes in found[name]])
    must_agree_on([[one["bytes"] for one in passes] for many in found.values() for passes in many])
    return found


def seconds(passes):
    return statistics.mean(one["seconds"] for one in passes[FIRST:])


def over(found, other, ours):
    return [seconds(a) / seconds(b) for a, b in zip(found[other], found[ours])]


def over_bound(passes, count, percent):
    """Bytes read from storage in later epochs / those of the samples that memory cannot hold."""
    held = count * percent // 100
    return statistics.mean(one["asked"] for one in passes[FIRST:]) / ((count - held) * BYTES)


def pool(bench):
    count = data(bench)[1]
    if bench.wants(*POOL[:3]):
        found = measure(bench, "requests", 20, ["exact", "pool"])
        bench.record("pool_over_exact", over(found, "exact", "pool"))
        for name in "exact", "pool":
            bench.record(f"bytes_over_bound_{name}", [over_bound(passes, count, 20) for passes in found[name]])
    if not bench.wants(*POOL[3:]):
        return
    found = measure(bench, "busy", 25, ["brand", "pool"])
    bench.record("pool_over_brand", over(found, "brand", "pool"))
    bench.record("bytes_over_bound_brand", [over_bound(passes, count, 25) for passes in found["brand"]])
    chunks = -(-count // EACH)
    for name in CHUNKED:
        bench.record(f"{name}_loads_per_chunk_25",
                     [passes[-1]["chunks"]["jobs"][0]["loads"] / EPOCHS / chunks for passes in found[name]])


def brand(bench):
    for percent in (16, 35):
        if bench.wants(f"brand_over_plain_{percent}", f"brand_over_coordl_{percent}"):
            found = measure(bench, "requests", percent, ["plain", "coordl", "brand"])
            for other in ("plain", "coordl"):
                bench.record(f"brand_over_{other}_{percent}", over(found, other, "brand"))
