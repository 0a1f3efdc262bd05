#!/usr/bin/python3
# test: timeout=300 turns
"""Samples that are parts of mapped files of which the dataset has nothing to show: each is opened and
mapped where it is read. The pages that a sample touched show where it is; rows of one size are then
known of all samples in the first epoch, others from the second."""
import json
import os
import shutil
import sys

import harness
from harness import claim

COUNT, BYTES, EPOCHS = 400, 40000, 3
MAKE = f"""
import numpy, sys
folder = sys.argv[1]
draw = numpy.random.default_rng(3)
numpy.save(folder + "/rows.npy", draw.integers(0, 255, ({COUNT}, {BYTES}), dtype="uint8"))
sizes = draw.integers({BYTES} // 2, {BYTES} * 2, {COUNT})
numpy.save(folder + "/ends.npy", numpy.cumsum(sizes))
draw.integers(0, 255, int(sizes.sum()), dtype="uint8").tofile(folder + "/values.bin")
"""
# argv: the folder, workers, the kind of dataset, how workers are begun.
JOB = f"""
import hashlib, mmap, os, sys
import numpy, torch
from torch.utils import data

folder, workers, kind, begun = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]

class Mapped(data.Dataset):
    def __len__(self):
        return {COUNT}
    def __getitem__(self, index):
        hashlib.sha256(bytes(4 << 20)).digest()  # what a job computes
        if kind in ("rows", "threads", "batches"):
            return hash(numpy.load(folder + "/rows.npy", mmap_mode="r")[index])
        ends = numpy.load(folder + "/ends.npy")
        with open(folder + "/values.bin", "rb") as file:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as values:
                return hash(values[0 if index == 0 else ends[index - 1]:ends[index]])

class Open(Mapped):
    # The mapping stays, below something that the adapter does not look into.
    values = None
    def __getitem__(self, index):
        hashlib.sha256(bytes(4 << 20)).digest()
        if self.values is None:
            mode = {{"open": "r", "private": "c", "written": "r+"}}[kind]
            rows = numpy.load(folder + "/rows.npy", mmap_mode=mode)
            self.values = lambda i: rows[i]
        values = self.values(index)
        if kind != "open":
            values += 1  # read again in the next epoch
        return hash(values)

def hash(values):
    return torch.frombuffer(bytearray(hashlib.sha256(bytes(values)).digest()), dtype=torch.uint8)

def drop():
    for name in os.listdir(folder):
        handle = os.open(folder + "/" + name, os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)

def reported():
    # "threads": four samples at a time in one process, each mapped and unmapped for itself. "batches":
    # four that are read with one call.
    sys.path.insert(0, folder + "/../python")
    import concurrent.futures
    import sluice
    number = sluice.dataset("set", {COUNT})
    def read(index):
        with sluice.sample(number, index):
            return Mapped()[index]
    def batch(indices):
        for index in indices:
            sluice.begin(number, index)
        values = [Mapped()[index] for index in indices]
        for index in indices:
            sluice.end(number, index)
        return values
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for epoch in range({EPOCHS}):
            drop()
            order = torch.randperm({COUNT}).tolist()
            sluice.publish_order(number, epoch, order, whole=True)
            if kind == "threads":
                yield from pool.map(read, order)
            else:
                for first in range(0, {COUNT}, 4):
                    yield from batch(order[first:first + 4])

if __name__ == "__main__" and kind in ("threads", "batches"):
    torch.manual_seed(5)
    for values in reported():
        print(values.numpy().tobytes().hex())
elif __name__ == "__main__":
    torch.manual_seed(5)
    dataset = Mapped() if kind in ("rows", "values") else Open()
    loader = data.DataLoader(dataset, batch_size=16, shuffle=True, num_workers=workers,
                             multiprocessing_context=begun if workers else None,
                             persistent_workers=workers > 0)
    whole = hashlib.sha256()
    for epoch in range({EPOCHS}):
        drop()
        for values in loader:
            whole.update(values.numpy().tobytes())
        print(epoch, whole.hexdigest(), flush=True)
    print(hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest())
"""

