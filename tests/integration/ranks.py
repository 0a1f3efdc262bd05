#!/usr/bin/python3
# test: timeout=400 turns
"""SLUICE_IMPORTANCE=iis in jobs of two ranks: both have equally many batches in each epoch, as many as the
options say, whatever becomes of an optimizer or of the adapter on one of them; each trains samples of its
own shard, each once."""
import concurrent.futures
import json
import os
import sys

import harness
from harness import claim

sys.path.insert(0, os.path.join(harness.TOP, "adapters/pytorch"))
import torch  # noqa: E402
from sluice_torch import turns  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

COUNT, BATCH, EPOCHS, BYTES, SEED = 480, 8, 9, 16384, 3
# argv: folder, workers, kind, sluice, status file, file to meet at. Nothing is learned, so that losses are
# the same in each epoch.
JOB = f"""
import datetime, json, os, signal, subprocess, sys
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler
from torch.utils.data.distributed import DistributedSampler

folder, workers, kind, sluice, file, meeting = sys.argv[1], int(sys.argv[2]), *sys.argv[3:7]

class Files(Dataset):
    def __init__(self, name="train"):
        self.name = name
        self.paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    def __len__(self):
        return len(self.paths)
    def __getitem__(self, index):
        with open(self.paths[index], "rb") as data:
            return int(data.read().split()[0])

def status():
    return subprocess.run([sluice, "status", "--json", "--socket", os.environ["SLUICE_SOCKET"]],
                          env={{"PATH": os.environ["PATH"]}}, stdout=subprocess.PIPE).stdout

def spoil(rank, epoch):
    # What fails on one rank alone.
    if rank == 0 or "sluice_torch" not in sys.modules:
        return
    from sluice_torch import importance, loader, settings
    def broken(*_, **__):
        raise RuntimeError("injected")
    if kind == "observe" and epoch == 3:
        importance._reports_of = broken
    elif kind == "off" and epoch == 3:
        settings.switch_off("injected")
    elif kind == "predict":
        loader.Epoch.predict = broken if epoch % 2 else predict
    elif kind == "ends":
        importance.epoch_ends = broken
    elif kind == "deliver" and epoch == 3:
        loader.Epoch._decide_more = broken

def train(rank, ranks):
    global predict
    torch.manual_seed(5)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=60))
    if "sluice_torch" in sys.modules:
        from sluice_torch import loader as own
        predict = own.Epoch.predict
    dataset = Files()
    logits = torch.randn(len(dataset), 4).requires_grad_()
    sampler = DistributedSampler(dataset, ranks, rank, kind != "in_order", seed={SEED})
    batches = dict(batch_size={BATCH}, sampler=sampler, drop_last=kind == "drop")
    if kind == "one_by_one":
        batches = dict(batch_size=None, sampler=sampler)
    if kind == "other":
        batches = dict(batch_size={BATCH}, sampler=RandomSampler(dataset))
    loader = DataLoader(dataset, num_workers=workers, persistent_workers=kind == "persistent", **batches)
    for epoch in range({EPOCHS}):
        spoil(rank, epoch)
        sampler.set_epoch(epoch)
        if kind == "peek" and rank == 0:
            next(iter(loader))
        if kind == "late":  # between iter() and the first draw
            sampler.set_epoch(epoch + 50)
        iterator = iter(loader)
        length = len(loader)
        sampler.set_epoch(epoch)
        seen, steps, together = [], 0, torch.zeros(1)
        for numbers in iterator:
            numbers = numbers.reshape(-1) if torch.is_tensor(numbers) else torch.tensor([numbers])
            cross_entropy(logits[numbers], numbers * 7 // 3 % 4).backward()
            dist.all_reduce(together)  # never ends if the other rank has no such batch
            seen += numbers.tolist()
            steps += 1
            if kind == "peek" and rank == 0 and steps == 5:
                next(iter(loader))
            if kind == "kill" and rank == 0 and epoch in (3, 4, 6) and steps == 10:
                text = status()  # nothing where there is no other one yet
                if text:
                    os.kill(json.loads(text)["pid"], signal.SIGKILL)
                    print("killed", flush=True)
        print("epoch", length, steps, *seen, flush=True)
        dist.barrier()
        if epoch in (0, {EPOCHS} - 1) and rank == 0 and kind != "kill":
            with open(file + str(epoch), "wb") as out:
                out.write(next(filter(None, (status() for _ in range(10))), b""))  # a busy machine's may be late
        dist.barrier()
    dist.destroy_process_group()

if kind == "forked":  # ranks that share a session: their parent has one
    list(DataLoader(Files("parent"), batch_size={BATCH}))
    children = []
    for rank in range(2):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(write, 1)
            os.close(write)
            status_of = 1
            try:
                train(rank, 2)
                sys.stdout.flush()
                status_of = 0
            finally:
                os._exit(status_of)
        os.close(write)
        children.append((pid, open(read)))
    for rank, (pid, out) in enumerate(children):
        print("rank", rank)
        print(out.read())
        assert os.waitpid(pid, 0)[1] == 0
else:
    train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
"""


