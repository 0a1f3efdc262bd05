#!/usr/bin/python3
# test: timeout=300
"""Small shuffled records from storage with so many requests a second: they are read as runs of
neighbours, far fewer requests than records, also where memory does not hold the file. The job sees
its own bytes in its own order."""
import json
import os
import sys

import harness
import stage_testing
from harness import claim

# Beyond what an epoch's window holds, of whatever memory.
COUNT, BYTES, EPOCHS = 8000, 3000, 3
MAKE = f"""
import lmdb, random, sys
draw = random.Random(5)
rows = [draw.randbytes({BYTES}) for _ in range({COUNT})]
with lmdb.open(sys.argv[1], map_size=1 << 30) as env, env.begin(write=True) as txn:
    for i, row in enumerate(rows):
        txn.put(b"%08d" % i, row)
with open(sys.argv[1] + "/rows.bin", "wb") as file:
    file.write(b"".join(row + bytes(4096 - {BYTES}) for row in rows))
"""
# argv: the folder, `lmdb` or `read`, and `drop` where each epoch begins with nothing in memory.
JOB = f"""
import hashlib, os, sys
import lmdb, torch
from torch.utils.data import DataLoader, Dataset

folder, kind, drops = sys.argv[1:]

class Records(Dataset):
    def __init__(self):
        self.values = None
    def __len__(self):
        return {COUNT}
    def __getitem__(self, index):
        if self.values is None:
            self.values = (os.open(folder + "/rows.bin", os.O_RDONLY) if kind == "read" else
                           lmdb.open(folder, readonly=True, lock=False, readahead=False))
        if kind == "read":
            return os.pread(self.values, {BYTES}, index * 4096)
        with self.values.begin() as txn:
            return txn.get(b"%08d" % index)

torch.manual_seed(11)
loader = DataLoader(Records(), batch_size=64, shuffle=True, num_workers=2, collate_fn=list)
for epoch in range({EPOCHS}):
    if drops == "drop":
        for name in "data.mdb", "rows.bin":
            handle = os.open(folder + "/" + name, os.O_RDONLY)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)
    whole = hashlib.sha256()
    for batch in loader:
        whole.update(b"".join(batch))
    print(epoch, whole.hexdigest(), flush=True)
"""


def test(place):
    if not stage_testing.slow_mounts():
        raise harness.Skip("no FUSE mounts here")
    report = os.path.join(place.work, "report.json")
    for kind, memory in (("lmdb", None), ("read", None), ("lmdb", "8M")):
        what = f"{kind}, memory {memory}"
        with stage_testing.Ground(place, "runs", 2, "--parallel", 2) as ground:
            done = place.run([sys.executable, "-c", MAKE, ground.source], library=None)
            claim(done.returncode == 0, done.stderr)
            job = [kind, "retain" if memory else "drop"]
            plain = place.run([sys.executable, "-c", JOB, ground.source, *job], library=None)
            claim(plain.returncode == 0, plain.stderr)
            before = ground.mount.stats()["totals"]
            under = place.run([sys.executable, "-c", JOB, ground.path, *job], timeout=200,
                              SLUICE_REPORT=report, SLUICE_CHECKPOINT=None, SLUICE_DISTANCE=None,
                              SLUICE_DATASET=ground.path, SLUICE_MEMORY=memory)
            harness.same(plain, under, what)
            after = ground.mount.stats()["totals"]
            with open(report, encoding="utf-8") as text:
                found = json.load(text)
            requests = after["read"] - before["read"]
            asked = after["read_bytes"] - before["read_bytes"]
            counts = {name: found[name] for name in
                    ("packages_read", "package_bytes", "package_used_bytes", "sample_hits",
                     "sample_late", "sample_misses", "precached_bytes", "dropped_bytes")}
            what += f": {requests} requests, {asked} bytes, {counts}"
            claim(found["packages_read"] > 0, what)
            claim(0 < found["package_used_bytes"] <= found["package_bytes"], what)
            # Of three epochs; in a part of the first the places are not known. Memory for a quarter of
            # them would spare a quarter of the requests.
            claim(requests < EPOCHS * COUNT * (0.65 if memory else 0.4), what)
            claim(asked < EPOCHS * COUNT * 4096 * (2.5 if memory else 1.3), what)


if __name__ == "__main__":
    harness.main(test)
