#!/usr/bin/python3
# test: timeout=300
"""SLUICE_POLICY=pool and brand with an LMDB, which is its own chunks: each record once an epoch and with its own bytes, in
an order that chunks decide once it is known where records lie, and read a chunk at a time; in the job's own order before,
and where nothing allows another."""
import hashlib
import json
import os
import subprocess

import harness
import stage_testing
from harness import claim
from stage_testing import Ground

COUNT, EPOCHS = 1024, 4
# Of pages of their own, and two to a page.
SIZES = 8000, 1504
EACH = 64  # kChunkSamples
# In an order of its own, as one that was made for training.
MAKE = f"""
import lmdb, random, sys
draw = random.Random(5)
with lmdb.open(sys.argv[1], map_size=1 << 26) as env:
    numbers = list(range({COUNT}))
    draw.shuffle(numbers)
    for number in numbers:
        with env.begin(write=True) as txn:
            txn.put(b"%08d" % number, b"%08d" % number * (int(sys.argv[2]) // 8))
"""
JOB = f"""
import hashlib, sys
import lmdb, torch
from torch.utils.data import DataLoader, Dataset

class Records(Dataset):
    env = None
    def __len__(self):
        return {COUNT}
    def __getitem__(self, index):
        if self.env is None:
            self.env = lmdb.open(sys.argv[1], readonly=True, lock=False, readahead=False)
        with self.env.begin() as txn:
            return index, hashlib.sha256(txn.get(b"%08d" % index)).hexdigest()

torch.manual_seed(3)
loader = DataLoader(Records(), batch_size=16, shuffle=True, num_workers=2, collate_fn=list)
for epoch in range({EPOCHS}):
    for batch in loader:
        print(epoch, [list(one) for one in batch])
    print("end", flush=True)
    sys.stdin.readline()
"""


class Records:
    def __init__(self, place, ground, size):
        self.place, self.ground, self.size = place, ground, size
        self.path = ground.folder(f"db-{size}")
        done = subprocess.run(["/usr/bin/python3", "-c", MAKE, os.path.join(ground.source, f"db-{size}"), str(size)],
                              check=False, capture_output=True, text=True)
        claim(done.returncode == 0, done.stderr)

    def drop_cached(self):
        with open(os.path.join(self.ground.mount.point, ".slowfs-drop"), "rb"):
            pass

    def run(self, library, policy="pool", **more):
        """[(index, digest)...] by epoch, and the optimizer's requests for bytes by epoch."""
        settings = {**stage_testing.SETTINGS, "SLUICE_STAGE": None, "SLUICE_POLICY": policy, "SLUICE_SUBSTITUTE": "any",
                    "SLUICE_LINGER": "60", "SLUICE_MEMORY": "4M", "SLUICE_PLACES": "off", **more}
        self.drop_cached()
        job = self.place.start(["/usr/bin/python3", "-W", "ignore", "-c", JOB, self.path], library, stdin=subprocess.PIPE,
                               **settings)
        epochs, asked = [[]], [0]
        for line in job.stdout:
            if line == "end\n":
                pids = self.place.optimizers()
                asked.append(self.ground.mount.account(pids[0])["read"] if pids else 0)
                epochs.append([])
                self.drop_cached()
                job.stdin.write("\n")
                job.stdin.flush()
                continue
            epochs[int(line.split(" ", 1)[0])] += json.loads(line.split(" ", 1)[1].replace("'", '"'))
        _, said = job.communicate(timeout=60)
        claim(job.returncode == 0, said)
        self.view = (harness.status(self.place) or {}).get("chunks") if library else None
        harness.drive.end_optimizer(self.place.sockets)
        for epoch, samples in enumerate(epochs[:EPOCHS]):
            claim(sorted(index for index, _ in samples) == list(range(COUNT)), f"{policy}, {epoch}: not each sample once")
            for index, digest in samples:
                claim(digest == hashlib.sha256(b"%08d" % index * (self.size // 8)).hexdigest(),
                      f"{policy}: {index}: other bytes")
        return epochs[:EPOCHS], [after - before for before, after in zip(asked, asked[1:])], said


def check_order_of_chunks(records, plain, policy):
    what = f"{policy}, {records.size} bytes"
    epochs, asked, said = records.run(harness.LIBRARY, policy)
    print(f"{what}: the optimizer's requests by epoch {asked}; {records.view}")
    claim(epochs[0] == plain[0], f"{what}: nothing was known of the first epoch, which has another order")
    claim(epochs[-1] != plain[-1], f"{what}: the order is the job's own")
    claim(epochs[-2] != epochs[-1], f"{what}: two epochs have the same order")
    claim("read as requested" not in said, said)
    jobs = (records.view or {}).get("jobs") or []
    claim(len(jobs) == 1 and jobs[0]["substituted"] > COUNT and jobs[0]["chunks"] == COUNT // EACH, f"{records.view}")
    if policy == "pool":
        # A worker on a busy machine reads what has not come yet by itself. The kernel cuts a chunk into requests.
        claim(sum(asked[2:]) < (EPOCHS - 2) * asked[0] / 3, f"{what}: records were read one by one: {asked}")
        claim(jobs[0]["loads"] <= EPOCHS * COUNT // EACH, f"{what}: a chunk was read twice in an epoch: {records.view}")


def test(place):
    stage_testing.need_slow_mounts()
    with Ground(place, "records", "1") as ground:
        for size in SIZES:
            records = Records(place, ground, size)
            plain, _, _ = records.run(None)
            for policy in "pool", "brand":
                check_order_of_chunks(records, plain, policy)
        for what, settings in (("not allowed", {"SLUICE_SUBSTITUTE": None}), ("another policy", {"SLUICE_POLICY": "lru"})):
            epochs, _, _ = records.run(harness.LIBRARY, **settings)
            claim(epochs == plain, f"{what}: {stage_testing.first_difference(str(plain), str(epochs))}")


if __name__ == "__main__":
    harness.main(test)
