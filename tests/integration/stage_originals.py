#!/usr/bin/python3
# test: timeout=300 turns
"""Samples that cannot be read from copies: their originals are read ahead instead, once, and the job gets the
same bytes. Where a mount empties a file's cache when it is opened nothing is read ahead for them. Jobs whose samples can
be are given copies as ever."""
import json
import os
import random
import sys

import harness
import stage_testing
from harness import claim
from stage_testing import Ground

COUNT, BYTES, EPOCHS = 400, 60_000, 3
SLACK = 1.35  # times the dataset, of what is read from storage in an epoch where copies do not help
JOB = f"""
import collections, concurrent.futures, fcntl, hashlib, os, subprocess, sys
import torch
from torch.utils.data import DataLoader, Dataset

folder, kind = sys.argv[1:]

def read(path):
    with open(path, "rb") as file:
        return file.read()

class Files(Dataset):
    pool, open_files = None, collections.deque()
    def __init__(self):
        self.samples = [(os.path.join(folder, name), 0) for name in sorted(os.listdir(folder))]
    def __len__(self):
        return len(self.samples)
    def __getitem__(self, index):
        return index, hashlib.sha256(self.value(self.samples[index][0])).hexdigest()
    def value(self, path):
        if kind == "threads":
            self.pool = self.pool or concurrent.futures.ThreadPoolExecutor(2)
            return self.pool.submit(read, path).result()
        if kind == "child":
            return subprocess.run(["cat", path], stdout=subprocess.PIPE, check=True).stdout
        if kind == "locked":
            with open(path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                return file.read()
        if kind == "left open":
            self.open_files.append(open(path, "rb", buffering=0))
            if len(self.open_files) > 32:
                self.open_files.popleft().close()
            return self.open_files[-1].read()
        return read(path)

def drop():
    for name in os.listdir(folder):
        handle = os.open(os.path.join(folder, name), os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)

def asked():
    import json
    with open(os.path.join(folder, "..", ".slowfs-stats")) as text:
        return json.load(text)["totals"]["read_bytes"]

torch.manual_seed(5)
loader = DataLoader(Files(), batch_size=16, shuffle=True, num_workers=2, collate_fn=list)
for epoch in range({EPOCHS}):
    drop()
    before, whole = asked(), hashlib.sha256()
    for batch in loader:
        whole.update(repr(batch).encode())
    print(whole.hexdigest(), flush=True)
    print(asked() - before, file=sys.stderr, flush=True)
"""


def run(place, kind, library, *options):
    """Bytes that were read from storage in each epoch, the job's outcome, and its report."""
    draw = random.Random(9)
    report = os.path.join(place.work, "report.json")
    with Ground(place, kind, 2, "--bandwidth", 200, *options) as ground:
        os.makedirs(os.path.join(ground.source, "data"))
        for number in range(COUNT):
            with open(os.path.join(ground.source, "data", f"{number:04}"), "wb") as file:
                file.write(draw.randbytes(BYTES))
        argv = [sys.executable, "-W", "ignore", "-c", JOB, ground.folder(), kind]
        settings = {**stage_testing.SETTINGS, "SLUICE_STAGE": None, "SLUICE_STALE": None,
                    "SLUICE_MEMORY": "16M", "SLUICE_REPORT": report if library else None}
        done = place.run(argv, library=library, timeout=120, **settings)
        claim(done.returncode == 0, done.stderr)
        harness.drive.end_optimizer(place.sockets)
    asked = [int(line) for line in done.stderr.splitlines() if line.isdigit()]
    claim(len(asked) == EPOCHS, done.stderr)
    if not library:
        return asked, done, {}
    with open(report, encoding="utf-8") as text:
        found = json.load(text)
    os.unlink(report)
    return asked, done, found


def check(place, kind, options):
    what = " ".join([kind, *options])
    plain, native, _ = run(place, kind, None, *options)
    under, done, found = run(place, kind, harness.LIBRARY, *options)
    claim(native.stdout == done.stdout, f"{what}: other bytes\n{native.stdout}{done.stdout}{done.stderr}")
    print(f"{what}: plain {[round(one / 1e6, 1) for one in plain]} MB, with "
          f"{[round(one / 1e6, 1) for one in under]} MB; {found['originals_needed']} needed originals, "
          f"{found['precached_bytes'] / 1e6:.1f} MB read ahead, {native.seconds:.1f} and {done.seconds:.1f} s",
          flush=True)
    if kind == "ordinary":
        claim(found["originals_needed"] == 0, f"{what}: {found['originals_needed']} samples had no copies")
        claim(found["sample_hits"] > COUNT, f"{what}: {found}")
        return
    claim(found["originals_needed"] > COUNT // 8, f"{what}: it went unnoticed: {found}")
    claim("needed the originals of their files" in done.stderr, f"{what}: not said: {done.stderr}")
    # What was copied until it was noticed came twice.
    for one in under[1:]:
        claim(one < SLACK * max(plain[-1], COUNT * BYTES), f"{what}: read more than once: {under}, plain {plain}")
    if "--no-keep-cache" not in options:
        claim(found["precached_bytes"] > COUNT * BYTES, f"{what}: nothing was read ahead: {found}")


def test(place):
    harness.need_modules("torch")
    stage_testing.need_slow_mounts()
    cases = [("ordinary",), ("threads",), ("child",), ("locked",), ("left open",), ("threads", "--no-keep-cache")]
    for kind, *options in harness.in_turn(cases, 2):
        check(place, kind, options)


if __name__ == "__main__":
    harness.main(test)
