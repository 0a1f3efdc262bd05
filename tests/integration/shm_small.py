#!/usr/bin/python3
# test: timeout=200
"""A container's /dev/shm of 64 MB, in which PyTorch's workers hand over their batches: the stage leaves them
their room. Where it took what was free, they died of SIGBUS."""
import json
import os
import subprocess
import sys

import harness
import stage_testing
from harness import claim
from stage_testing import Ground

FILES, BYTES, SHM = 320, 250_000, 64
# Each batch is 8 MB in shared memory, and four are ready at a time.
JOB = f"""
import hashlib, os, sys
import torch
from torch.utils.data import DataLoader, Dataset

class Files(Dataset):
    def __init__(self, folder):
        self.samples = [(folder + "/%d" % i, i) for i in range({FILES})]
    def __len__(self):
        return {FILES}
    def __getitem__(self, index):
        with open(self.samples[index][0], "rb") as file:
            digest = hashlib.sha256(file.read()).digest()
        return torch.frombuffer(bytearray(digest * (1 << 15)), dtype=torch.uint8)

torch.manual_seed(4)
loader = DataLoader(Files(sys.argv[1]), batch_size=8, shuffle=True, num_workers=2)
for epoch in range(3):
    whole = hashlib.sha256()
    for batch in loader:
        whole.update(batch.numpy().tobytes())
    print(epoch, whole.hexdigest(), flush=True)
"""
IN_SMALL = f'mount -t tmpfs -o size={SHM}m none /dev/shm && exec env LD_PRELOAD="$LIB" "$@"'


def test(place):
    harness.need_modules("torch")
    stage_testing.need_slow_mounts()
    probe = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/dev/shm"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        harness.skip("no mount namespaces here")
    with Ground(place, "shm", 2, "--bandwidth", 400) as ground:
        os.makedirs(os.path.join(ground.source, "data"))
        for number in range(FILES):
            with open(os.path.join(ground.source, "data", str(number)), "wb") as file:
                file.write(os.urandom(BYTES))
        report = os.path.join(place.work, "report")
        argv = ["unshare", "-m", "bash", "-c", IN_SMALL, "bash", sys.executable, "-W", "ignore", "-c", JOB,
                ground.folder()]
        settings = {**stage_testing.SETTINGS, "SLUICE_STAGE": None, "SLUICE_STALE": None, "SLUICE_MEMORY": None,
                    "SLUICE_REPORT": report, "LD_PRELOAD": None}
        plain = place.run(argv, library=None, timeout=90, LIB="")
        claim(plain.returncode == 0, plain.stderr)
        under = place.run(argv, timeout=90, **settings, LIB=harness.LIBRARY)
        harness.same(plain, under, "/dev/shm of 64 MB")
        with open(report, encoding="utf-8") as text:
            found = json.load(text)
        print(f"{found['sample_hits']} hits, {found['precached_bytes'] / 1e6:.1f} MB copied")
        claim(found["sample_hits"] > FILES, "nothing was staged: this says nothing of its room")


if __name__ == "__main__":
    harness.main(test)
