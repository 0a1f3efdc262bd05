#!/usr/bin/python3
# test: timeout=300
"""SLUICE_IMPORTANCE: losses are observed of the samples that are trained, and of them alone, and change
nothing; by them epochs fetch a part of the samples, the more important ones, in the job's own order."""
import json
import os
import sys

import harness
from harness import claim

COUNT, BATCH = 600, 16
# argv: workers, epochs, kind. Trains on samples whose own number is in their bytes, and prints the
# epochs' samples, losses and final weights.
JOB = f"""
import os, subprocess, sys
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

workers, epochs, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
COUNT = {COUNT}

class Numbers(Dataset):
    def __init__(self, name, count):
        self.name, self.count = name, count
    def __len__(self):
        return self.count
    def __getitem__(self, index):
        # One in ten is hard: its label is not what its bits say.
        bits = torch.tensor([(index >> bit) & 1 for bit in range(10)], dtype=torch.float32)
        return bits, (index & 1) ^ (index % 10 == 3), index

torch.manual_seed(5)
model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
module = nn.CrossEntropyLoss(label_smoothing=0.0)
loader = DataLoader(Numbers("train", COUNT), batch_size={BATCH}, shuffle=True, num_workers=workers,
                    persistent_workers=workers > 0, drop_last=kind == "drop")
validation = DataLoader(Numbers("validation", 100), batch_size={BATCH})

def loss_of(out, labels):
    if kind == "module":
        return module(out, labels)
    if kind == "several":
        return cross_entropy(out, labels) + 0.5 * F.mse_loss(out.softmax(1)[:, 1], labels.float())
    if kind == "binary":
        return F.binary_cross_entropy_with_logits(out[:, 1] - out[:, 0], labels.float())
    if kind == "each":
        return F.cross_entropy(out, labels, reduction="none").mean()
    if kind == "legacy":
        return F.nll_loss(F.log_softmax(out, 1), labels, None, False) / len(labels)
    return cross_entropy(out, labels)

def ahead(batches):
    # As loops do that prepare the next batch while one is computed.
    iterator = iter(batches)
    batch = next(iterator)
    for following in iterator:
        yield batch
        batch = following
    yield batch

for epoch in range(epochs):
    seen, total, batches = [], 0.0, 0
    for bits, labels, numbers in ahead(loader) if kind == "ahead" else loader:
        loss = loss_of(model(bits), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if kind == "odd":  # of something else than the batch
            module(model(torch.zeros(3, 10)), torch.zeros(3, dtype=torch.int64))
        seen += numbers.tolist()
        total += loss.item()
        batches += 1
    assert batches == len(loader), (batches, len(loader))
    if kind == "evaluate":
        with torch.no_grad():
            assert sum(len(numbers) for _, _, numbers in loader) == COUNT
    with torch.no_grad():
        for bits, labels, numbers in validation:
            total += cross_entropy(model(bits), labels).item()
    print("epoch", epoch, total, *seen)
print([p.tolist() for p in model.parameters()], torch.get_rng_state().sum().item(), flush=True)
if len(sys.argv) > 4:  # what the optimizer knows, while there is a job of which to know it
    for last in [False] * 9 + [True]:  # a busy machine's optimizer may be late
        with open(sys.argv[5], "wb") as out:
            asked = subprocess.run([sys.argv[4], "status", "--json", "--socket", os.environ["SLUICE_SOCKET"]],
                                   env={{"PATH": os.environ["PATH"]}}, stdout=out, check=last)
        if asked.returncode == 0:
            break
"""


def epochs_of(done):
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("epoch")]
    return [[int(number) for number in line[3:]] for line in lines]


def run(place, workers, epochs, kind, level, python=sys.executable):
    argv = [python, "-W", "ignore", "-c", JOB, str(workers), str(epochs), kind]
    if level is None:
        return place.run(argv, library=None, timeout=120)
    argv += [os.path.join(harness.BUILD, "sluice"), os.path.join(place.work, "status")]
    return place.run(argv, timeout=120, SLUICE_IMPORTANCE=level)


def known(place):
    """What the optimizer knew of importance at the end of the last job under it."""
    with open(os.path.join(place.work, "status"), encoding="utf-8") as text:
        return json.load(text)["importance"]



