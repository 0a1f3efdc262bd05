#!/usr/bin/python3
# test: timeout=400
"""What one run learned of a dataset is known to the next one from its first epoch on, as long as the
files are what they were; and nothing that can be wrong with what was stored disturbs a job."""
import json
import os
import shutil
import sys

import harness
from harness import claim, in_time

COUNT, BYTES, EPOCHS = 400, 20000, 3
MAKE = f"""
import lmdb, os, random, sys
draw = random.Random(5)
with lmdb.open(sys.argv[1] + "/db", map_size=1 << 30) as env, env.begin(write=True) as txn:
    for i in range({COUNT}):
        # Keys that say nothing of the sample's number.
        txn.put(random.Random(i).randbytes(12), draw.randbytes({BYTES}))
os.mkdir(sys.argv[1] + "/files")
for i in range({COUNT}):
    # No rule leads from the number to such a name.
    with open(sys.argv[1] + "/files/" + random.Random(i).randbytes(9).hex(), "wb") as file:
        file.write(draw.randbytes(3000))
"""
# argv: the folder, how workers are started, and what is read.
JOB = f"""
import hashlib, os, random, sys

class Records:
    env = None
    def __init__(self, folder, kind):
        self.folder, self.kind = folder, kind
    def __len__(self):
        return {COUNT}
    def __getitem__(self, index):
        hashlib.sha256(bytes(2 << 20)).digest()  # what a job computes
        if self.kind == "files":
            with open(self.folder + "/files/" + random.Random(index).randbytes(9).hex(), "rb") as file:
                return index, hashlib.sha256(file.read()).hexdigest()
        if self.env is None:
            import lmdb
            self.env = lmdb.open(self.folder + "/db", readonly=True, lock=False, readahead=False)
        with self.env.begin() as txn:
            value = txn.get(random.Random(index).randbytes(12))
            return index, hashlib.sha256(value).hexdigest()

def main():
    import torch
    from torch.utils.data import DataLoader
    torch.manual_seed(11)
    folder, context, kind = sys.argv[1:]
    loader = DataLoader(Records(folder, kind), batch_size=16, shuffle=True, collate_fn=list,
                        num_workers=0 if context == "none" else 2,
                        multiprocessing_context=None if context == "none" else context)
    whole = hashlib.sha256()
    for epoch in range({EPOCHS}):
        handle = os.open(folder + "/db/data.mdb", os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)
        for batch in loader:
            whole.update(repr(batch).encode())
        print(epoch, whole.hexdigest(), flush=True)

if __name__ == "__main__":
    main()
"""


class Jobs:
    def __init__(self, place):
        self.place = place
        self.folder = os.path.join(place.work, "set")
        self.store = os.path.join(place.work, "stored", "here")
        self.plain = {}
        self.script = os.path.join(place.work, "job.py")
        os.mkdir(self.folder)
        with open(self.script, "w", encoding="ascii") as file:
            file.write(JOB)
        done = place.run([sys.executable, "-c", MAKE, self.folder], library=None)
        claim(done.returncode == 0, done.stderr)

    def argv(self, context, kind="lmdb"):
        # Python 3.11 may warn of a semaphore that a spawned worker has released.
        return [sys.executable, "-W", "ignore", self.script, self.folder, context, kind]

    def known(self, what, context="fork", kind="lmdb", **settings):
        """Samples whose places were known when they were begun, in epochs."""
        argv = self.argv(context, kind)
        if (context, kind) not in self.plain:
            self.plain[context, kind] = self.place.run(argv, library=None, timeout=120)
        plain = self.plain[context, kind]
        claim(plain.returncode == 0, plain.stderr)
        report = os.path.join(self.place.work, "report.json")
        asked = {"SLUICE_PLACES": self.store, "SLUICE_REPORT": report, "SLUICE_CHECKPOINT": None,
                 "SLUICE_DISTANCE": None, "SLUICE_DATASET": None, "SLUICE_STAGE": "always",
                 "SLUICE_LINGER": "1", **settings}
        under = self.place.run(argv, timeout=120, **asked)
        harness.same(plain, under, what)
        # What was learned is written when the job has ended; and the next job shall not find an optimizer
        # that knows its dataset still.
        harness.drive.end_optimizer(self.place.sockets)
        with open(report, encoding="utf-8") as text:
            found = json.load(text)
        os.unlink(report)
        begun = sum(found["sample_" + word] for word in ("hits", "late", "misses"))
        print(f"{what}: {begun / COUNT:.2f} of {EPOCHS} epochs known, {found['sample_hits']} hits")
        return begun / COUNT

    def files(self):
        return sorted(os.listdir(self.store)) if os.path.isdir(self.store) else []

    def log(self):
        with open(os.path.join(self.place.sockets, "s.log"), encoding="utf-8") as text:
            return text.read()


