"""PyTorch's DataLoader: samplers, workers and how they are started, datasets of one call a batch, batches out of order."""
import os

import numpy
import torch
from cases import CLASSES, Batched, Files, Paths, Plain, Training, augmented, case, data, main, owned
from torch.utils.data import (BatchSampler, ConcatDataset, DataLoader, Dataset, IterableDataset, RandomSampler, Sampler,
                              StackDataset, Subset, SubsetRandomSampler, TensorDataset, WeightedRandomSampler,
                              get_worker_info, random_split)
from torch.utils.data.distributed import DistributedSampler


class Shift(Sampler):
    """A sampler of the job's own."""

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

    def __len__(self):
        return self.size // 2


SAMPLERS = {
    "shuffle": lambda d: {"shuffle": True},
    "own": lambda d: {"shuffle": True, "generator": owned()},
    "drop": lambda d: {"shuffle": True, "drop_last": True, "batch_size": 7},
    "sequential": lambda d: {"batch_size": 32},
    "more": lambda d: {"sampler": RandomSampler(d, num_samples=130, generator=owned())},
    "replacement": lambda d: {"sampler": RandomSampler(d, True, 100, owned(9))},
    "subset": lambda d: {"sampler": SubsetRandomSampler(range(3, 90, 2))},
    "weighted": lambda d: {"sampler": WeightedRandomSampler([1.0 + i for i in range(len(d))], 50)},
    "rank": lambda d: {"sampler": DistributedSampler(d, 2, 1, seed=3)},
    "batches": lambda d: {"batch_sampler": BatchSampler(RandomSampler(d), 5, True), "batch_size": 1},
    "list": lambda d: {"sampler": [4, 3, 9, 9, 0, 17, 33, 2]},
    "one": lambda d: {"shuffle": True, "batch_size": None, "sampler": None},
    "unknown": lambda d: {"sampler": Shift(len(d))},
    "pairs": lambda d: {"batch_sampler": Pairs(len(d)), "batch_size": 1},
}
DATASETS = {"files": Files, "getitems": Batched, "paths": Paths}


def loader_of(dataset, sampler, **more):
    return DataLoader(dataset, **{"batch_size": 8, **SAMPLERS[sampler](dataset), **more})


def generators_of(loader):
    inner = getattr(loader.batch_sampler, "sampler", loader.sampler)
    return [g for g in (loader.generator, getattr(inner, "generator", None)) if g is not None]


def epochs(dataset, sampler, breaks=(None, 2, None), **more):
    """A whole epoch, one that is left early, and another."""
    loader, training = loader_of(DATASETS[dataset](), sampler, **more), Training()
    for number, most in enumerate(breaks):
        if hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(number)
        training.epoch(loader, most)
    return {"length": len(loader), **training.result(*generators_of(loader))}


for _dataset in DATASETS:
    for _sampler in SAMPLERS:
        for _workers in (0, 2):
            if _dataset != "paths" or _sampler in ("shuffle", "unknown", "drop"):
                case(f"{_dataset}-{_sampler}-{_workers}", _dataset, _sampler, num_workers=_workers)(epochs)
for _dataset, _sampler in (("files", "shuffle"), ("getitems", "own"), ("files", "rank"), ("getitems", "pairs"),
                           ("files", "one")):
    case(f"{_dataset}-{_sampler}-persistent", _dataset, _sampler, num_workers=2, persistent_workers=True)(epochs)
for _method in ("fork", "forkserver", "spawn"):
    for _dataset, _sampler in (("files", "shuffle"), ("getitems", "weighted")):
        case(f"{_dataset}-{_sampler}-{_method}", _dataset, _sampler, num_workers=2, persistent_workers=True,
             multiprocessing_context=_method)(epochs)
case("spawn-each-epoch", "files", "unknown", (None,), num_workers=1, multiprocessing_context="spawn")(epochs)
for _size in (1, 5, 96, 200):
    for _workers in (0, 2):
        case(f"size-{_size}-{_workers}", "files", "shuffle", batch_size=_size, num_workers=_workers)(epochs)
for _factor in (1, 4):
    case(f"prefetch-{_factor}", "files", "own", num_workers=2, prefetch_factor=_factor)(epochs)
case("timeout", "getitems", "shuffle", num_workers=2, timeout=120)(epochs)
case("pinned", "files", "shuffle", num_workers=2, pin_memory=True)(epochs)
case("four-workers", "files", "shuffle", num_workers=4)(epochs)
# Out of order with one worker is in order.
case("any-order-1", "files", "shuffle", num_workers=1, in_order=False)(epochs)
case("any-order-1-getitems", "getitems", "own", num_workers=1, in_order=False, persistent_workers=True)(epochs)


def any_order(sampler, **more):
    """Batches come in whatever order: each is compared by itself."""
    loader = loader_of(Plain(), sampler, num_workers=2, in_order=False, **more)
    found = []
    for _ in range(2):
        found.append(sorted([indices.tolist(), pixels.sum().item().hex()] for indices, pixels, _ in loader))
    return {"batches": found, **Training().result(*generators_of(loader))}


