#!/usr/bin/python3
# test: timeout=240
"""Datasets of any declared size, sparse numbers and numbers beyond all limits: the optimizer's memory grows
with what was read, and other jobs are helped as ever."""
import os
import subprocess
import sys

import harness
from harness import claim, most_memory, until

MOST = 160 << 20  # bytes that the optimizer may ever have taken
FILES = 40

SPARSE = """
import os, sys, torch
from torch.utils.data import DataLoader, Dataset, RandomSampler
class Sparse(Dataset):
    def __init__(self, folder):
        self.folder, self.names = folder, sorted(os.listdir(folder))
    def __len__(self):
        return 10**8
    def __getitem__(self, index):
        with open(os.path.join(self.folder, self.names[index % len(self.names)]), "rb") as file:
            return len(file.read())
data = Sparse(sys.argv[1])
for epoch in range(3):
    sampler = RandomSampler(data, replacement=True, num_samples=1500,
                            generator=torch.Generator().manual_seed(epoch))
    print(sum(int(batch.sum()) for batch in DataLoader(data, batch_size=50, sampler=sampler)), flush=True)
print("read", flush=True)
sys.stdin.readline()
"""

NUMBERS = """
import os, sys
sys.path.insert(0, sys.argv[2])
import sluice
names = [os.path.join(sys.argv[1], name) for name in sorted(os.listdir(sys.argv[1]))]
huge = sluice.dataset("huge", 1 << 32)
assert huge > 0, huge
for index in (0, (1 << 32) - 1, 1 << 32, (1 << 40) - 1, 1 << 63, (1 << 64) - 1):
    sluice.begin(huge, index)
    with open(names[index % len(names)], "rb") as file:
        file.read()
    sluice.end(huge, index)
    sluice.locate_files(huge, min(index, 1 << 62), [names[0]])
    sluice.publish_order(huge, 1, [min(index, 1 << 62)])
    sluice.publish_order(huge, 2, [5], first=min(index, 1 << 62))
for samples in ((1 << 32) + 1, 1 << 63):
    assert sluice.dataset("larger", samples) <= 0
print("read", flush=True)
sys.stdin.readline()
"""

OTHER = """
import os, sys
sys.path.insert(0, sys.argv[2])
import sluice
names = [os.path.join(sys.argv[1], name) for name in sorted(os.listdir(sys.argv[1]))]
number = sluice.dataset("another's", len(names))
assert number > 0, number
sluice.locate_files(number, 0, names)
sluice.publish_order(number, 1, list(range(len(names)))[::-1], whole=True)
print("declared", flush=True)
sys.stdin.readline()
"""


class Waiting:
    """A job that says `word`, and ends on request."""

    def __init__(self, place, script, word):
        self.output, self.job = [], place.start(
            [sys.executable, "-c", script, os.path.join(place.work, "data"), harness.PYTHON_ADAPTER],
            stdin=subprocess.PIPE, SLUICE_STAGE="always")
        for line in self.job.stdout:
            self.output.append(line)
            if line == word + "\n":
                return
        self.end()

    def end(self):
        _, err = self.job.communicate("\n", timeout=60)
        claim(self.job.returncode == 0, err)


def datasets(place):
    """As the optimizer knows them; none where it does not answer now."""
    return (harness.status(place) or {"datasets": []})["datasets"]


def test(place):
    folder = harness.make_samples(place, FILES)
    jobs = [Waiting(place, SPARSE, "read"), Waiting(place, NUMBERS, "read")]
    [optimizer] = place.optimizers()
    # The last events come by another way than messages.
    until(lambda: any(one["samples"] == 10**8 and one["known"] > 1000 for one in datasets(place)), 60,
          "what was read is known")
    other = Waiting(place, OTHER, "declared")
    until(lambda: any(one["name"] == "another's" and one["known"] == FILES for one in datasets(place)), 60,
          "another job is known")
    until(lambda: harness.staged(place) >= FILES, 60, "another job's files are staged")
    claim(place.optimizers() == [optimizer], "the optimizer is another one")
    most = most_memory(optimizer)
    claim(most < MOST, f"the optimizer took {most >> 20} MiB")
    for job in jobs + [other]:
        job.end()
    plain = place.run([sys.executable, "-c", SPARSE, folder], library=None)
    claim(jobs[0].output == plain.stdout.splitlines(True), "the job's own sums differ")
    print(f"the optimizer took {most >> 20} MiB at most")


if __name__ == "__main__":
    harness.main(test)
