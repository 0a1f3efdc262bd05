#!/usr/bin/python3
# test: timeout=240
"""What a real job leaves in SLUICE_REPORT, and the page that sluice report makes of it: passes over an
LMDB, epochs of shuffled samples, an optimizer that was killed, and a file that cannot be written."""
import json
import os
import signal
import subprocess
import sys

import harness
import report_data
from harness import claim

COUNT, BYTES = 900, 60000
MAKE = f"""
import lmdb, random, sys
draw = random.Random(7)
with lmdb.open(sys.argv[1], map_size=1 << 30) as env, env.begin(write=True) as txn:
    # Which sample has which key cannot be guessed: the first epoch is to be unknown.
    for key in sorted(random.Random(i).randbytes(8) for i in range({COUNT})):
        txn.put(key, draw.randbytes({BYTES}))
"""
# Reads all of it so many times; with a third argument it says so and waits for a line to end.
SCAN = """
import lmdb, os, sys
path, passes = sys.argv[1], int(sys.argv[2])
handle = os.open(path + "/data.mdb", os.O_RDONLY)
os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
os.close(handle)
env = lmdb.open(path, readonly=True, lock=False, readahead=False)
for number in range(passes):
    with env.begin() as txn:
        print(number, sum(len(value) + value[-1] for _, value in txn.cursor()), flush=True)
if len(sys.argv) > 3:
    print("read", flush=True)
    sys.stdin.readline()
"""
SHUFFLE = f"""
import hashlib, lmdb, random, sys, torch
from torch.utils.data import DataLoader, Dataset
path, workers = sys.argv[1], int(sys.argv[2])

class Records(Dataset):
    env = None
    def __len__(self):
        return {COUNT}
    def __getitem__(self, index):
        if self.env is None:
            self.env = lmdb.open(path, readonly=True, lock=False, readahead=False)
        with self.env.begin() as txn:
            hashlib.sha256(bytes(1 << 19)).digest()  # what a job computes
            return sum(txn.get(random.Random(index).randbytes(8))[:100])

torch.manual_seed(3)
loader = DataLoader(Records(), batch_size=16, shuffle=True, num_workers=workers, collate_fn=sum)
for epoch in range(3):
    print(epoch, sum(loader), flush=True)
"""
OWN = {"SLUICE_DATASET": None, "SLUICE_DISTANCE": "1M"}


def load(path):
    with open(path, encoding="utf-8") as text:
        return json.load(text)


def check_tables(found):
    """Columns of one length, in order of time, and counters that do not fall."""
    history, epochs = dict(found["history"]), dict(found["epochs"])
    claim(history.pop("interval_ns") > 0, "no interval")
    seen = epochs.pop("seen")
    claim(len({len(column) for column in history.values()}) == 1, "history: uneven columns")
    claim({len(column) for column in epochs.values()} == {seen}, "epochs: uneven columns")
    for name in ("time_ns", "read_bytes", "precached_bytes", "late_bytes", "stall_ns",
                 "sample_hits", "sample_late", "sample_misses", "epoch"):
        claim(history[name] == sorted(history[name]), f"history.{name} falls: {history[name]}")
    claim(min(history["budget_bytes"]) > 0, "no budget")
    for name in ("read_bytes", "sample_hits", "sample_late", "sample_misses", "late_bytes"):
        claim(sum(epochs[name]) == history[name][-1], f"{name}: {epochs[name]}, {history[name][-1]}")


def page_of(place, path):
    out = os.path.join(place.work, "page.html")
    done = report_data.report(path, "--out", out)
    claim(done.returncode == 0, done.stderr)
    page = report_data.Page(out)
    claim(not page.bad and not page.links, f"{page.bad} {page.links}")
    return page


