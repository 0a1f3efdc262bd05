"""What many millions of samples cost: time and memory of simulating them, memory of knowing them."""
import json
import os
import subprocess
import time

from bench.lib import jobs
from bench.lib.place import Failed, program

SIMULATE = ["simulate_14m_s", "simulate_14m_rss_mb"]
INDEX = ["index_bytes_per_sample"]
METAINDEX = ["lcache_metaindex_build_s_14m", "lcache_metaindex_bytes_per_sample"]
IMAGENET_21K, FEW = 14_000_000, 100_000
SIMULATE_LIMIT = 2 << 30  # bytes of memory
SIMULATE_ROUNDS = 2  # of a minute each, and the same work every time
SAMPLES, FEW_SAMPLES = 2_000_000, 50_000
ENOUGH = 0.95  # of the samples have been seen: events that do not fit into the ring are lost
STEP = 64  # bytes between samples, as bench/reader/publish.c has them
PASSES = 8  # at most, until enough have been seen
WAIT = 120  # seconds for an answer


def simulate(bench):
    """Three epochs, the default policies (lru, minio, belady) at a fifth of the dataset."""
    samples = FEW if bench.request.small else IMAGENET_21K
    command = [program("sluice"), "simulate", "--samples", str(samples), "--size-distribution",
               "imagenet", "--epochs", "3", "--memory", "20%"]
    seconds, peaks = [], []
    for _ in range(min(bench.request.rounds, SIMULATE_ROUNDS)):
        started = time.monotonic()
        job = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(job.pid, 0)
        job.returncode = os.waitstatus_to_exitcode(status)
        seconds.append(time.monotonic() - started)
        peaks.append(usage.ru_maxrss * 1024)
        if job.returncode:
            raise Failed(f"{' '.join(command)}: status {job.returncode}")
        bench.say(f"{samples} samples: {seconds[-1]:.1f} s, at most {peaks[-1] / 1e6:.0f} MB")
    if max(peaks) > SIMULATE_LIMIT:
        raise Failed(f"it took {max(peaks)} bytes of memory: more than 2 GiB")
    bench.save("simulate", {"samples": samples, "seconds": seconds, "peak_bytes": peaks})
    bench.record("simulate_14m_s", seconds)
    bench.record("simulate_14m_rss_mb", [peak / 1e6 for peak in peaks])


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as text:
        return next(int(li.split()[1]) * 1024 for li in text if li.startswith("VmRSS:"))


class Publisher:
    """bench/reader/publish.c under an optimizer of its own, which it talks to and nothing else does."""

    def __init__(self, sluice, path, samples):
        self.sluice, self.samples = sluice, samples
        self.job = subprocess.Popen([program("bench/publish"), path, str(samples)], text=True,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    env={"PATH": os.environ["PATH"], **sluice.environment()})
        self.answer("ready")
        self.pid = sluice.status()["pid"]

    def answer(self, expected):
        line = self.job.stdout.readline().strip()
        if line != expected:
            raise Failed(f"bench/publish said {line!r} instead of {expected!r}")

    def ask(self, what):
        self.job.stdin.write(what + "\n")
        self.job.stdin.flush()
        self.answer("done")

    def end(self):
        self.job.stdin.close()  # which it takes for the end
        self.job.stdout.close()
        self.job.wait()

    def dataset(self):
        found = self.sluice.status()["datasets"]
        if len(found) != 1 or found[0]["samples"] != self.samples:
            raise Failed(f"the optimizer knows other datasets: {found}")
        return found[0]

    def read_until_known(self):
        for _ in range(PASSES):
            self.ask("read")
            self.ask("order")  # two are known at any time
            known, deadline = None, time.monotonic() + WAIT
            while known != self.dataset()["known"]:  # events are still in flight
                known = self.dataset()["known"]
                if time.monotonic() > deadline:
                    raise Failed("the optimizer does not come to rest")
                time.sleep(0.5)
            if known >= ENOUGH * self.samples:
                return known
        raise Failed(f"after {PASSES} passes the places of {known} of {self.samples} are known")


def index(bench):
    """Resident memory of a real optimizer, before any sample is published and after."""
    samples = FEW_SAMPLES if bench.request.small else SAMPLES
    path = os.path.join(bench.request.data, "index")
    values = []
    try:
        with open(path, "wb") as file:
            file.truncate(max(samples * STEP, 64 << 20))
        with jobs.Sluice(dataset=path, prefetch="off") as sluice:
            publisher = Publisher(sluice, path, samples)
            try:
                before = resident(publisher.pid)
                publisher.ask("order")
                publisher.ask("order")
                if publisher.dataset()["order"] != samples:
                    raise Failed("the optimizer has no order")
                known = publisher.read_until_known()
                after = resident(publisher.pid)
            finally:
                publisher.end()
        values.append((after - before) / known)
        bench.save("index", {"samples": samples, "known": known, "before": before, "after": after})
    finally:
        os.unlink(path)
    bench.record("index_bytes_per_sample", values)


def metaindex(bench):
    """Where 14 million samples lie in LCache's two logs."""
    samples = FEW if bench.request.small else IMAGENET_21K
    rounds = [json.loads(subprocess.run([program("bench/log-plan"), str(samples)], check=True, capture_output=True,
                                        text=True).stdout) for _ in range(min(bench.request.rounds, SIMULATE_ROUNDS))]
    bench.save("metaindex", {"samples": samples, "rounds": rounds})
    bench.record("lcache_metaindex_build_s_14m", [sum(one["build_s"]) for one in rounds])
    bench.record("lcache_metaindex_bytes_per_sample", [one["bytes_per_sample"] for one in rounds])
    bench.say("the longest batch of 256 samples: " + ", ".join(f"{one['batch_us']:.0f} us" for one in rounds))
