#!/usr/bin/python3
# test: timeout=300
"""SLUICE_RECORD: the trace of a PyTorch job has the samples of each epoch and nothing else, and
`sluice simulate` reads it; whatever is wrong with the file costs one line and no byte of the job's.
"""
import collections
import contextlib
import os
import pathlib
import struct
import subprocess
import sys

import harness
from harness import claim

COUNT, BYTES, EPOCHS = 300, 5000, 3
MAKE = f"""
import lmdb, random, sys
draw = random.Random(5)
with lmdb.open(sys.argv[1], map_size=1 << 30) as env, env.begin(write=True) as txn:
    for i in range({COUNT}):
        txn.put(b"%08d" % i, draw.randbytes({BYTES}))
"""
# The job: a database, the number of workers, how they begin, and what to do after the first epoch.
JOB = f"""
import hashlib, os, sys
import lmdb, torch
from torch.utils.data import DataLoader, Dataset

class Records(Dataset):
    def __init__(self, path, text):
        self.path, self.text, self.env = path, text, None
    def __len__(self):
        return self.text
    def __getitem__(self, index):
        if self.env is None:
            self.env = lmdb.open(self.path, readonly=True, lock=False, readahead=False)
        with self.env.begin() as txn:
            return index, hashlib.sha256(txn.get(b"%08d" % index)).hexdigest()

def same(batch):
    return batch

def main():
    path, workers, begin, then = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    torch.manual_seed(11)
    kind = {{"multiprocessing_context": begin}} if workers else {{}}
    train = DataLoader(Records(path, {COUNT}), batch_size=16, shuffle=True, num_workers=workers,
                       collate_fn=same, **kind)
    check = DataLoader(Records(path, 40), batch_size=16, num_workers=workers, collate_fn=same,
                       **kind)
    for epoch in range({EPOCHS}):
        for loader in (train, check):
            whole = hashlib.sha256()
            for batch in loader:
                whole.update(repr(batch).encode())
            print(epoch, whole.hexdigest(), flush=True)
        if epoch == 0 and then == "wait":
            print("waiting", file=sys.stderr, flush=True)
            sys.stdin.readline()

if __name__ == "__main__":
    main()
"""
HEADER, RECORD = struct.Struct("<4s3I"), struct.Struct("<Q4I")


def read_trace(path):
    """[(bytes, epoch, job, sample)]; a last record that is cut short is left out."""
    with open(path, "rb") as file:
        content = file.read()
    claim(len(content) >= HEADER.size, f"no header: {len(content)} bytes")
    claim(HEADER.unpack_from(content)[:3] == (b"SLTR", 1, RECORD.size), "not a trace's header")
    whole = (len(content) - HEADER.size) // RECORD.size
    records = [RECORD.unpack_from(content, HEADER.size + i * RECORD.size) for i in range(whole)]
    claim(all(record[4] == 0 for record in records), "reserved is not 0")
    return [record[:4] for record in records]


def epochs_of(records, job):
    found = collections.defaultdict(list)
    for _, epoch, whose, sample in records:
        if whose == job:
            found[epoch].append(sample)
    return found


def simulate(path):
    done = subprocess.run([os.path.join(harness.BUILD, "sluice"), "simulate", "--trace", path,
                           "--policy", "lru", "--memory", "20%"], capture_output=True, text=True,
                          check=False)
    claim(done.returncode == 0, f"simulate: {done.stderr}")
    return done.stdout


def whole(place, job, workers, begin):
    """Every sample of every epoch once, of two datasets, as the parts that were read say."""
    what = f"{workers} workers, {begin}"
    trace = os.path.join(place.work, f"{workers}-{begin}.trace")
    argv = [sys.executable, "-W", "ignore", job, place.database, str(workers), begin, "go"]
    plain = place.run(argv, library=None, timeout=120)
    claim(plain.returncode == 0, plain.stderr)
    # A job never waits for its optimizer: on a machine that gives that no processor for long enough
    # events are lost, which the job says. That is no trace to look at; another run is.
    for _ in range(4):
        under = place.run(argv, timeout=120, SLUICE_RECORD=os.path.basename(trace))
        harness.same(plain, under, what)
        if "events were lost" not in under.stderr:
            break
        print(f"{what}: {harness.sluice_lines(under)[-1]}")
    claim("trace" not in under.stderr and "record" not in under.stderr, under.stderr)
    records = read_trace(trace)
    for number, samples in ((0, range(COUNT)), (1, range(COUNT, COUNT + 40))):
        epochs = epochs_of(records, number)
        claim(sorted(epochs) == list(range(EPOCHS)), f"{what}: job {number}: {sorted(epochs)}")
        for epoch, given in epochs.items():
            claim(sorted(given) == list(samples),
                  f"{what}: epoch {epoch} of job {number} has {len(given)} samples, "
                  f"{len(set(given))} different ones")
    claim(len(records) == EPOCHS * (COUNT + 40), f"{what}: {len(records)} records")
    if workers == 0:  # one reader: the order is its own
        order = [sample for _, epoch, whose, sample in records if (epoch, whose) == (1, 1)]
        claim(order == list(range(COUNT, COUNT + 40)), f"{what}: the order is lost")
    # A value, and what LMDB touches to find it.
    sizes = [size for size, _, _, _ in records]
    claim(min(sizes) >= BYTES and max(sizes) < 20 * BYTES, f"{what}: {min(sizes)} to {max(sizes)}")
    printed = simulate(trace)
    claim(f"{COUNT + 40} samples" in printed and f"in {EPOCHS} epochs, 2 jobs" in printed, printed)


