"""iCache's baselines with the prefetcher that Sluice has: the job of icache_speed.py under Sluice, set to retain in
memory what that system retains, beside the same job with iis and substitution.

As published (icache_speed.py) they wait for each miss, so that what is gained over them is mostly the deep
queue's. Here all have it, the same bytes of memory for it and for what they retain, and the job's own order.
"""
from bench.lib.bench import ratios
from bench.lib.icache_speed import EPOCHS, MODELS, OURS, ROUNDS, TIMED, data, decisions, under_sluice
from bench.lib.place import Failed

SELECTS = OURS["sluice iis"]
SYSTEMS = {"base": {"policy": "lru"}, "iis": {"policy": "lru", **SELECTS}, "quiver": {"policy": "quiver"},
           "coordl": {"policy": "minio"}, "ilfu": {"policy": "lfu", **SELECTS}}
PROVIDES = [f"icache_epoch_speedup_{name}_prefetched" for name in SYSTEMS]
# The policy of Sluice where none is set and one job selects.
OWN_POLICY = "shade"


def checked(one, count, settings):
    """A run with another policy, or did not select, is none of the system's."""
    wanted = settings.get("policy", OWN_POLICY)
    if one.policy != wanted:
        raise Failed(f"files were to be retained by {wanted}, and were by {one.policy}")
    trained, all_samples = sum(epoch["samples"] for epoch in one.passes), len(one.passes) * count
    if (trained < all_samples) != ("importance" in settings):
        raise Failed(f"{settings}: {trained} samples of {all_samples} were trained")
    return one


def run(bench):
    source, count, size = data(bench)
    # Computing-oriented importance sampling fetches all, and computes as much as the others select.
    selected = decisions(bench, source, count, size)["base"]["computed"]
    of_base = [1.0] * (EPOCHS - len(selected)) + selected
    if len(selected) != len(range(EPOCHS)[TIMED]) or TIMED.stop != EPOCHS:
        raise Failed("the epochs that are timed are not those whose share is known")

    def job(name):
        settings = OURS["sluice"] if name == "sluice" else SYSTEMS[name]
        computed = of_base if name == "base" else ()
        return lambda: checked(under_sluice(bench, source, size, MODELS["shufflenet"], computed=computed, **settings),
                               count, settings)
    # A smoke test: one that fetches all and one that selects, the others stand for no more than being counted.
    names = ["sluice", "base", "ilfu"] if bench.request.small else ["sluice", *SYSTEMS]
    runs = bench.rounds({name: job(name) for name in names}, min(ROUNDS, bench.request.rounds))
    bench.save("icache_prefetched", {name: [one.raw() for one in many] for name, many in runs.items()})
    for name in SYSTEMS:
        bench.record(f"icache_epoch_speedup_{name}_prefetched", ratios(runs.get(name, runs["base"]), runs["sluice"]))
