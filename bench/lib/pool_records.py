"""An LMDB that is its own chunks, with policy pool, against the same job as Sluice supplies it exactly with the same
prefetcher and memory, on storage that answers so many requests a second."""
import statistics

from bench.lib import jobs, samples
from bench.lib.bench import must_agree_on
from bench.lib.pool import GROUNDS, ROUNDS, VARIANTS

PROVIDES = ["pool_over_exact_lmdb", "pool_requests_share_lmdb"]
RECORDS, RECORD, PAGES = 20000, 10_000, 12_288  # bytes; of the pages of one
FIRST = 1  # where records lie is learned in the epoch before
PERCENT = 20


def later(passes, what):
    return statistics.mean(one[what] for one in passes[FIRST:])


def run(bench):
    source, count = samples.database(bench, RECORD, (1000 if bench.request.small else RECORDS) * PAGES)
    memory = str(max(count * PAGES * PERCENT // 100, 4 << 20))
    found = {"exact": [], "pool": []}
    for number in range(min(ROUNDS, bench.request.rounds)):
        for name in found if number % 2 == 0 else reversed(found):
            with jobs.Sluice(memory=memory, **VARIANTS[name]) as sluice:
                found[name].append(samples.epochs(bench, source, sluice, storage=GROUNDS["requests"]))
            bench.say(f"round {number + 1}: {name}: " + ", ".join(
                f"{one['seconds']:.2f} s ({one['requests']} requests)" for one in found[name][-1]))
    must_agree_on([[one["digest"] for one in passes] for passes in found["exact"]])
    bench.save("pool_records", found)
    pairs = list(zip(found["exact"], found["pool"]))
    bench.record("pool_over_exact_lmdb", [later(a, "seconds") / later(b, "seconds") for a, b in pairs])
    bench.record("pool_requests_share_lmdb", [later(b, "requests") / later(a, "requests") for a, b in pairs])