# Every tenth look at the page table takes 8 ms longer, as where others have the processor.
INTERRUPTED = ["strace", "-f", "-qq", "-e", "signal=none", "-o", os.devnull,
               "-P", "/proc/self/pagemap", "-e", "trace=openat",
               "-e", "inject=openat:delay_exit=8000:when=5+10"]


def known(place, script, folder, kind, workers, start="fork", interrupted=False):
    """Samples of which it was known where they are when they were begun, in epochs,
    and the bytes that were fetched."""
    def fresh():
        shutil.copy(os.path.join(place.work, "rows.npy"), folder)
    argv = [sys.executable, "-W", "ignore", script, folder, str(workers), kind, start]
    fresh()
    plain = place.run(argv, library=None, timeout=100)
    claim(plain.returncode == 0, plain.stderr)
    report = os.path.join(place.work, "report.json")
    fresh()
    tracer = INTERRUPTED if interrupted else []
    under = place.run([*tracer, *argv], timeout=100, SLUICE_REPORT=report, SLUICE_CHECKPOINT=None,
                      SLUICE_DISTANCE=None, SLUICE_DATASET=folder, SLUICE_PLACES="off")
    what = f"{kind} with {workers} workers ({'interrupted' if interrupted else start})"
    if interrupted:
        under.stderr = "".join(line for line in under.stderr.splitlines(keepends=True)
                               if not line.startswith("strace: "))
    harness.same(plain, under, what)
    harness.drive.end_optimizer(place.sockets)  # the next job shall not find what was learned
    with open(report, encoding="utf-8") as text:
        found = json.load(text)
    os.unlink(report)
    begun = sum(found["sample_" + word] for word in ("hits", "late", "misses"))
    epochs = begun / COUNT
    print(f"{what}: {epochs:.2f} epochs known, {found['sample_hits']} hits, "
          f"{found['precached_unused_bytes']} bytes unused of {found['precached_bytes']}")
    return epochs, found["precached_bytes"]


def test(place):
    harness.need_modules("torch, numpy")
    folder = os.path.join(place.work, "set")
    os.mkdir(folder)
    done = place.run([sys.executable, "-c", MAKE, folder], library=None)
    claim(done.returncode == 0, done.stderr)
    shutil.copy(os.path.join(folder, "rows.npy"), place.work)
    shutil.copytree(os.path.join(harness.TOP, "adapters", "python"),
                    os.path.join(place.work, "python"))
    script = os.path.join(place.work, "job.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(JOB)

    def learned(least, otherwise, kind, *how, **interrupted):
        def check():
            found, _ = known(place, script, folder, kind, *how, **interrupted)
            harness.in_time(found > least, f"{kind}: {found} epochs: {otherwise}")
        harness.repeated(place, check)

    rows = [(kind, workers, begun) for kind in ("rows", "open")
            for workers, begun in ((0, "fork"), (2, "fork"), (2, "spawn"))]
    for kind, workers, begun in harness.in_turn(rows, 2):
        learned(EPOCHS - 0.5, "no row was guessed", kind, workers, begun)
    for workers in harness.in_turn((0, 2), 1):
        learned(EPOCHS - 1.3, "what was touched is not known", "values", workers)
    # Tracing costs something of its own: it is less than without.
    learned(1.2, "looking was given up", "values", 2, interrupted=True)
    # What a private mapping holds may be the job's own: it is left alone.
    claim(known(place, script, folder, "private", 0)[0] < 0.1, "a private mapping was looked at")
    # What is written is there in the next epoch; and threads that read side by side are not confused.
    known(place, script, folder, "written", 0)
    known(place, script, folder, "threads", 0)
    # Which of them touched a page is unknown.
    claim(known(place, script, folder, "batches", 0)[0] == 0, "a batch's pages went to one sample")


if __name__ == "__main__":
    harness.main(test)
