#!/usr/bin/python3
# test: timeout=200
"""Copies that were ahead as their epoch was left stayed ahead, a window more with each such epoch, until memory
was full of them: nothing was fetched ahead any more, and the job read all from the storage."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "integration"))
import harness  # noqa: E402
import stage_testing  # noqa: E402
from harness import claim  # noqa: E402

FILES, BYTES, EPOCHS, BATCHES = 4000, 20_000, 10, 24
MEMORY = "40M"  # a half of the files, of which 4 MiB are for what is ahead
JOB = """
import itertools, os, sys
import torch
from torch.utils.data import DataLoader, Dataset
class Files(Dataset):
    def __init__(self, folder):
        self.samples = [(os.path.join(folder, name), 0) for name in sorted(os.listdir(folder))]
    def __len__(self):
        return len(self.samples)
    def __getitem__(self, index):
        with open(self.samples[index][0], "rb") as file:
            return len(file.read())
def loader_of(data):
    return DataLoader(data, batch_size=16, shuffle=True, num_workers=2, generator=torch.Generator().manual_seed(1))
files = Files(sys.argv[1])
loader = loader_of(files)
read = 0
for epoch in range(int(sys.argv[2])):
    print("epoch", epoch, flush=True)
    sys.stdin.readline()
    if sys.argv[4] == "another":
        loader = loader_of(torch.utils.data.Subset(files, range(epoch, len(files))))
    for batch in itertools.islice(loader, int(sys.argv[3])):
        read += int(batch.sum())
print("read", read, flush=True)
"""


def ahead(place):
    """Bytes of copies that are ahead of a reader / those that the last two epochs have handed out."""
    status = harness.status(place)
    return status["stage"]["ahead_bytes"] / max(sum(one["ahead_bytes"] for one in status["datasets"][-2:]), 1)


def test(place):
    if not stage_testing.slow_mounts():
        harness.skip("no FUSE here")
    with stage_testing.Ground(place, "mount", "1") as ground:
        for number in range(FILES):
            with open(os.path.join(ground.source, f"{number:04d}"), "wb") as file:
                file.write(os.urandom(BYTES))
        for datasets in ("same", "another"):
            leave_early(place, ground, datasets)
            harness.drive.end_optimizer(place.sockets)


def leave_early(place, ground, datasets):
    """A job that leaves each epoch early, of one dataset or of another one for each."""
    job = place.start(["/usr/bin/python3", "-W", "ignore", "-c", JOB, ground.path, str(EPOCHS), str(BATCHES),
                       datasets],
                      stdin=subprocess.PIPE, **{**stage_testing.SETTINGS, "SLUICE_MEMORY": MEMORY})
    for epoch in range(EPOCHS):
        claim(job.stdout.readline() == f"epoch {epoch}\n", "the job does not go on")
        if epoch > 0:
            harness.until(lambda: ahead(place) < 1.6, 30, "what is ahead follows from the order")
        job.stdin.write("go\n")
        job.stdin.flush()
    out, err = job.communicate(timeout=60)
    claim(job.returncode == 0 and out == f"read {EPOCHS * BATCHES * 16 * BYTES}\n", out + err)


if __name__ == "__main__":
    harness.main(test)
