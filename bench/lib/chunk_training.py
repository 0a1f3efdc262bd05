"""What the order of chunks costs in accuracy: trainings whose samples are delivered by policy brand or pool, against the
same trainings in the order that the loader's own generator draws."""
import concurrent.futures
import math
import os
import shutil
import statistics
import subprocess

from bench.lib import icache_training, jobs
from bench.lib.icache_training import BYTES_IN_MEMORY, MODELS
from bench.lib.place import Failed, program

POLICIES = ("brand", "pool")
PROVIDES = [f"{name}_top1_{what}" for name in POLICIES for what in ("loss_points", "difference")]
SEEDS, EPOCHS, MEMORY, EACH = 10, 10, 20, 64
# Student's t, 95 %, one-sided, by degrees of freedom: of SEEDS, and of the smoke test's two.
QUANTILES = {9: 1.833, 1: 6.314}


def make_chunks(bench, folder):
    cache = os.path.join(bench.request.data, "image-chunks")
    shutil.rmtree(cache, ignore_errors=True)
    os.makedirs(cache)
    labels = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    done = subprocess.run([program("sluice"), "chunks", "make", "--cache-dir", cache, "--samples", str(EACH), *labels],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(done.stderr.strip())
    return cache


def train(folder, count, cache, epochs, wanted):
    """The result of one training; without a policy without Sluice."""
    policy, model, seed = wanted
    if policy is None:
        return icache_training.train(folder, model, epochs, seed, None)
    # Local files are staged for this: chunks are read into copies.
    with jobs.Sluice(memory=max(count * BYTES_IN_MEMORY * MEMORY // 100, 1 << 20), stage="always", stale="86400",
                     policy=policy, substitute="any", cache_dir=cache) as sluice:
        result = icache_training.train(folder, model, epochs, seed, sluice)
        chunks = (sluice.status() or {}).get("chunks") or {}
        sluice.stop()
    if chunks.get("reads", 0) < epochs * count / EACH / 4:  # what waits in memory is not read again
        raise Failed(f"{wanted}: the samples did not come in chunks: {chunks}")
    return result


def upper_bound(values):
    """95 %, one-sided, of their mean."""
    spread = statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values) + QUANTILES[len(values) - 1] * spread


def run(bench):
    folder, count = icache_training.data(bench)
    cache = make_chunks(bench, folder)
    seeds, epochs = (2, 2) if bench.request.small else (SEEDS, EPOCHS)
    policies = [name for name in POLICIES if bench.wants(f"{name}_top1_loss_points", f"{name}_top1_difference")]
    wanted = [(policy, model, seed) for seed in range(1, seeds + 1) for model in MODELS for policy in (None, *policies)]
    try:
        # Nothing is timed: as many at a time as there are processors.
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = dict(zip(wanted, pool.map(lambda one: train(folder, count, cache, epochs, one), wanted)))
    finally:
        shutil.rmtree(cache)
    bench.save("chunk_training", [{"policy": policy, "model": model, "seed": seed, **result.raw()}
                                  for (policy, model, seed), result in results.items()])
    top1 = {key: result.reader["top1"] for key, result in results.items()}
    for policy in policies:
        lost = [statistics.mean(top1[None, model, seed] - top1[policy, model, seed] for model in MODELS)
                for seed in range(1, seeds + 1)]
        bench.say(f"{policy}: points lost, by seed: {', '.join(f'{one:.2f}' for one in lost)}")
        bench.record(f"{policy}_top1_difference", lost)
        bench.record(f"{policy}_top1_loss_points", [upper_bound(lost)])
