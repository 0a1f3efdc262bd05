"""A PyTorch job that knows nothing of Sluice: job.py FOLDER RESULT fork|spawn

Runs many loaders over the files of FOLDER and writes to RESULT, as JSON, what each of them gave
and the state of every generator after it. The tests run it plain and under the adapter.
"""
import hashlib
import json
import os
import random
import sys

import numpy
import torch
from torch.utils.data import (BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler,
                              Sampler, SubsetRandomSampler,
                              WeightedRandomSampler)
from torch.utils.data.distributed import DistributedSampler

FILES = 50


class Files(Dataset):
    """As ImageFolder is, with an augmentation that draws from every generator there is."""

    def __init__(self, root, case):
        self.root, self.case = root, case
        self.samples = [(os.path.join(root, name), number % 5)
                        for number, name in enumerate(sorted(os.listdir(root)))]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        with open(path, "rb") as file:
            data = file.read()
        noise = (torch.rand(1).item(), random.random(), float(numpy.random.rand()))
        return int(index), hashlib.sha256(data).hexdigest(), label, noise


class Shift(Sampler):
    """A sampler that the adapter cannot know."""

    def __init__(self, size):
        self.size, self.by = size, 0

    def __iter__(self):
        self.by += 7
        return ((i + self.by) % self.size for i in range(self.size))

    def __len__(self):
        return self.size


class Pairs(Shift):
    def __iter__(self):
        indices = list(super().__iter__())
        return iter([indices[i:i + 2] for i in range(0, len(indices), 2)])


class Stream(IterableDataset):
    def __iter__(self):
        return iter([(i, "", 0, (torch.rand(1).item(),)) for i in range(20)])


def owned(seed=5):
    generator = torch.Generator()
    generator.manual_seed(seed)
    return generator


def digest(value):
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def states(*generators):
    return [digest(torch.get_rng_state().tolist()), torch.initial_seed(),
            digest(random.getstate()), digest(numpy.random.get_state()[1].tolist()),
            *[digest(g.get_state().tolist()) for g in generators]]


class Pass:
    """One iteration over a loader: indices as they come, everything else as a digest."""

    def __init__(self, loader):
        self.indices, self.rest, self.whole = [], hashlib.sha256(), False
        self.batches = iter(loader)

    def take(self, batches=None):
        while batches is None or batches > 0:
            try:
                batch = next(self.batches)
            except StopIteration:
                self.whole = True
                return self
            for item in batch if isinstance(batch, list) else [batch]:
                self.indices.append(item[0])
                self.rest.update(repr(item).encode())
            batches = batches and batches - 1
        return self

    def result(self):
        return {"indices": self.indices, "rest": self.rest.hexdigest(), "whole": self.whole}


def same(batch):  # a collate_fn that spawned workers can be sent
    return batch


SAMPLERS = {
    "random": lambda d: {"shuffle": True},
    "random_own": lambda d: {"shuffle": True, "generator": owned()},
    "random_drop": lambda d: {"shuffle": True, "generator": owned(), "drop_last": True},
    "random_sampler_own": lambda d: {"sampler": RandomSampler(d, generator=owned())},
    "random_more": lambda d: {"sampler": RandomSampler(d, num_samples=130, generator=owned())},
    "random_fewer": lambda d: {"sampler": RandomSampler(d, num_samples=20)},
    "replacement": lambda d: {"sampler": RandomSampler(d, True)},
    "replacement_own": lambda d: {"sampler": RandomSampler(d, True, 100, owned())},
    "sequential": lambda d: {"shuffle": False},
    "subset": lambda d: {"sampler": SubsetRandomSampler(range(3, 40, 2))},
    "subset_own": lambda d: {
        "sampler": SubsetRandomSampler([torch.tensor(i) for i in range(30)], owned())},
    "subset_tensor": lambda d: {"sampler": SubsetRandomSampler(torch.arange(30), owned())},
    "weighted": lambda d: {"sampler": WeightedRandomSampler([1.0 + i for i in range(50)], 40)},
    "weighted_once": lambda d: {
        "sampler": WeightedRandomSampler([1.0] * 50, 33, False, generator=owned())},
    "batch_sampler": lambda d: {"batch_sampler": BatchSampler(RandomSampler(d), 7, True)},
    "batch_list": lambda d: {"batch_sampler": [[1, 2, 3], [4], [9, 8]]},
    "list": lambda d: {"sampler": [4, 3, 9, 9, 0]},
    "one_by_one": lambda d: {"shuffle": True, "batch_size": None},
    "one_by_one_own": lambda d: {"batch_size": None, "generator": owned(),
                                 "sampler": RandomSampler(d, True, 70, owned(8))},
    "rank0": lambda d: {"sampler": DistributedSampler(d, 2, 0, seed=3)},
    "rank1": lambda d: {"sampler": DistributedSampler(d, 2, 1, seed=3, drop_last=True)},
    "ranks_in_order": lambda d: {"sampler": DistributedSampler(d, 3, 2, shuffle=False)},
    "unknown": lambda d: {"sampler": Shift(len(d))},
    "unknown_batches": lambda d: {"batch_sampler": Pairs(len(d))},
}
PERSISTENT = ("random", "random_own", "replacement_own", "rank0", "unknown_batches", "one_by_one")
FOUR = ("random_own", "one_by_one_own", "unknown")
# Indices that share one storage: the queues of two workers would move it to shared memory at once, and
# PyTorch 1.13 then frees what the other still copies. Such a job fails now and then by itself.
ALONE = ("subset_tensor",)
SPAWNED = (("random_own", True), ("unknown", False))


