#!/usr/bin/python3
# test: timeout=200
"""Two jobs select from one dataset: what each gains by memory that both share follows from what it computes,
and is found out without reading anything for that."""
import json
import os
import sys

import harness
import stage_testing
from harness import claim
from stage_testing import Ground

COUNT, BYTES, EPOCHS = 800, 16000, 4
# argv: folder, seconds that a sample is computed for, a file that says that the slow job is over, and
# whether this is the slow one.
JOB = f"""
import os, sys, time
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

folder, seconds, over, slow = sys.argv[1], float(sys.argv[2]), sys.argv[3], sys.argv[4] == "slow"

class Files(Dataset):
    def __init__(self):
        self.paths = [os.path.join(folder, str(number)) for number in range({COUNT})]
        self.samples = [(path, 0) for path in self.paths]
    def __len__(self):
        return len(self.paths)
    def __getitem__(self, index):
        with open(self.paths[index], "rb") as data:
            return int(data.read().split()[0]), index % 4

torch.manual_seed(5)
torch.set_num_threads(1)
logits = torch.randn({COUNT}, 4).requires_grad_()
loader = DataLoader(Files(), batch_size=16, num_workers=2, shuffle=True, persistent_workers=True)
epoch = 0
while epoch < {EPOCHS} or not (slow or os.path.exists(over)):
    for numbers, labels in loader:
        cross_entropy(logits[numbers], labels).backward()
        time.sleep(seconds * len(numbers))
    epoch += 1
if slow:
    open(over, "w").close()
"""


def test(place):
    stage_testing.need_slow_mounts()
    harness.need_modules("torch")
    script = os.path.join(place.work, "job.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(JOB)
    # Five hundred files a second, for both.
    with Ground(place, "mount", "1", "--bandwidth", "8") as ground:
        folder = os.path.join(ground.source, "set")
        os.mkdir(folder)
        for number in range(COUNT):
            with open(os.path.join(folder, str(number)), "wb") as file:
                file.write(f"{number} ".encode().ljust(BYTES, b"x"))
        jobs = {}
        for name, seconds in ("slow", 0.005), ("quick", 0.0):
            argv = [sys.executable, "-W", "ignore", script, ground.folder("set"), str(seconds),
                    os.path.join(place.work, "over"), name]
            jobs[name] = place.start(argv, library=harness.LIBRARY, SLUICE_IMPORTANCE="iis:warmup=2",
                                     SLUICE_REPORT=os.path.join(place.work, name), SLUICE_MEMORY="64M",
                                     SLUICE_PLACES="off", SLUICE_DATASET=None,
                                     SLUICE_CHECKPOINT=None, SLUICE_DISTANCE=None)
        gained = {}
        for name, job in jobs.items():
            _, said = harness.communicate(job, 150)
            claim(job.returncode == 0, said)
            with open(os.path.join(place.work, name), encoding="utf-8") as text:
                gained[name] = json.load(text)["benefit_permille"]
    print(f"in permille: {gained}")
    claim(gained["slow"] >= 1000, "no benefit was found")
    claim(gained["slow"] < 1500, f"a job that computes for as long as storage takes gains: {gained}")
    claim(gained["quick"] > 1.2 * gained["slow"], f"a job that computes nothing gains no more: {gained}")


if __name__ == "__main__":
    harness.main(test)
