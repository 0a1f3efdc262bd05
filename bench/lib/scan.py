"""What a job does before its first batch: it walks through a folder of folders of files, and asks for each file's size."""
import contextlib
import os

from bench.lib import jobs
from bench.lib.bench import must_agree_on
from bench.lib.place import TOP
from bench.lib.storage import SlowMount

PROVIDES = ["scan_speedup_busy", "scan_speedup_uncached"]
FOLDERS, FILES = 1000, 100  # in each
FEW_FOLDERS = 40
LATENCY = "2"  # milliseconds of each request
# NFS caches listings, and attributes for three seconds at least; FUSE's default is one second, and no listings.
GROUNDS = {"scan_speedup_busy": ("--cache-folders", "--attr-timeout", "3", "--entry-timeout", "3"),
           "scan_speedup_uncached": ()}


def make(bench):
    count = FEW_FOLDERS if bench.request.small else FOLDERS
    tree = os.path.join(bench.request.data, f"tree-{count}-{FILES}")
    if not os.path.isdir(tree):
        for folder in range(count):
            path = os.path.join(tree + ".partial", f"n{folder * 7919 % 100_000_000:08}")
            os.makedirs(path, exist_ok=True)
            for number in range(FILES):
                with open(os.path.join(path, f"{number:05}.jpg"), "wb") as out:
                    out.write(b"x" * (100 + number))
        os.rename(tree + ".partial", tree)
    return tree


def walk(folder):
    """Leaves the tree's own folders and attributes in memory: the stand-in's latency is the storage."""
    for above, _, names in os.walk(folder):
        for name in names:
            os.stat(os.path.join(above, name))


def run(bench):
    tree = make(bench)
    raw = {}
    for figure, options in GROUNDS.items():
        if bench.wants(figure):
            raw[figure] = [pair(bench, tree, options, number) for number in range(bench.request.rounds)]
            bench.record(figure, [plain["seconds"] / under["seconds"] for plain, under in raw[figure]])
    bench.save("scan", raw)


def pair(bench, tree, options, number):
    walk(tree)
    sides = {name: once(bench, tree, options, name == "under")
             for name in (("plain", "under") if number % 2 == 0 else ("under", "plain"))}
    must_agree_on([side["digest"] for side in sides.values()])
    return sides["plain"], sides["under"]


def once(bench, tree, options, under):
    command = ["/usr/bin/python3", os.path.join(TOP, "bench/reader/scan_tree.py")]
    with contextlib.ExitStack() as stack:
        mount = stack.enter_context(SlowMount(bench, "scan", tree, "--latency", LATENCY, *options))
        sluice = stack.enter_context(jobs.Sluice()) if under else None
        return jobs.run([[*command, mount.folder]], sluice).reader