for _sampler in ("shuffle", "own", "rank", "unknown"):
    case(f"any-order-2-{_sampler}", _sampler)(any_order)
case("any-order-2-persistent", "own", persistent_workers=True)(any_order)


class Rows(Dataset):
    """Rows of a mapped array."""

    def __init__(self):
        self.rows = numpy.load(os.path.join(data(), "rows.npy"), mmap_mode="r")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return index, augmented((self.rows[index, :64] * 255).astype("uint8").tobytes(), index), index % CLASSES


class Numbered(Dataset):
    """A part of another dataset, with numbers of its own."""

    def __init__(self, inner, first):
        self.inner, self.first = inner, first

    def __len__(self):
        return len(self.inner) - self.first

    def __getitem__(self, index):
        return self.inner[self.first + index]


def stacked():
    return StackDataset(Subset(Files(), range(0, 60)), Batched(limit=60))


def unstacked(batch):
    (indices, pixels, labels), (_, others, _) = torch.utils.data.default_collate(batch)
    return indices, pixels + others, labels


COMBINED = {
    "subset": lambda: Subset(Files(), list(range(90, 10, -3))),
    "subset-getitems": lambda: Subset(Batched(), torch.randperm(50).tolist()),
    "nested": lambda: Subset(Subset(Batched(), range(80)), range(5, 70)),
    "joined": lambda: ConcatDataset([Files(limit=30), Batched(limit=20), Subset(Files(), [3, 2, 1])]),
    "split": lambda: random_split(Files(), [0.7, 0.3], owned())[0],
    "numbered": lambda: Numbered(Batched(), 17),
    "rows": Rows,
    "stack": stacked,
}


def combined(kind, **more):
    options = {"collate_fn": unstacked} if kind == "stack" else {}
    loader, training = DataLoader(COMBINED[kind](), batch_size=8, shuffle=True, **options, **more), Training()
    return training.epoch(loader).epoch(loader).result()


for _kind in COMBINED:
    for _workers in (0, 2):
        case(f"{_kind}-{_workers}", _kind, num_workers=_workers)(combined)


def tensors(workers):
    """Tensors over a mapped file."""
    rows = torch.from_numpy(numpy.load(os.path.join(data(), "rows.npy"), mmap_mode="c"))
    dataset = TensorDataset(torch.arange(len(rows)), rows[:, :64], torch.arange(len(rows)) % CLASSES)
    loader, training = DataLoader(dataset, batch_size=16, shuffle=True, num_workers=workers), Training()
    return training.epoch(loader).epoch(loader).result()


class Stream(IterableDataset):
    def __init__(self, files):
        self.files = files

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for index in range(first, len(self.files), step):
            yield self.files[index]


def stream(workers, **more):
    loader, training = DataLoader(Stream(Files()), batch_size=8, num_workers=workers, **more), Training()
    return training.epoch(loader).epoch(loader, 3).epoch(loader).result()


def validated(workers):
    """Two loaders over one dataset, of which one is for validation."""
    files, training, found = Files(), Training(), []
    parts = [Subset(files, range(0, 96, 2)), Subset(files, range(1, 96, 2))]
    train = DataLoader(parts[0], batch_size=8, shuffle=True, num_workers=workers)
    validation = DataLoader(parts[1], batch_size=16, num_workers=workers)
    for _ in range(2):
        training.epoch(train)
        training.model.eval()
        with torch.no_grad():
            for _, pixels, labels in validation:
                found.append(torch.nn.functional.cross_entropy(training.model(pixels), labels).item().hex())
        training.model.train()
    return {"validation": found, **training.result()}


def zipped(workers):
    loaders = [DataLoader(Files(), batch_size=size, shuffle=True, num_workers=workers) for size in (8, 12)]
    training = Training()
    for pair in zip(*loaders):
        for batch in pair:
            training.step(batch)
    return training.result()


def abandoned(workers):
    """Iterators that are made and dropped, used in turns, and asked after their end."""
    loader, training = DataLoader(Files(), batch_size=8, shuffle=True, num_workers=workers), Training()
    iter(loader)
    first = iter(loader)
    training.step(next(first))
    second = iter(loader)
    training.step(next(second))
    training.step(next(first))
    left = [len(first), len(second)]
    training.epoch(second)
    ends = [next(second, "end"), next(second, "end")]
    return {"left": left, "ends": ends, **training.result()}


for _workers in (0, 2):
    case(f"tensors-{_workers}", _workers)(tensors)
    case(f"stream-{_workers}", _workers)(stream)
    case(f"validated-{_workers}", _workers)(validated)
    case(f"zipped-{_workers}", _workers)(zipped)
    case(f"abandoned-{_workers}", _workers)(abandoned)
case("stream-any-order", 1, in_order=False)(stream)
case("stream-persistent", 2, persistent_workers=True)(stream)

if __name__ == "__main__":
    main()