def passes(place, folder):
    path = os.path.join(place.work, "passes.json")
    argv = [sys.executable, "-c", SCAN, folder, "3"]
    plain = place.run(argv, library=None)
    harness.same(plain, place.run(argv, SLUICE_REPORT=path, **OWN), "passes")
    found = load(path)
    check_tables(found)
    history, epochs = found["history"], found["epochs"]
    size = os.path.getsize(folder + "/data.mdb")
    claim(epochs["epoch"] == [0, 1, 2], f"passes: {epochs}")
    for number, read in enumerate(epochs["read_bytes"]):
        claim(0.6 * size < read < 1.1 * size, f"pass {number} read {read} of {size} bytes")
        claim(epochs["memory_bytes"][number] + epochs["late_bytes"][number] <= read, f"{epochs}")
    # All ran in one process, and the last point was made when its session ended.
    for name in ("precached_bytes", "late_bytes"):
        claim(history[name][-1] == found[name], f"{name}: {history[name][-1]}, {found[name]}")
    # What was waited before there was a session is in no history.
    claim(0 < history["stall_ns"][-1] <= found["stall_ns"], f"{history['stall_ns'][-1]}, {found['stall_ns']}")
    page = page_of(place, path)
    claim(page.row("precached_bytes")[1] == f"{found['precached_bytes']:,} bytes", str(page.rows))
    claim(page.row("epoch 2") is not None and "pass over the data" in page.all, page.all)


def shuffled(place, folder):
    for workers in (0, 2):
        harness.repeated(place, shuffled_by, place, folder, workers)


def shuffled_by(place, folder, workers):
    path = os.path.join(place.work, "shuffled.json")
    argv = [sys.executable, "-c", SHUFFLE, folder, str(workers)]
    plain = place.run(argv, library=None, timeout=90)
    under = place.run(argv, timeout=90, SLUICE_REPORT=path, SLUICE_CHECKPOINT=None,
                      SLUICE_PLACES="off", **OWN)
    harness.same(plain, under, f"{workers} workers")
    lost = "events were lost" in under.stderr  # where the machine is very busy
    known = harness.in_time if lost else claim
    found = load(path)
    check_tables(found)
    epochs = found["epochs"]
    kinds = ("sample_hits", "sample_late", "sample_misses", "sample_unknown")
    claim(len(epochs["epoch"]) == 3, f"{workers} workers: {epochs}")
    for number in range(3):
        begun = sum(epochs[kind][number] for kind in kinds)
        claim(begun <= COUNT, f"{workers} workers, epoch {number}: {epochs}")
        known(begun >= 0.95 * COUNT, f"{workers} workers, epoch {number}: {epochs}")
    known(epochs["sample_unknown"][0] >= 0.95 * COUNT, f"{workers} workers: {epochs}")
    known(sum(epochs["sample_unknown"][1:]) <= 0.05 * COUNT, f"{workers} workers: {epochs}")
    for kind in kinds[:3]:
        claim(sum(epochs[kind]) == found[kind], f"{workers} workers: {kind}: {epochs}, {found[kind]}")
    page = page_of(place, path)
    claim("when a worker began them" in page.all, page.all)
    claim(page.row("epoch 0")[5].replace(",", "") == str(epochs["sample_unknown"][0]), page.all)


def optimizer_killed(place, folder):
    path = os.path.join(place.work, "killed.json")
    job = place.start([sys.executable, "-c", SCAN, folder, "1", "wait"], stdin=subprocess.PIPE,
                      SLUICE_REPORT=path, **OWN)
    while job.stdout.readline().strip() != "read":
        claim(job.poll() is None, "the job ended")
    for pid in harness.until(place.optimizers, 10, "an optimizer"):
        os.kill(pid, signal.SIGKILL)
    harness.until(lambda: not place.optimizers(), 10, "it is gone")
    job.communicate("\n", timeout=30)
    claim(job.returncode == 0, "the job failed")
    found = load(path)
    check_tables(found)
    claim(found["history"]["time_ns"], "a history that is gone with its optimizer")
    page_of(place, path)


def full(place, folder):
    done = place.run([sys.executable, "-c", SCAN, folder, "1"], SLUICE_REPORT="/dev/full", **OWN)
    claim(done.returncode == 0, done.stderr)
    said = [line for line in done.stderr.splitlines() if "SLUICE_REPORT" in line]
    claim(len(said) == 1 and "/dev/full" in said[0], done.stderr)


def test(place):
    folder = os.path.join(place.work, "db")
    done = place.run([sys.executable, "-c", MAKE, folder], library=None)
    claim(done.returncode == 0, done.stderr)
    passes(place, folder)
    shuffled(place, folder)
    optimizer_killed(place, folder)
    full(place, folder)


if __name__ == "__main__":
    harness.main(test)
