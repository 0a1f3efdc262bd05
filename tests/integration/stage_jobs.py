#!/usr/bin/python3
# test: timeout=400
"""PyTorch jobs over files of a slow mount, which are staged: the same samples, in the same order,
with the same random draws, whatever the loader; and hits for datasets of every kind."""
import json
import os
import sys

import harness
import stage_testing
from harness import claim
from stage_testing import Ground

JOB = os.path.join(harness.TOP, "tests", "adapters", "job.py")
FILES = 50
# argv: a folder, the kind of dataset, workers and how they are started. None of them says where its files are.
HIDDEN = r"""
import hashlib, os, random, sys
import torch
from torch.utils.data import DataLoader, Dataset

folder, kind, workers = sys.argv[1], sys.argv[2], int(sys.argv[3])

def read(name):
    with open(os.path.join(folder, name), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()

class Hidden(Dataset):
    def __len__(self):
        return 400
    def __getitem__(self, index):
        if kind == "one":
            found = read("a%d" % index)
        elif kind == "two":
            found = read("a%d" % index), read("b%d" % index)
        elif kind == "chosen":
            found = read(("a%d", "b%d")[random.randrange(2)] % index)
        elif kind == "shared":
            found = read("a%d" % (index // 4))
        else:
            os.chdir(folder)
            found = open("a%d" % index, "rb").read(), os.stat("b%d" % index).st_size
        hashlib.sha256(bytes(1 << 19)).digest()  # what a job computes
        return index, found

def main():
    torch.manual_seed(5)
    random.seed(5)
    loader = DataLoader(Hidden(), batch_size=16, shuffle=True, num_workers=workers, collate_fn=list,
                        multiprocessing_context=sys.argv[4] if workers else None,
                        persistent_workers=workers > 0)
    whole = hashlib.sha256()
    for epoch in range(4):
        for batch in loader:
            whole.update(repr(batch).encode())
        print(epoch, whole.hexdigest(), flush=True)

if __name__ == "__main__":
    main()
"""


def settings(place, **more):
    return {"SLUICE_STAGE": None, "SLUICE_CHECKPOINT": None, "SLUICE_DISTANCE": None,
            "SLUICE_DATASET": None, "SLUICE_REPORT": os.path.join(place.work, "report"), **more}


def report(place, done):
    path = os.path.join(place.work, "report")
    claim(os.path.exists(path), f"no report, and this was said: {done.stderr}")
    with open(path, encoding="utf-8") as text:
        found = json.load(text)
    os.unlink(path)
    return found


def check_loaders(place, ground):
    os.mkdir(os.path.join(ground.source, "files"))
    for number in range(FILES):
        with open(os.path.join(ground.source, "files", f"{number:03}"), "wb") as file:
            file.write(bytes([number]) * (number * 997))
    for mode in "fork", "spawn":
        results = []
        for library in None, harness.LIBRARY:
            result = os.path.join(place.work, f"result-{bool(library)}")
            argv = [sys.executable, "-W", "ignore", JOB, ground.folder("files"), result, mode]
            done = place.run(argv, library=library, timeout=150, **settings(place))
            claim(done.returncode == 0, done.stderr)
            with open(result, encoding="ascii") as text:
                results.append((done.stdout, json.load(text)))
        (plain_text, plain), (under_text, under) = results
        for case, passes in plain.items():
            claim(under[case] == passes, f"{mode}: {case} is not the same")
        claim(plain_text == under_text, f"{mode}: what was printed is not the same")
        found = report(place, done)
        print(f"{mode}: {len(plain)} loaders, {found['sample_hits']} hits")
        claim(mode == "spawn" or found["sample_hits"] > 0, f"{mode}: nothing was in memory in time: {found}")


def check_hidden(place, ground):
    os.mkdir(os.path.join(ground.source, "hidden"))
    for number in range(400):
        for letter in "ab":
            with open(os.path.join(ground.source, "hidden", f"{letter}{number}"), "wb") as file:
                file.write(f"{letter}{number}".encode() * 2000)
    script = os.path.join(place.work, "hidden.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(HIDDEN)
    for kind, workers, begun in (("one", 0, "fork"), ("one", 2, "fork"), ("one", 2, "spawn"),
                                 ("two", 2, "fork"), ("chosen", 0, "fork"), ("shared", 2, "fork"),
                                 ("relative", 2, "fork")):
        argv = [sys.executable, "-W", "ignore", script, ground.folder("hidden"), kind, str(workers),
                begun]
        plain = place.run(argv, library=None, timeout=100)
        claim(plain.returncode == 0, plain.stderr)
        under = place.run(argv, timeout=100, **settings(place))
        harness.same(plain, under, f"{kind} with {workers} workers ({begun})")
        found = report(place, under)
        hits, late, misses = (found["sample_" + word] for word in ("hits", "late", "misses"))
        print(f"{kind} with {workers} workers ({begun}): {hits} hits, {late} late, {misses} misses")
        claim(hits > 100, f"{kind} with {workers} workers ({begun}): {found}")


def test(place):
    stage_testing.need_slow_mounts()
    harness.need_modules("torch")
    with Ground(place, "mount", "1") as ground:
        check_hidden(place, ground)
        check_loaders(place, ground)


if __name__ == "__main__":
    harness.main(test)
