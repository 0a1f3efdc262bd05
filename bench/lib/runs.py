"""Shuffled small samples of an LMDB, which are read as runs of neighbours: from a busy network mount,
and from storage with so many requests a second, however long."""
from bench.lib import jobs, samples
from bench.lib.bench import must_agree_on

PROVIDES = ["lmdb_small_speedup_busy", "lmdb_small_link_share_requests",
            "lmdb_small_speedup_requests", "lmdb_small_requests", "lmdb_small_requests_at_20"]
RECORD = 4096 - 16  # with its header a page
SHARE = 16  # of the file size of the other figures
LEAST = 32 << 20  # bytes: an eighth of it is more than a window
LINK = 125  # MB/s
STORAGES = {
    "busy": ["--profile", "busy"],
    "requests": ["--latency", "2", "--parallel", "4", "--bandwidth", str(LINK)],
}


def run(bench):
    size = max(bench.request.size // SHARE, LEAST)
    source, count = samples.database(bench, RECORD, size)
    for name, storage in STORAGES.items():
        plain, ours = [], []
        for number in range(bench.request.rounds):
            def with_sluice():
                with jobs.Sluice() as sluice:
                    ours.append(samples.epochs(bench, source, sluice, storage=storage))
                return ours[-1]

            def without():
                plain.append(samples.epochs(bench, source, None, storage=storage))
                return plain[-1]

            order = [without, with_sluice]
            for one in order if number % 2 == 0 else reversed(order):
                passes = one()
                bench.say(f"{name}, round {number + 1} of {bench.request.rounds}: {one.__name__}: "
                          + ", ".join(f"{p['seconds']:.2f} s" for p in passes))
        must_agree_on([[p["digest"] for p in passes] for passes in plain + ours])
        bench.save(f"small samples, {name}", {"plain": plain, "sluice": ours})
        bench.record(f"lmdb_small_speedup_{name}",
                     [a[-1]["seconds"] / b[-1]["seconds"] for a, b in zip(plain, ours)])
        if name == "requests":
            bench.record("lmdb_small_link_share_requests",
                         [count * RECORD / 1e6 / p[-1]["seconds"] / LINK for p in ours])
            bench.record("lmdb_small_requests", [p[-1]["requests"] / count for p in ours])
    bounded(bench, source, count)


def bounded(bench, source, count):
    """With memory for a fifth, nothing dropped but by Sluice."""
    requests = []
    for number in range(bench.request.rounds):
        with jobs.Sluice(memory=count * 4096 // 5) as sluice:
            passes = samples.epochs(bench, source, sluice, lambda folder: None,
                                    STORAGES["requests"])
        requests.append(passes[-1]["requests"] / count)
        bench.say(f"memory for a fifth, round {number + 1}: {requests[-1]:.3f} requests a sample, " +
                  f"{passes[-1]['asked'] / count / 4096:.3f} of the bytes, " +
                  ", ".join(f"{p['seconds']:.2f} s" for p in passes))
    bench.record("lmdb_small_requests_at_20", requests)