def undisturbed(place, argv, trace, **settings):
    """A run that lost no events, on the trace that there was before (as in whole())."""
    before = pathlib.Path(trace).read_bytes() if os.path.exists(trace) else None
    for _ in range(5):
        done = place.run(argv, timeout=120, **settings)
        claim(done.returncode == 0, done.stderr)
        if "events were lost" not in done.stderr:
            break
        print(f"{settings}: {harness.sluice_lines(done)[-1]}")
        if before is not None:
            pathlib.Path(trace).write_bytes(before)


def added(place, job):
    """A + adds; without it what was there is lost. The path may be relative."""
    trace = os.path.join(place.work, "added.trace")
    argv = [sys.executable, job, place.database, "0", "fork", "go"]
    for path, times, jobs in (("added.trace", 1, 2), ("+" + trace, 2, 4), (trace, 1, 2)):
        undisturbed(place, argv, trace, SLUICE_RECORD=path)
        records = read_trace(trace)
        claim(len(records) == times * EPOCHS * (COUNT + 40), f"{path}: {len(records)} records")
        claim(len({record[2] for record in records}) == jobs, f"{path}: not {jobs} jobs")
        simulate(trace)
    # One job is all that a command starts, wherever it does.
    script = f"cd / && {' '.join(argv)} && {' '.join(argv)}"
    undisturbed(place, ["bash", "-c", script], trace, SLUICE_RECORD="added.trace")
    claim(len(read_trace(trace)) == 2 * EPOCHS * (COUNT + 40), "not both that the shell started")


def faults(place, job):
    """One line each, and the job is as without."""
    argv = [sys.executable, job, place.database, "2", "fork", "go"]
    plain = place.run(argv, library=None, timeout=120)
    pipe = os.path.join(place.work, "pipe")
    os.mkfifo(pipe)
    foreign = os.path.join(place.work, "foreign")
    with open(foreign, "w", encoding="ascii") as out:
        out.write("something else than a trace\n")
    for path in ("/nonexistent/trace", place.work, pipe, "/dev/full", "/proc/version",
                 "+" + foreign, "+/nonexistent/trace", "+" + pipe):
        done = place.run(argv, timeout=120, SLUICE_RECORD=path)
        harness.same(plain, done, path)
        lines = [line for line in harness.sluice_lines(done) if "record" in line]
        claim(len(lines) == 1 and "samples are not recorded" in lines[0], f"{path}: {lines}")
    with open(foreign, encoding="ascii") as text:
        claim(text.read() == "something else than a trace\n", "another program's file was written to")


def full(place, job):
    """A disk that fills in the middle: one line, a good trace of what fitted, nothing held."""
    disk = os.path.join(place.work, "disk")
    os.mkdir(disk)
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", disk]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        print("no file system can be mounted here: a full disk is not tested")
        return
    try:
        argv = [sys.executable, job, place.database, "2", "fork", "go"]
        plain = place.run(argv, library=None, timeout=120)
        done = place.run(argv, timeout=120, SLUICE_RECORD=os.path.join(disk, "trace"))
        harness.same(plain, done, "a full disk")
        lines = [line for line in harness.sluice_lines(done) if "trace is not whole" in line]
        claim(len(lines) == 1, f"a full disk: {done.stderr}")
        claim(len(read_trace(os.path.join(disk, "trace"))) > 100, "nothing of what fitted")
        simulate(os.path.join(disk, "trace"))
    finally:
        done = subprocess.run(["umount", disk], capture_output=True, text=True, check=False)
    claim(done.returncode == 0, f"the trace is still held: {done.stderr}")


def killed(place, job):
    """The optimizer dies after the first epoch: a new one continues the same trace."""
    trace = os.path.join(place.work, "killed.trace")
    argv = [sys.executable, job, place.database, "2", "fork", "wait"]
    plain = place.run(argv, library=None, timeout=120)
    running = place.start(argv, stdin=subprocess.PIPE, SLUICE_RECORD=trace)
    with contextlib.ExitStack() as stack:
        stack.callback(running.kill)
        for line in running.stderr:
            if line.startswith("waiting"):
                break
        harness.until(lambda: len(read_trace(trace)) == COUNT + 40, 20, "the first epoch")
        for pid in place.optimizers():
            os.kill(pid, 9)
        with open(trace, "ab") as file:
            file.write(b"half of a record")
        out, err = running.communicate("\n", timeout=120)
    claim(running.returncode == 0 and out == plain.stdout, f"killed: {err}")
    records = read_trace(trace)
    claim(sorted(epochs_of(records, 0)) == [0], "the first epoch is not as it was")
    claim(len(epochs_of(records, 0)[0]) == COUNT, "the first epoch is not whole")
    simulate(trace)


def test(place):
    if subprocess.run([sys.executable, "-c", "import torch, lmdb"], capture_output=True,
                      check=False).returncode:
        harness.skip("this Python has no PyTorch or no lmdb")
    place.database = os.path.join(place.work, "db")
    done = place.run([sys.executable, "-c", MAKE, place.database], library=None)
    claim(done.returncode == 0, done.stderr)
    job = os.path.join(place.work, "job.py")
    with open(job, "w", encoding="ascii") as out:
        out.write(JOB)
    for workers, begin in ((0, "none"), (2, "fork"), (2, "spawn")):
        whole(place, job, workers, begin)
    added(place, job)
    faults(place, job)
    full(place, job)
    killed(place, job)


if __name__ == "__main__":
    harness.main(test)
