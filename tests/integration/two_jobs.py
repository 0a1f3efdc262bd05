#!/usr/bin/python3
# test: timeout=240 turns
"""Two jobs, or two ranks of one, over one dataset at the same time, their workers forked or spawned:
each gets its own samples and losses, and what it needs is in memory in time."""
import json
import os
import random
import sys

import harness
import stage_testing
from harness import claim
from stage_testing import Ground

COUNT, BYTES, EPOCHS = 400, 16384, 3
# argv: the folder, what is read, how workers are started, and which of two this is: a job with a seed
# of its own, or a rank. Prints what it was given and what it made of it.
JOB = f"""
import hashlib, os, sys

class Samples:
    file = None
    def __init__(self, folder, kind):
        self.folder, self.kind = folder, kind
    def __len__(self):
        return {COUNT}
    def __getitem__(self, index):
        import torch
        hashlib.sha256(bytes(4 << 20)).digest()  # what a job computes
        if self.kind == "files":
            with open(self.folder + "/files/%d" % index, "rb") as file:
                value = file.read()
        else:
            if self.file is None:
                self.file = os.open(self.folder + "/rows", os.O_RDONLY)
            value = os.pread(self.file, {BYTES}, {BYTES} * index)
        return torch.frombuffer(bytearray(value[:64]), dtype=torch.uint8), index

def drop(folder):
    # Whoever of the two begins its epoch first finds nothing cached, nor does the other.
    rows = os.open(folder + "/rows", os.O_RDONLY)
    os.posix_fadvise(rows, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(rows)

def main():
    import torch
    from torch.utils import data
    folder, kind, begun, which = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(3 if begun == "ranks" else 100 + int(which))
    samples = Samples(folder, kind)
    sampler = None
    if begun == "ranks":
        sampler = data.distributed.DistributedSampler(samples, 2, int(which), seed=9)
    loader = data.DataLoader(samples, 16, shuffle=sampler is None, sampler=sampler, num_workers=2,
                             multiprocessing_context="spawn" if begun == "ranks" else begun,
                             persistent_workers=True)
    model = torch.nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    whole = hashlib.sha256()
    for epoch in range({EPOCHS}):
        drop(folder)
        if sampler is not None:
            sampler.set_epoch(epoch)
        for values, indices in loader:
            whole.update(values.numpy().tobytes() + indices.numpy().tobytes())
            optimizer.zero_grad()
            loss = (model(values / 255).squeeze(1) - indices / {COUNT}).square().mean()
            loss.backward()
            optimizer.step()
        print(epoch, whole.hexdigest(), loss.item().hex(), flush=True)
    print(hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest())

if __name__ == "__main__":
    main()
"""


def both(place, argv, library, **settings):
    jobs = [place.start([*argv, str(which)], library=library,
                        SLUICE_REPORT=os.path.join(place.work, f"report{which}"), **settings)
            for which in range(2)]
    ended = []
    for job in jobs:
        out, err = harness.communicate(job, 200)
        claim(job.returncode == 0, err)
        ended.append(out)
    return ended


def check(place, ground, script, kind, begun):
    what = f"{kind}, {begun}"
    argv = [sys.executable, "-W", "ignore", script, ground.folder("set"), kind, begun]
    plain = both(place, argv, None)
    claim(plain[0] != plain[1], f"{what}: they read the same")
    under = both(place, argv, harness.LIBRARY, SLUICE_DATASET=ground.folder("set"), SLUICE_CHECKPOINT=None,
                 SLUICE_DISTANCE=None, SLUICE_PLACES="off", SLUICE_MEMORY="256M")
    harness.drive.end_optimizer(place.sockets)
    claim(under == plain, f"{what}: not what the plain jobs read and made of it")
    each = COUNT // 2 if begun == "ranks" else COUNT
    for which in range(2):
        with open(os.path.join(place.work, f"report{which}"), encoding="utf-8") as text:
            found = json.load(text)
        hits, late, misses = (found["sample_" + word] for word in ("hits", "late", "misses"))
        print(f"{what}, {which}: {hits} hits, {late} late, {misses} misses")
        # One epoch is watched where no call says what samples are made of.
        claim(hits + late + misses > (EPOCHS - 2) * each, f"{what}, {which}: little was known")
        harness.in_time(hits > 0.6 * (hits + late + misses), f"{what}, {which}: little was in memory in time")


def test(place):
    stage_testing.need_slow_mounts()
    harness.need_modules("torch")
    script = os.path.join(place.work, "job.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(JOB)
    with Ground(place, "mount", "1") as ground:
        folder = os.path.join(ground.source, "set")
        os.makedirs(os.path.join(folder, "files"))
        with open(os.path.join(folder, "rows"), "wb") as file:
            file.write(random.Random(5).randbytes(COUNT * BYTES))
        for number in range(COUNT):
            with open(os.path.join(folder, "files", str(number)), "wb") as file:
                file.write(f"{number} ".encode() * (BYTES // len(f"{number} ")))
        cases = ("rows", "fork"), ("rows", "spawn"), ("rows", "ranks"), ("files", "spawn")
        for kind, begun in harness.in_turn(cases, 2):
            harness.repeated(place, check, place, ground, script, kind, begun)


if __name__ == "__main__":
    harness.main(test)
