"""Readers that do nothing but read, beside fio: how much of the link a job gets."""
import json
import os

from bench.lib import jobs
from bench.lib.bench import must_agree
from bench.lib.storage import call

PROVIDES = ["lmdb_link_share", "skipping_link_share", "stream_link_share"]
RANKS = 4
# What fio is tried with; the fastest is what the link gives.
FIO = {
    "psync, 1 MiB": ["--ioengine=psync"],
    "psync, 1 MiB, 4 jobs": ["--ioengine=psync", "--numjobs=4", "--size=25%",
                             "--offset_increment=25%"],
    "io_uring, 1 MiB, depth 16": ["--ioengine=io_uring", "--iodepth=16"],
    "io_uring, 1 MiB, depth 16, 4 jobs": ["--ioengine=io_uring", "--iodepth=16", "--numjobs=4",
                                          "--size=25%", "--offset_increment=25%"],
}


def fio(bench, options):
    """fio's own rate for the whole file, in bytes per second."""
    with bench.slow("cold", "--profile", "pfs") as mount:
        path = os.path.join(mount.folder, "data.mdb")
        printed = call("fio", "--name=link", f"--filename={path}", "--rw=read", "--bs=1M",
                       "--readonly", "--direct=0", "--group_reporting", "--output-format=json",
                       *options)
    # Warnings may come before the object.
    return json.loads(printed[printed.index("{"):])["jobs"][0]["read"]["bw_bytes"]


def best_fio(bench):
    tried = list(FIO)[-1:] if bench.request.small else list(FIO)
    rates = {name: fio(bench, FIO[name]) for name in tried}
    for name, rate in rates.items():
        bench.say(f"fio, {name}: {rate / 1e6:.1f} MB/s")
    return max(rates, key=rates.get), rates


def cold(bench, mode, *options, ranks=1):
    with bench.slow("cold", "--profile", "pfs") as mount:
        path = mount.folder if mode == "lmdb" else os.path.join(mount.folder, "data.mdb")
        commands = [jobs.reader(mode, path, "--lines", *options) for _ in range(ranks)]
        if ranks > 1:
            for rank, command in enumerate(commands):
                command += ["--rank", f"{rank}/{ranks}"]
        settings = {}
        if mode == "stream" and bench.request.size < 256 << 20:
            settings["dataset"] = path  # a file that `auto` would find too small
        with jobs.Sluice(**settings) as sluice:
            result = jobs.run(commands, sluice)
        result.asked = mount.stats()
    return result


class FioRun:
    """What Bench.rounds wants of a run."""

    def __init__(self, rate, size):
        self.rate, self.wall = rate, size / rate


def run(bench):
    size = os.path.getsize(os.path.join(bench.database, "data.mdb"))
    best, rates = best_fio(bench)
    variants = {"fio": lambda: FioRun(fio(bench, FIO[best]), size)}
    if bench.wants("lmdb_link_share"):
        variants["lmdb"] = lambda: cold(bench, "lmdb")
    if bench.wants("skipping_link_share"):
        variants["skipping"] = lambda: cold(bench, "lmdb", ranks=RANKS)
    if bench.wants("stream_link_share"):
        variants["stream"] = lambda: cold(bench, "stream")
    runs = bench.rounds(variants, bench.request.rounds)
    must_agree(runs.get("lmdb", []), runs.get("skipping", []))
    raw = {"fio": {"best": best, "tried": rates, "rates": [one.rate for one in runs["fio"]]}}
    for variant in [v for v in variants if v != "fio"]:
        bench.record(f"{variant}_link_share", [
            size / one.span / link.rate for one, link in zip(runs[variant], runs["fio"])])
        raw[variant] = [one.raw() for one in runs[variant]]
    bench.save("link", raw)
