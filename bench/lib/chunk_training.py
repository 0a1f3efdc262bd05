"""What the order of chunks costs in accuracy: trainings whose samples are delivered by policy brand or pool, against the
same trainings in the order that the loader's own generator draws.

All trainings take longer than a group may: each is stored as it ends, under a digest of the programs that it ran, and a
later run goes on with what is missing."""
import concurrent.futures
import glob
import hashlib
import json
import math
import os
import shutil
import statistics
import subprocess
import threading
import time

from bench.lib import figures, icache_training, jobs
from bench.lib.icache_training import BYTES_IN_MEMORY
from bench.lib.place import TOP, Failed, program

POLICIES = ("brand", "pool")
PROVIDES = [f"{name}_top1_{what}" for name in POLICIES for what in ("loss_points", "difference")]
MODELS = ("resnet", "vgg")  # in a third of the time that the ShuffleNet takes
SEEDS, EPOCHS, MEMORY, EACH = 10, 5, 20, 64
# Student's t, 95 %, one-sided, by degrees of freedom: of SEEDS, and of the smoke test's two.
QUANTILES = {9: 1.833, 1: 6.314}
BEGIN_SECONDS = 2280  # no training is begun after so many
READERS = ("bench/reader/train_accuracy.py", "bench/reader/fashion.py")


def digest(policy):
    """Of what decides how such a training ends: with Sluice another build is another training."""
    paths = [os.path.join(TOP, name) for name in READERS]
    if policy:
        paths += [program(name) for name in ("sluice", "sluice-optimizer", "libsluice.so")]
        paths += sorted(glob.glob(os.path.join(TOP, "adapters/**/*.py"), recursive=True))
    digest_of = hashlib.sha256(f"{MEMORY} {EACH}".encode())
    for path in paths:
        with open(path, "rb") as file:
            digest_of.update(file.read())
    return digest_of.hexdigest()[:16]


class Trainings:
    """Results by (policy, model, seed), in a file that outlives this run. Any thread."""

    def __init__(self, path, settings):
        self.path, self.settings = path, settings
        self.digests = {policy: digest(policy) for policy in (None, *POLICIES)}
        self.stored = figures.load(path)
        self.lock = threading.Lock()

    def _key(self, wanted):
        return json.dumps([*wanted, *self.settings, self.digests[wanted[0]]])

    def get(self, wanted):
        return self.stored.get(self._key(wanted))

    def put(self, wanted, result):
        with self.lock:
            self.stored[self._key(wanted)] = result.raw()
            figures.store(self.path, self.stored)


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


def train_missing(bench, wanted, trainings, epochs):
    """As many of those that are not stored as fit into BEGIN_SECONDS; how many are left."""
    missing = [one for one in wanted if trainings.get(one) is None]
    folder, count = icache_training.data(bench)
    cache = make_chunks(bench, folder)
    ends = time.monotonic() + BEGIN_SECONDS

    def begin(one):
        if time.monotonic() >= ends:
            return
        result = train(folder, count, cache, epochs, one)
        trainings.put(one, result)
        bench.say(f"{one}: top-1 {result.reader['top1']:.2f}")
    try:
        # Nothing is timed: as many at a time as there are processors.
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            try:
                list(pool.map(begin, missing))
            except BaseException:
                ends = 0  # those that run are stored, no other begins
                raise
    finally:
        shutil.rmtree(cache)
    return sum(trainings.get(one) is None for one in wanted)


def run(bench):
    seeds, epochs = (2, 2) if bench.request.small else (SEEDS, EPOCHS)
    policies = [name for name in POLICIES if bench.wants(f"{name}_top1_loss_points", f"{name}_top1_difference")]
    wanted = [(policy, model, seed) for seed in range(1, seeds + 1) for model in MODELS for policy in (None, *policies)]
    trainings = Trainings(os.path.join(bench.request.raw, "chunk_training.json"), [epochs, bench.request.small])
    left = train_missing(bench, wanted, trainings, epochs)
    if left:
        bench.say(f"{left} of {len(wanted)} trainings are left for the next run; no figure yet")
        return
    top1 = {one: trainings.get(one)["ranks"][0]["top1"] for one in wanted}
    for policy in policies:
        lost = [statistics.mean(top1[None, model, seed] - top1[policy, model, seed] for model in MODELS)
                for seed in range(1, seeds + 1)]
        bench.say(f"{policy}: points lost, by seed: {', '.join(f'{one:.2f}' for one in lost)}")
        bench.record(f"{policy}_top1_difference", lost)
        bench.record(f"{policy}_top1_loss_points", [upper_bound(lost)])
