#!/usr/bin/python3
# test: timeout=300
"""SLUICE_POLICY=pool and brand in jobs of several ranks: all ranks together train each sample once an epoch, with its own
bytes, each from its own part of the chunks; a rank that ends early takes no other's."""
import hashlib
import json
import os

import harness
import stage_testing
from chunks_live import COUNT, EACH, Chunks, content
from harness import claim
from stage_testing import Ground

EPOCHS = 3
# argv: folder, file, rank, ranks, epochs, how many of the samples the sampler knows
JOB = stage_testing.hashed_files(COUNT) + """
from torch.utils.data.distributed import DistributedSampler

class Numbered(Files):
    def __getitem__(self, index):
        return index, super().__getitem__(index)

rank, ranks, epochs, length = map(int, sys.argv[3:7])
torch.manual_seed(3)
dataset = Numbered(sys.argv[1])
sampler = DistributedSampler(range(length), ranks, rank, shuffle=True, seed=1)
loader = DataLoader(dataset, batch_size=16, sampler=sampler, num_workers=2, collate_fn=list)
out = open(sys.argv[2], "w")
for epoch in range(epochs):
    sampler.set_epoch(epoch)
    for batch in loader:
        print(epoch, batch, file=out)
"""


def epochs_of(path):
    epochs = [[] for _ in range(EPOCHS)]
    with open(path, encoding="utf-8") as text:
        for line in text:
            epoch, batch = line.split(" ", 1)
            epochs[int(epoch)] += json.loads(batch.replace("(", "[").replace(")", "]").replace("'", '"'))
    return epochs


def run(chunks, what, ranks, epochs=None, length=COUNT, library=harness.LIBRARY, **more):
    """By rank and epoch, the samples; what the optimizer counted; what the ranks said."""
    place = chunks.place
    settings = {**stage_testing.SETTINGS, "SLUICE_SUBSTITUTE": "any", "SLUICE_LINGER": "60", "SLUICE_STALE": "600",
                "SLUICE_CACHE_DIR": chunks.cache, "SLUICE_MEMORY": "6M", "SLUICE_PLACES": "off",
                "MASTER_PORT": "29517", "LOCAL_WORLD_SIZE": str(ranks), **more}
    script = os.path.join(place.work, "rank.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(JOB)
    chunks.drop_cached()
    jobs, files = [], []
    for rank in range(ranks):
        files.append(os.path.join(place.work, f"found-{rank}"))
        own = (epochs or {}).get(rank, EPOCHS)
        jobs.append(place.start(["/usr/bin/python3", "-W", "ignore", script, chunks.folder, files[-1], str(rank),
                                 str(ranks), str(own), str(length)], library, **settings))
    said = []
    for job in jobs:
        said.append(harness.communicate(job, 120)[1])
        claim(job.returncode == 0, f"{what}: {said}")
    status = harness.status(place) or {}
    harness.drive.end_optimizer(place.sockets)
    print(f"{what}: {status.get('chunks')}")
    found = [epochs_of(file) for file in files]
    for rank in found:
        for epoch in rank:
            for index, digest in epoch:
                claim(digest == hashlib.sha256(content(index)).hexdigest(), f"{what}: other bytes of {index}")
    return found, status.get("chunks"), said


def indices(samples):
    return [index for index, _ in samples]


def check_all_once(chunks):
    for policy in "pool", "brand":
        for ranks in 2, 3:
            what = f"{policy}, {ranks} ranks"
            found, view, _ = run(chunks, what, ranks, SLUICE_POLICY=policy)
            each = -(-COUNT // ranks)  # DistributedSampler pads
            for epoch in range(EPOCHS):
                trained = [indices(rank[epoch]) for rank in found]
                claim([len(one) for one in trained] == [each] * ranks, f"{what}: {list(map(len, trained))}")
                claim(set().union(*trained) == set(range(COUNT)), f"{what}: not all in epoch {epoch}")
            for rank in found:
                claim(set(indices(rank[0])) >= set(indices(rank[1])[:COUNT // ranks]), f"{what}: another part")
                claim(indices(rank[1]) != indices(rank[2]), f"{what}: two epochs have the same order")
            jobs = view["jobs"]
            claim(len(jobs) == ranks and sum(job["deliveries"] for job in jobs) == each * ranks * EPOCHS, f"{view}")
            claim(sum(job["substituted"] for job in jobs) > COUNT, f"{what}: nothing was substituted: {view}")
            if policy == "pool":
                most = EPOCHS * (COUNT // EACH + ranks - 1)
                claim(sum(job["loads"] for job in jobs) <= most, f"{what}: chunks were read twice: {view}")


def check_one_ends(chunks):
    found, _, _ = run(chunks, "one ends", 2, {1: 1}, SLUICE_POLICY="pool")
    first = [set(indices(rank[0])) for rank in found]
    claim(not first[0] & first[1] and first[0] | first[1] == set(range(COUNT)), "not each once in the first epoch")
    for epoch in 1, 2:
        claim(set(indices(found[0][epoch])) == first[0], f"epoch {epoch} of the other has other samples than its part")


def check_own_order(chunks):
    """Ranks whose sampler knows other samples, or that are not all processes of the job, train what it draws."""
    for what, length, settings, word in (("a part of the dataset", COUNT - 100, {}, "samples are not selected"),
                                         ("peers with the same batches", COUNT, {"WORLD_SIZE": "4"}, "ranks would have"),
                                         ("no chunks", COUNT, {"SLUICE_CACHE_DIR": chunks.place.work}, "read as drawn")):
        plain, _, _ = run(chunks, what, 2, length=length, library=None, **settings)
        found, view, said = run(chunks, what, 2, length=length, SLUICE_POLICY="pool", **settings)
        claim(found == plain, f"{what}: other samples")
        claim(not view or not view["jobs"], f"{what}: {view}")
        claim(all(word in one for one in said), f"{what}: {said}")


def test(place):
    stage_testing.need_slow_mounts()
    harness.need_modules("torch", python="/usr/bin/python3")
    with Ground(place, "mount", "1") as ground:
        chunks = Chunks(place, ground)
        for check in check_all_once, check_one_ends, check_own_order:
            check(chunks)


if __name__ == "__main__":
    harness.main(test)