def make(place):
    folder = os.path.join(place.work, "samples")
    os.mkdir(folder)
    for number in range(COUNT):
        with open(os.path.join(folder, f"{number:05}"), "wb") as out:
            out.write(b"%d " % number)
            out.write(b"x" * (BYTES - out.tell()))
    return folder


def epochs_of(text):
    """(len(loader), batches, samples) of each epoch of a rank."""
    lines = [list(map(int, line.split()[1:])) for line in text.splitlines() if line.startswith("epoch")]
    return [(line[0], line[1], line[2:]) for line in lines]


def run(place, folder, workers, kind, ranks=2, of_last=(), iis="warmup=2", **options):
    """The epochs of each rank, and what all wrote to standard error. of_last: settings of the last rank alone."""
    run.runs += 1
    meeting, status = (os.path.join(place.work, f"{name}-{run.runs}") for name in ("meeting", "status"))
    argv = [sys.executable, "-W", "ignore", "-c", JOB, folder, str(workers), kind,
            os.path.join(harness.BUILD, "sluice"), status, meeting]
    settings = dict(SLUICE_IMPORTANCE="iis:" + iis, SLUICE_STAGE="always", SLUICE_MEMORY="2M", SLUICE_PLACES="off",
                    GLOO_SOCKET_IFNAME="lo")
    settings.update(options)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        jobs = [pool.submit(place.run, argv, timeout=150, RANK=str(rank), WORLD_SIZE=str(ranks),
                            **{**settings, **dict(of_last if rank == ranks - 1 else ())})
                for rank in range(1 if kind == "forked" else ranks)]
        done = [job.result() for job in jobs]
    said = "".join(one.stderr for one in done)
    claim(all(one.returncode == 0 for one in done), f"{kind}: {said}")
    if kind == "forked":
        return [epochs_of(text) for text in done[0].stdout.split("rank")[1:]], said, status
    claim(kind != "kill" or "killed" in done[0].stdout, "nothing was killed")
    return [epochs_of(one.stdout) for one in done], said, status


run.runs = 0


def shards(ranks):
    """By epoch, what each rank's sampler draws."""
    every = []
    for epoch in range(EPOCHS):
        samplers = [DistributedSampler(range(COUNT), ranks, rank, seed=SEED) for rank in range(ranks)]
        for sampler in samplers:
            sampler.set_epoch(epoch)
        every.append([list(sampler) for sampler in samplers])
    return every