def loader_of(folder, case, kind, workers, **more):
    data = Files(folder, case)
    options = {"batch_size": 8, "num_workers": workers, "collate_fn": same}
    options.update(SAMPLERS[kind](data), **more)
    if "batch_sampler" in options:
        del options["batch_size"]
    return DataLoader(data, **options)


def generators_of(loader):
    inner = getattr(loader.batch_sampler, "sampler", loader.sampler)
    found = (loader.generator, getattr(loader.sampler, "generator", None),
             getattr(inner, "generator", None))
    return [g for g in found if g is not None]


def epochs(loader):
    """A whole epoch, one that is left early, and two whole ones."""
    passes = []
    for number, batches in enumerate((None, 2, None, None)):
        if hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(number)
        passes.append(Pass(loader).take(batches))
        torch.rand(1)  # as a model's dropout would
    return passes


def matrix(folder):
    for kind in SAMPLERS:
        runs = [(0, {})] if kind in ALONE else [(0, {}), (2, {})]
        if kind in PERSISTENT:
            runs.append((2, {"persistent_workers": True}))
        if kind in FOUR:
            runs.append((4, {}))
        for workers, more in runs:
            case = "-".join([kind, str(workers), *more])
            yield case, lambda c=case, k=kind, w=workers, m=more: of_loader(
                loader_of(folder, c, k, w, **m))


def of_loader(loader):
    return epochs(loader), generators_of(loader)


def interleaved(folder, case, kind, shared):
    loaders = [loader_of(folder, case, kind, 0) for _ in range(2)]
    if shared:
        loaders[1].sampler.generator = loaders[0].sampler.generator
    passes = [Pass(loader) for loader in loaders]
    while not all(one.whole for one in passes):
        for number, one in enumerate(passes):
            one.take(number + 1)
    return passes, generators_of(loaders[0]) + generators_of(loaders[1])


def drawn_between(folder, case, workers):
    """Random numbers are drawn between iter() and the first next()."""
    one = Pass(loader_of(folder, case, "random", workers))
    torch.rand(3)
    return [one.take()], []


def drawn_within(folder, case):
    """Other code draws from the sampler's own generator in the middle of an epoch."""
    loader = loader_of(folder, case, "replacement_own", 0)
    one = Pass(loader).take(5)
    torch.rand(1, generator=loader.sampler.generator)
    return [one.take()], generators_of(loader)


def resumed(folder, case):
    """The generator's state is put back to what it was before the first epoch, mid-run."""
    loader = loader_of(folder, case, "random_own", 2)
    state = loader.generator.get_state()
    passes = [Pass(loader).take(3)]
    loader.generator.set_state(state)
    return passes + [Pass(loader).take(), Pass(loader).take()], generators_of(loader)


def stream(_folder, _case, workers):
    return [Pass(DataLoader(Stream(), batch_size=4, num_workers=workers, collate_fn=same)).take()
            for _ in range(2)], []


def special(folder):
    yield "interleaved", lambda: interleaved(folder, "interleaved", "random", False)
    yield "interleaved_shared", lambda: interleaved(folder, "interleaved_shared",
                                                    "replacement_own", True)
    for workers in (0, 2):
        case = f"drawn_between-{workers}"
        yield case, lambda c=case, w=workers: drawn_between(folder, c, w)
        yield f"stream-{workers}", lambda w=workers: stream(folder, "", w)
    yield "drawn_within", lambda: drawn_within(folder, "drawn_within")
    yield "resumed", lambda: resumed(folder, "resumed")


def spawned(folder):
    for kind, persistent in SPAWNED:
        case = f"spawned-{kind}"
        yield case, lambda c=case, k=kind, p=persistent: of_spawned(
            loader_of(folder, c, k, 2, persistent_workers=p, multiprocessing_context="spawn"))


def of_spawned(loader):
    return [Pass(loader).take() for _ in range(2 if loader.persistent_workers else 1)], []


def main():
    folder, result, mode = sys.argv[1:]
    torch.set_num_threads(1)
    results = {}
    for cases in (matrix, special) if mode == "fork" else (spawned,):
        for number, (case, run) in enumerate(cases(folder)):
            torch.manual_seed(number)
            random.seed(number)
            numpy.random.seed(number)
            passes, generators = run()
            results[case] = {"passes": [one.result() for one in passes],
                             "states": states(*generators)}
            print(case, digest(results[case]))
    with open(result, "w", encoding="ascii") as out:
        json.dump(results, out)


if __name__ == "__main__":
    main()
