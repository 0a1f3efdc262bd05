"""Two trainings over one dataset, both with importance, that share what is in memory: simulated, as the
paper compares them; and live, beside the same two without knowing of each other's order."""
import os
import threading

from bench.lib import jobs
from bench.lib.bench import ratios
from bench.lib.icache_speed import MEMORY, MOUNT, OURS, TIMED, EPOCHS, data
from bench.lib.icache_training import printed
from bench.lib.place import TOP, Failed, program
from bench.lib.staged import read_below
from bench.lib.storage import SlowMount, touch_memory

SIMULATED = ["icache_multi_job", "icache_multi_job_importance", "icache_multi_job_probed",
             "icache_multi_job_orders", "icache_multi_job_known", "icache_multi_job_first",
             "icache_multi_job_second"]
LIVE = ["icache_two_jobs_time", "icache_two_jobs_bytes"]
PROVIDES = SIMULATED + LIVE
SEEDS, LIVE_ROUNDS = 3, 2
COMPUTE = (40, 80)  # milliseconds a batch, as in bench/reader/two_jobs.cc


def simulated(bench):
    raw = [printed([program("bench/two-jobs"), str(seed)]) for seed in range(1, SEEDS + 1)]
    bench.save("icache_two_jobs", raw)
    for name, shared in (("icache_multi_job", "orders"), ("icache_multi_job_importance", "both"),
                       ("icache_multi_job_probed", "probed")):
        bench.record(name, [one[shared] / min(one["first"], one["second"]) for one in raw])
    bench.record("icache_multi_job_orders", [
        one["orders"] / min(one["first_orders"], one["second_orders"]) for one in raw])
    bench.record("icache_multi_job_known", [one["orders"] / one["known"] for one in raw])
    for which in "first", "second":
        bench.record(f"icache_multi_job_{which}", [one[which] / one["both"] for one in raw])


class Two:
    """Both jobs' later epochs together; `asked` of the mount, in bytes, in all epochs."""

    def __init__(self, result, asked):
        self.passes = [one["passes"] for one in result.ranks]
        self.reports, self.asked = result.report, asked
        self.wall = sum(one["seconds"] for passes in self.passes for one in passes[TIMED])


class Watch(threading.Thread):
    """Which policies retain staged files while jobs run."""

    def __init__(self, sluice):
        super().__init__(daemon=True)
        self.sluice, self.seen, self.over = sluice, set(), threading.Event()

    def run(self):
        while not self.over.wait(1):
            stage = (self.sluice.status() or {}).get("stage")
            if stage:
                self.seen.add(stage["policy"])

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def two(bench, source, size, wanted, **settings):
    read_below(source)
    touch_memory(1 << 30)
    command = ["/usr/bin/python3", "-W", "ignore", os.path.join(TOP, "bench/reader/train_importance.py")]
    with jobs.Sluice(memory=size * MEMORY // 100, **OURS["sluice"], **settings) as sluice, \
            SlowMount(bench, "icache", source, *MOUNT) as mount:
        with Watch(sluice) as watch:
            result = jobs.run([[*command, mount.folder, str(EPOCHS), str(compute), "--seed", str(seed)]
                               for seed, compute in enumerate(COMPUTE)], sluice)
        sluice.stop()
        if wanted not in watch.seen:
            raise Failed(f"files were to be retained by {wanted}, and were by {sorted(watch.seen)}")
        return Two(result, mount.stats()["totals"]["read_bytes"])


def live(bench):
    source, _, size = data(bench)
    runs = bench.rounds({"needed": lambda: two(bench, source, size, "needed"),
                         "shade": lambda: two(bench, source, size, "shade", policy="shade")},
                        min(LIVE_ROUNDS, bench.request.rounds))
    bench.save("icache_two_jobs_live", {
        name: [{"passes": one.passes, "asked": one.asked} for one in many] for name, many in runs.items()})
    bench.record("icache_two_jobs_time", ratios(runs["needed"], runs["shade"]))
    bench.record("icache_two_jobs_bytes",
                 ratios(runs["needed"], runs["shade"], lambda one: one.asked))


def run(bench):
    for names, measure in ((SIMULATED, simulated), (LIVE, live)):
        if bench.wants(*names):
            measure(bench)