def alike(epochs, what, rule=(2, 3, 0.5), size=BATCH, drop=False, in_order=True):
    """All that must hold of every job of several ranks."""
    ranks = len(epochs)
    claim(all(len(own) == EPOCHS for own in epochs), f"{what}: {[len(own) for own in epochs]} epochs")
    for number, drawn in enumerate(shards(ranks)):
        of_ranks = [own[number] for own in epochs]
        due = turns.due(COUNT // ranks, size, number, rule)
        batches = due // size if drop else -(-due // size)
        for (length, steps, seen), shard in zip(of_ranks, drawn):
            got = f"{what}: epoch {number} has {steps} batches of {len(seen)} samples"
            claim(steps == batches, f"{got}, not {batches}")
            claim(len(seen) == (batches * size if drop else due), got)
            claim(length == steps, f"{got}, and says {length}")
            claim(len(set(seen)) == len(seen), f"{got}, some twice")
            claim(set(seen) <= set(shard), f"{got}, some of another's shard")
            claim(not in_order or seen == [index for index in shard if index in set(seen)],
                  f"{got}, not in the sampler's order")
        if turns.fetches_all(number, *rule[:2]) and not drop:
            trained = set().union(*(seen for _, _, seen in of_ranks))
            claim(trained == set(range(COUNT)), f"{what}: epoch {number} is not whole")


def importance(status, epoch):
    with open(status + str(epoch), encoding="utf-8") as text:
        return json.load(text)["importance"]


def hard(epochs):
    """How many of the samples that selected epochs fetched are of the half with the greater losses."""
    torch.manual_seed(5)
    logits = torch.randn(COUNT, 4)
    labels = torch.arange(COUNT) * 7 // 3 % 4
    losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    above = losses > losses.median()
    seen = [number for own in epochs for _, steps, samples in own for number in samples
            if len(samples) < COUNT // len(epochs)]
    return sum(bool(above[number]) for number in seen) / len(seen)


def healthy(place, folder):
    cases = (0, "plain"), (2, "plain"), (2, "persistent"), (0, "late"), (2, "peek"), (0, "forked")
    for workers, kind in harness.in_turn(cases, 3):
        what = f"{kind}, {workers} workers"
        # By what ranks are known to be of one job: the port at which they meet, or their parent.
        port = {"MASTER_PORT": "29500"} if workers else {}
        epochs, said, status = run(place, folder, workers, kind, **port)
        alike(epochs, what)
        claim("not selected" not in said and "even part" not in said, f"{what}: {said}")
        claim(hard(epochs) > 0.6, f"{what}: {hard(epochs)} are hard")
        if kind == "peek":
            continue
        first, last = (importance(status, epoch) for epoch in (0, EPOCHS - 1))
        claim(len(first) == (1 if kind == "forked" else 2), f"{what}: {first}")
        claim(all(one["known"] == COUNT for one in first), f"{what}: not all ranks know all losses: {first}")
        trained = sum(len(seen) for own in epochs for _, _, seen in own)
        claim(sum(one["reported"] for one in last) == trained, f"{what}: {trained} trained: {last}")
    epochs, _, _ = run(place, folder, 0, "drop", iis="share=31,full-every=0,warmup=1")
    alike(epochs, "drop", (1, 0, 0.31), drop=True)
    epochs, _, _ = run(place, folder, 0, "one_by_one")
    alike(epochs, "one by one", size=1)
    epochs, _, _ = run(place, folder, 0, "plain", ranks=1)
    alike(epochs, "one rank")
    claim(hard(epochs) > 0.6, "one rank: it is not by importance")


def unhealthy(place, folder):
    """What fails for one rank leaves both with what is due."""
    for kind in harness.in_turn(("observe", "off", "predict", "ends", "deliver"), 2):
        epochs, said, _ = run(place, folder, 2, kind, SLUICE_LOG="debug", iis="warmup=2,substitute=any")
        claim("injected" in said, f"{kind}: nothing went wrong: {said}")
        alike(epochs, kind, in_order=False)
    for workers in harness.in_turn((0, 2), 1):
        epochs, _, _ = run(place, folder, workers, "kill", iis="warmup=2,substitute=any")
        alike(epochs, "an optimizer that is killed", in_order=False)
    epochs, said, _ = run(place, folder, 0, "plain", of_last={"SLUICE_SOCKET": "/proc/absent/here"})
    alike(epochs, "one rank without an optimizer")
    claim("an even part of the samples" in said, said)


def substituted(place, folder):
    for workers, kind in harness.in_turn(((0, "plain"), (2, "plain"), (2, "forked")), 1):
        what = f"any, {kind}, {workers} workers"
        # With half of this, little is left for retained samples in each of two sessions.
        epochs, said, status = run(place, folder, workers, kind, iis="warmup=2,substitute=any", SLUICE_MEMORY="4M")
        alike(epochs, what, in_order=False)
        last = importance(status, EPOCHS - 1)
        trained = sum(len(seen) for own in epochs for _, _, seen in own)
        answers = sum(one[kind] for one in last for kind in ("h_hits", "l_exact", "l_substituted", "misses"))
        claim(answers == trained, f"{what}: {answers} answers, {trained} trained: {last}")
        claim(sum(one["l_substituted"] for one in last) > COUNT // 50, f"{what}: hardly any: {last}")
        claim(sum(one["h_hits"] for one in last) > COUNT // 10, f"{what}: hardly any was retained: {last}")
        claim("even part" not in said, f"{what}: {said}")


def left_alone(place, folder):
    """Samplers that select nothing: one without a shuffle, and others than DistributedSampler."""
    epochs, said, _ = run(place, folder, 0, "in_order")
    claim(all(len(seen) == COUNT // 2 for own in epochs for _, _, seen in own), "a validation is selected from")
    claim("not selected" not in said, said)
    epochs, said, _ = run(place, folder, 0, "other")
    claim(all(len(seen) == COUNT for own in epochs for _, _, seen in own), "ranks that would differ")
    claim(said.count("ranks would have batches of different number") == 2, said)


def test(place):
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        harness.skip("this PyTorch has no gloo")
    folder = make(place)
    healthy(place, folder)
    unhealthy(place, folder)
    substituted(place, folder)
    left_alone(place, folder)


if __name__ == "__main__":
    harness.main(test)
