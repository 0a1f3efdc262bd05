#!/usr/bin/python3
# test: timeout=300
"""SLUICE_IMPORTANCE=iis:substitute=...: an unimportant sample that is not in memory is substituted by another that is, in
unmodified jobs. Data and label belong together, an epoch delivers no sample twice, and the
optimizer's account is what was trained."""
import concurrent.futures
import json
import os
import sys

import harness
from harness import claim

COUNT, BATCH, EPOCHS, BYTES = 600, 16, 9, 16384
# argv: folder, workers, sluice, status file, kind. Nothing is learned, so that losses are the same in
# each epoch, and each run selects the same samples.
JOB = """
import json, os, signal, subprocess, sys
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, SubsetRandomSampler

folder, workers, sluice, file, kind = sys.argv[1], int(sys.argv[2]), *sys.argv[3:6]

class Files(Dataset):
    def __init__(self):
        self.paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    def __len__(self):
        return len(self.paths)
    def __getitem__(self, index):
        if kind == "tensor":
            index = index.item()
        with open(self.paths[index], "rb") as data:
            number, label = data.read().split()[:2]
        return int(number), int(label)

torch.manual_seed(5)
dataset = Files()
# Samples differ in how hard they are.
logits = torch.randn(len(dataset), 4).requires_grad_()
allowed = list(range(0, len(dataset), 2)) if kind in ("subset", "tensor") else None
if kind == "tensor":
    allowed = torch.tensor(allowed)
loader = DataLoader(dataset, batch_size=16, num_workers=workers, shuffle=allowed is None,
                    sampler=SubsetRandomSampler(allowed) if allowed is not None else None)
def status():
    return subprocess.run([sluice, "status", "--json", "--socket", os.environ["SLUICE_SOCKET"]],
                          env={"PATH": os.environ["PATH"]}, stdout=subprocess.PIPE).stdout

for epoch in range(EPOCHS):
    seen = []
    for numbers, labels in loader:
        cross_entropy(logits[numbers], labels).backward()
        seen += [f"{number}:{label}" for number, label in zip(numbers.tolist(), labels.tolist())]
        if kind == "early" and len(seen) > 100:
            break
        if kind == "kill" and epoch in (3, 4, 6) and len(seen) == 160:
            text = status()  # nothing where there is no other one yet
            if text:
                os.kill(json.loads(text)["pid"], signal.SIGKILL)
                print("killed", flush=True)
    print("epoch", *seen, flush=True)
if kind != "kill":
    with open(file, "wb") as out:
        out.write(next(filter(None, (status() for _ in range(10))), b""))  # a busy machine's may be late
""".replace("EPOCHS", str(EPOCHS))


def label_of(number):
    return number * 7 // 3 % 4


def make(place, name="samples", size=BYTES):
    folder = os.path.join(place.work, name)
    os.mkdir(folder)
    for number in range(COUNT):
        with open(os.path.join(folder, f"{number:05}"), "wb") as out:
            out.write(b"%d %d " % (number, label_of(number)))
            out.write(b"x" * (size - out.tell()))
    return folder


def run(place, folder, workers, kind="plain", substitute="never", **options):
    status = os.path.join(place.work, f"status-{kind}")
    argv = [sys.executable, "-W", "ignore", "-c", JOB, folder, str(workers),
            os.path.join(harness.BUILD, "sluice"), status, kind]
    settings = dict(SLUICE_IMPORTANCE=f"iis:warmup=2,substitute={substitute}", SLUICE_STAGE="always",
                    SLUICE_MEMORY="2M", SLUICE_PLACES="off")
    done = place.run(argv, timeout=120, **{**settings, **options})
    claim(done.returncode == 0, done.stderr)
    claim("killed" in done.stdout or kind != "kill", "nothing was killed")
    epochs = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("epoch")]
    samples = [[tuple(map(int, sample.split(":"))) for sample in epoch] for epoch in epochs]
    if kind == "kill":
        return samples, None, done.stderr
    with open(status, encoding="utf-8") as text:
        return samples, json.load(text)["importance"][0], done.stderr


def once(epochs, what, allowed=range(COUNT)):
    for number, epoch in enumerate(epochs):
        claim(all(label == label_of(sample) for sample, label in epoch), f"{what}: another's label")
        trained = [sample for sample, _ in epoch]
        claim(len(set(trained)) == len(trained), f"{what}: epoch {number} has a sample twice")
        claim(set(trained) <= set(allowed), f"{what}: epoch {number} has samples of another split")