def observes(place):
    for workers, kind in ((0, "plain"), (2, "module"), (0, "several"), (0, "binary"), (0, "each"),
                          (0, "legacy"), (2, "drop"), (0, "odd"), (0, "ahead"), (2, "ahead")):
        what = f"loss, {kind}, {workers} workers"
        plain = run(place, workers, 3, kind, None)
        claim(plain.returncode == 0, plain.stderr)
        under = run(place, workers, 3, kind, "loss")
        claim(under.stdout == plain.stdout, f"{what}: the job's output differs")
        claim(under.returncode == plain.returncode, what)
        warnings = [line for line in under.stderr.splitlines() if "not counted" in line]
        found = known(place)
        if kind == "ahead":  # whose last batch has another number of samples, too
            claim(any("before the next" in line for line in warnings), f"{what}: {under.stderr}")
            claim(not found, f"{what}: losses of other samples are counted: {found}")
            continue
        claim(len(warnings) == (1 if kind == "odd" else 0), f"{what}: {under.stderr}")
        trained = 3 * (COUNT // BATCH * BATCH if kind == "drop" else COUNT)
        claim(len(found) == 1, f"{what}: values of {len(found)} datasets: {found}")
        claim(found[0]["reported"] == trained and found[0]["refused"] == 0, f"{what}: {found}")


def selects(place):
    for workers, kind in ((0, "plain"), (2, "module"), (2, "drop"), (0, "evaluate")):
        what = f"iis, {kind}, {workers} workers"
        done = run(place, workers, 10, kind, "iis")
        claim(done.returncode == 0, f"{what}: {done.stderr}")
        trained = sum(map(len, epochs_of(done)))
        claim(known(place)[0]["reported"] == trained, f"{what}: {known(place)} of {trained}")
        whole = COUNT // BATCH * BATCH if kind == "drop" else COUNT
        for number, seen in enumerate(epochs_of(done)):
            claim(len(set(seen)) == len(seen), f"{what}: epoch {number} has a sample twice")
            if number < 5 or number == 7:  # warming up, and the first that is full again
                claim(len(seen) == whole, f"{what}: epoch {number} has {len(seen)} samples")
                continue
            claim(0.3 * COUNT < len(seen) < 0.7 * COUNT, f"{what}: epoch {number}: {len(seen)}")
            claim(len(seen) % BATCH == whole % BATCH, f"{what}: epoch {number} ends otherwise")
            hard = sum(number % 10 == 3 for number in seen) / len(seen)
            claim(hard > 0.12, f"{what}: epoch {number} has {hard:.3f} of hard samples, not a tenth")


def changes_nothing_when_off(place):
    plain = run(place, 2, 7, "plain", None)
    for level in "off", "loss":
        claim(run(place, 2, 7, "plain", level).stdout == plain.stdout, f"{level} differs")


SCRIPTED = """
import torch
from torch import nn
from torch.utils.data import DataLoader

@torch.jit.script
def free(out, labels):
    return torch.nn.functional.cross_entropy(out, labels)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = nn.MSELoss()
        self.layer = nn.Linear(4, 1)
    def forward(self, values, labels):
        return self.loss(self.layer(values), labels)

torch.manual_seed(1)
model = torch.jit.script(Model())
for values, in DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 4)), batch_size=4):
    model(values, torch.zeros(4, 1)).backward()
print(free(torch.ones(2, 3), torch.zeros(2, dtype=torch.int64)), list(model.parameters()))
"""


def scripted(place):
    """TorchScript compiles losses from their source."""
    argv = [sys.executable, os.path.join(place.work, "scripted.py")]
    with open(argv[1], "w", encoding="ascii") as text:
        text.write(SCRIPTED)
    plain = place.run(argv, library=None, timeout=120)
    claim(plain.returncode == 0, plain.stderr)
    harness.same(plain, place.run(argv, timeout=120, SLUICE_IMPORTANCE="loss"), "TorchScript")


def without_an_optimizer(place):
    """No answer comes: all samples are fetched."""
    argv = [sys.executable, "-W", "ignore", "-c", JOB, "0", "7", "plain"]
    plain = place.run(argv, library=None, timeout=120)
    done = place.run(argv, timeout=120, SLUICE_IMPORTANCE="iis",
                     SLUICE_SOCKET="/proc/absent/here")
    claim(done.stdout == plain.stdout, "without an optimizer the job is another")


def test(place):
    observes(place)
    selects(place)
    changes_nothing_when_off(place)
    scripted(place)
    without_an_optimizer(place)


if __name__ == "__main__":
    harness.main(test)