def check_kept(jobs, context, kind):
    shutil.rmtree(jobs.store, ignore_errors=True)
    first = jobs.known(f"{kind}, {context}: first run", context, kind)
    # Files are reported in batches: the second epoch knows most, not all, of the first.
    claim(first <= EPOCHS - 0.9, f"the first run knew of {first} epochs")
    in_time(first > EPOCHS - 1.5, f"the first run knew of {first} epochs")
    claim(len(jobs.files()) == 1, f"stored: {jobs.files()}")
    again = jobs.known(f"{kind}, {context}: second run", context, kind)
    in_time(again > EPOCHS - 0.3, f"the second run knew of {again} epochs")
    claim(len(jobs.files()) == 1, f"stored: {jobs.files()}")


def check_spawned_workers(jobs):
    """They are sessions of their own and end with their epoch: what they learned lives on."""
    shutil.rmtree(jobs.store, ignore_errors=True)
    first = jobs.known("spawn: first run", "spawn")
    in_time(first > EPOCHS - 1.3, f"the first run knew of {first} epochs")
    in_time(jobs.known("spawn: second run", "spawn") > EPOCHS - 0.5, "little was known")


def check_changed_file(jobs):
    shutil.rmtree(jobs.store, ignore_errors=True)
    jobs.known("as it was")
    data = os.path.join(jobs.folder, "db", "data.mdb")
    os.utime(data, ns=(1, os.stat(data).st_mtime_ns - 1))
    claim(jobs.known("changed since") <= EPOCHS - 0.9, "places of another file were believed")
    in_time(jobs.known("as it is now") > EPOCHS - 0.3, "what was learned of the new one was not stored")


def check_damaged(jobs):
    """REQUIRES: something is stored."""
    path = os.path.join(jobs.store, jobs.files()[0])
    with open(path, "rb") as file:
        good = bytearray(file.read())
    good[200] ^= 4
    with open(path, "wb") as file:
        file.write(good)
    claim(jobs.known("a bit is wrong") <= EPOCHS - 0.9, "it was believed")
    claim(path in jobs.log(), "nothing was said")
    in_time(jobs.known("mended") > EPOCHS - 0.3, "not stored again")
    os.unlink(path)
    os.mkdir(path)
    jobs.known("a folder is in its place")
    os.rmdir(path)


def check_no_room(jobs):
    shutil.rmtree(jobs.store)
    jobs.known("off", SLUICE_PLACES="off")
    claim(not jobs.files(), "stored although it is off")
    with open(jobs.store, "w", encoding="ascii"):
        pass
    jobs.known("a file is where the folder should be")
    claim(f"{jobs.store}: " in jobs.log(), "nothing was said")
    os.unlink(jobs.store)
    jobs.known("the user's cache folder", SLUICE_PLACES=None)
    home = os.path.join(jobs.place.work, ".cache", "sluice")
    claim(len(os.listdir(home)) == 1, "stored elsewhere")
    claim(os.stat(home).st_mode & 0o777 == 0o700, "others may read it")


def test(place):
    if harness.subprocess.run([sys.executable, "-c", "import torch, lmdb"], capture_output=True,
                              check=False).returncode:
        harness.skip("no PyTorch and LMDB here")
    jobs = Jobs(place)
    for case in ("none", "lmdb"), ("fork", "lmdb"), ("fork", "files"):
        harness.repeated(place, check_kept, jobs, *case)
    for check in check_spawned_workers, check_changed_file, check_damaged:
        harness.repeated(place, check, jobs)
    check_no_room(jobs)


if __name__ == "__main__":
    harness.main(test)
