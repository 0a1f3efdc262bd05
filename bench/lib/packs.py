"""What packs on a local disk are worth, where memory holds a fifth of a dataset on a slow mount: epochs of a
training that Sluice supplies exactly, and of one that selects and substitutes, without and with them."""
import shutil
import tempfile

from bench.lib import icache_speed
from bench.lib.bench import ratios
from bench.lib.icache_speed import MODELS, OURS
from bench.lib.staged import PROFILES

PROVIDES = ["packs_speedup_exact", "packs_speedup_iis", "packs_read_share"]
# A storage that is slower than disks are.
MOUNT = ["--latency", PROFILES["cloud"], "--bandwidth", "100"]
KINDS = {"exact": OURS["sluice exact"], "iis": OURS["sluice"]}


def run(bench):
    source, _, size = icache_speed.data(bench)

    def job(kind, packs):
        def measured():
            folder = tempfile.mkdtemp(prefix="packs-", dir=bench.request.data)
            try:
                more = {"cache_dir": folder} if packs else {}
                return icache_speed.under_sluice(bench, source, size, MODELS["shufflenet"], options=MOUNT,
                                                 **KINDS[kind], **more)
            finally:
                shutil.rmtree(folder)
        return measured
    variants = {f"{kind} {packs}": job(kind, packs) for kind in KINDS for packs in (False, True)}
    runs = bench.rounds(variants, min(icache_speed.ROUNDS, bench.request.rounds))
    bench.save("packs", {name: [one.raw() for one in many] for name, many in runs.items()})
    for kind in KINDS:
        bench.record(f"packs_speedup_{kind}", ratios(runs[f"{kind} False"], runs[f"{kind} True"]))
    reports = [one.result.report for one in runs["exact True"]]
    bench.record("packs_read_share", [one["packed_bytes"] / one["precached_bytes"] for one in reports])
