"""Figures that need no cold storage: a huge mapping, random reads, and starting a program."""
import json
import os
import statistics

from bench.lib import jobs
from bench.lib.bench import must_agree, ratios
from bench.lib.place import LIBRARY, Skipped, program
from bench.lib.storage import call

ARM = ["arm_1tib_ms", "arm_1tib_vmas"]
RANDOM = ["random_lmdb_overhead"]
START = ["start_cost_us", "start_cost_over_empty_us"]
TERABYTE = 1 << 40


def arm(bench):
    path = os.path.join(bench.request.data, "sparse-1t")
    try:
        with open(path, "wb") as file:
            file.truncate(TERABYTE)
    except OSError as why:
        raise Skipped(f"a sparse file of 1 TiB cannot be made here: {why.strerror}") from None
    command = [program("bench/arm"), path]

    def with_sluice():
        with jobs.Sluice(checkpoint="cell", dataset=path) as sluice:
            return jobs.run([command], sluice)

    try:
        runs = bench.rounds({"plain": lambda: jobs.run([command]), "cell": with_sluice},
                            bench.request.rounds)
    finally:
        os.unlink(path)
    bench.save("arm", {name: [one.raw() for one in some] for name, some in runs.items()})
    bench.record("arm_1tib_ms", [a.reader["second_mmap_ms"] - b.reader["second_mmap_ms"]
                                 for a, b in zip(runs["cell"], runs["plain"])])
    bench.record("arm_1tib_vmas", [one.reader["vmas_most"] for one in runs["cell"]])


def random(bench):
    command = jobs.reader("lmdb", bench.warm().folder, "--random", bench.request.random_reads)

    def with_sluice():
        with jobs.Sluice() as sluice:
            return bench.run_warm(command, sluice=sluice)

    runs = bench.rounds({"plain": lambda: bench.run_warm(command), "sluice": with_sluice},
                        bench.request.rounds)
    must_agree(*runs.values())
    bench.save("random", {name: [one.raw() for one in some] for name, some in runs.items()})
    bench.record("random_lmdb_overhead", ratios(runs["sluice"], runs["plain"]))


def start(bench):
    for figure, beside in (("start_cost_us", []),
                           ("start_cost_over_empty_us", [program("bench/empty.so")])):
        printed = json.loads(call(program("bench/start-cost"), LIBRARY,
                                  str(bench.request.start_pairs), "/bin/true", *beside))
        bench.save(figure, printed)
        quartiles = [printed["low_us"], printed["median_us"], printed["high_us"]]
        assert statistics.median(quartiles) == printed["median_us"]
        bench.record(figure, quartiles)