def adds_up(counts, trained, what):
    answered = sum(counts[kind] for kind in ("h_hits", "l_exact", "l_substituted", "misses"))
    claim(answered == trained, f"{what}: {answered} answers, {trained} trained: {counts}")
    claim(counts["reported"] == trained, f"{what}: {counts}")
    claim(counts["l_substituted"] <= 0.12 * trained + 1, f"{what}: too many substituted: {counts}")


def ledger(report, own, epochs, what):
    """Each pair of the report was trained, and all of those are counted in it."""
    pairs = [(drawn, trained) for epoch, other in zip(own, epochs)
             for (drawn, _), (trained, _) in zip(epoch, other) if drawn != trained]
    said = report["substitutions"]
    claim(said["seen"] == len(pairs), f"{what}: {said['seen']} pairs, {len(pairs)} trained")
    parts = said["parts"]
    counts = [0] * parts * parts
    for drawn, trained in pairs:
        counts[drawn * parts // COUNT * parts + trained * parts // COUNT] += 1
    claim(said["counts"] == counts, f"{what}: {said['counts']}, not {counts}")
    some = list(zip(said["requested"], said["trained"]))
    claim(len(some) == min(512, len(pairs)) and set(some) <= set(pairs), f"{what}: pairs that were not trained: {some}")


def test(place):
    folder = make(place)
    report = os.path.join(place.work, "report.json")
    own, counts, _ = run(place, folder, 0)
    once(own, "never")
    claim(counts["l_substituted"] == 0 and counts["h_hits"] > 0, f"never: {counts}")
    claim([len(epoch) for epoch in own[:2]] == [COUNT] * 2, "the first epochs are not whole")
    for workers, mode in ((0, "any"), (2, "any"), (2, "class")):
        what = f"{mode}, {workers} workers"
        epochs, counts, said = run(place, folder, workers, substitute=mode, SLUICE_REPORT=report)
        once(epochs, what)
        adds_up(counts, sum(map(len, epochs)), what)
        claim(counts["l_substituted"] > COUNT // 50, f"{what}: hardly any was substituted: {counts}")
        claim(f"{counts['l_substituted']} replaced by others" in said, f"{what}: {said}")
        claim([len(epoch) for epoch in epochs] == [len(epoch) for epoch in own],
              f"{what}: epochs of another length")
        differ = sum(epoch != other for epoch, other in zip(epochs, own))
        claim(differ > 0, f"{what}: the same samples as without")
        ledger(harness.take_report(report), own, epochs, what)
        if mode == "class":
            for number, (epoch, other) in enumerate(zip(epochs, own)):
                claim([label for _, label in epoch] == [label for _, label in other],
                      f"{what}: epoch {number} has other labels in their places")
    small = make(place, "small", 60)
    epochs, counts, _ = run(place, small, 0, substitute="any", SLUICE_MEMORY="1M")
    once(epochs, "small files")
    hits = sum(map(len, epochs)) - counts["misses"]
    # Of 600 files, each of which takes 5 KiB of memory, a megabyte holds 200.
    claim(hits <= 200 * EPOCHS, f"small files are taken to take no more than their bytes: {counts}")
    half = range(0, COUNT, 2)
    for kind in "subset", "tensor":
        epochs, counts, _ = run(place, folder, 0, kind, substitute="any")
        once(epochs, kind, half)
        adds_up(counts, sum(map(len, epochs)), kind)
        claim(counts["l_substituted"] > 0, f"{kind}: none was substituted: {counts}")
    epochs, _, _ = run(place, folder, 2, "early", substitute="any")
    once(epochs, "early break")
    for workers in 0, 2:
        epochs, _, _ = run(place, folder, workers, "kill", substitute="any")
        once(epochs, "an optimizer that is killed in an epoch")
        claim([len(epoch) for epoch in epochs[:2]] == [COUNT] * 2, "killed: the first epochs")
    # Two jobs over one dataset: each by its own list, and what both have is shared.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        both = [pool.submit(run, place, folder, 2, kind, substitute="any")
                for kind in ("plain", "subset")]
    once(both[0].result()[0], "first of two jobs")
    once(both[1].result()[0], "second of two jobs", half)
    # Files on a local disk, which are not staged, have nothing to gain.
    epochs, counts, _ = run(place, folder, 0, substitute="any", SLUICE_STAGE="never")
    claim(epochs == own and counts["l_substituted"] == 0, f"samples that are not retained are substituted: {counts}")


if __name__ == "__main__":
    harness.main(test)
