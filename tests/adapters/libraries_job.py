"""Loaders of torchdata and accelerate: libraries_job.py FOLDER RESULT. Writes, as JSON, the indices of each pass by case;
each case has a dataset of its own, whose attribute `case` says which."""
import json
import os
import sys

import torch
from accelerate import skip_first_batches
from accelerate.data_loader import BatchSamplerShard, SeedableRandomSampler, prepare_data_loader
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler, SubsetRandomSampler
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler


class Files(Dataset):
    def __init__(self, case):
        self.case, self.root = case, sys.argv[1]
        self.samples = [(os.path.join(self.root, name), 0) for name in sorted(os.listdir(self.root))]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        with open(self.samples[index][0], "rb") as file:
            file.read()
        return int(index)


def owned(seed=5):
    generator = torch.Generator()
    generator.manual_seed(seed)
    return generator


def drain(loader, most=None):
    found = []
    for number, batch in enumerate(loader, 1):
        found += batch.reshape(-1).tolist() if isinstance(batch, torch.Tensor) else [batch]
        if number == most:
            break
    return found


STATEFUL = {
    "shuffle": lambda d: {"shuffle": True},
    "own": lambda d: {"shuffle": True, "generator": owned()},
    "drop": lambda d: {"shuffle": True, "drop_last": True},
    "one": lambda d: {"shuffle": True, "batch_size": None},
    "sequential": lambda d: {},
    "sequential_one": lambda d: {"batch_size": None},
    "torch": lambda d: {"sampler": RandomSampler(d, generator=owned())},
    "torch_shared": lambda d: {"sampler": RandomSampler(d)},
    "torch_batches": lambda d: {"batch_sampler": BatchSampler(RandomSampler(d), 6, False), "batch_size": 1},
    "subset": lambda d: {"sampler": SubsetRandomSampler(range(3, 45))},
    "rank": lambda d: {"sampler": StatefulDistributedSampler(d, 2, 1, seed=3)},
}


def stateful(case, kind, workers):
    def make(name):
        data = Files(name)
        return StatefulDataLoader(data, **{"batch_size": 6, "num_workers": workers, **STATEFUL[kind](data)})

    first, steps = make(case), 17 if kind in ("one", "sequential_one") else 3
    yield case, [drain(first), drain(first, steps)]
    second = make(case + "_resumed")
    second.load_state_dict(first.state_dict())
    yield case + "_resumed", [drain(second), drain(second)]


def seedable(data, **more):
    return SeedableRandomSampler(data, data_seed=11, **more)


def sharded(case, process, **more):
    data = Files(case)
    batches = BatchSamplerShard(BatchSampler(seedable(data), 6, more.pop("drop_last", False)), 2, process, **more)
    loader = DataLoader(data, batch_sampler=batches)
    yield case, [drain(loader), drain(loader)]


def prepared(case, workers):
    def make(name):
        return prepare_data_loader(DataLoader(Files(name), batch_size=6, shuffle=True, num_workers=workers),
                                   use_seedable_sampler=True, put_on_device=False)

    loader = make(case)
    yield case, [drain(loader), drain(loader), drain(loader, 2)]
    yield case + "_skipped", [drain(skip_first_batches(make(case + "_skipped"), 2))]


def cases():
    for kind in STATEFUL:
        for workers in (0, 2):
            yield from stateful(f"{kind}_{workers}", kind, workers)
    for process in (0, 1):
        yield from sharded(f"shard_{process}", process)
        yield from sharded(f"shard_split_{process}", process, split_batches=True)
        yield from sharded(f"shard_uneven_{process}", process, even_batches=False)
        yield from sharded(f"shard_drop_{process}", process, drop_last=True)
    for workers in (0, 2):
        yield from prepared(f"prepared_{workers}", workers)
    data = Files("replacement")
    loader = DataLoader(data, batch_size=6, sampler=seedable(data, replacement=True, num_samples=70))
    yield "replacement", [drain(loader), drain(loader)]
    data = Files("shard_in_order")
    loader = DataLoader(data, batch_sampler=BatchSamplerShard(BatchSampler(SequentialSampler(data), 6, False), 2, 1))
    yield "shard_in_order", [drain(loader)]


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with open(sys.argv[2], "w", encoding="ascii") as out:
        json.dump(dict(cases()), out)


if __name__ == "__main__":
    main()
