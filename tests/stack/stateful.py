"""torchdata's StatefulDataLoader: states in mid-epoch, and loaders that resume from them."""
import torch
from cases import Batched, Files, Training, augmented, case, digest, main, owned, work
from torch.utils.data import IterableDataset, RandomSampler, Sampler, SubsetRandomSampler, get_worker_info
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler


class Resumable(Sampler):
    """A stateful sampler of the job's own."""

    def __init__(self, size):
        self.size, self.at = size, 0

    def __iter__(self):
        while self.at < self.size:
            self.at += 1
            yield (self.at * 7) % self.size
        self.at = 0

    def __len__(self):
        return self.size

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Counting(Files):
    """A dataset with a state."""

    def __init__(self):
        super().__init__()
        self.reads = 0

    def __getitem__(self, index):
        self.reads += 1
        return super().__getitem__(index)

    def state_dict(self):
        return {"reads": self.reads}

    def load_state_dict(self, state):
        self.reads = state["reads"]


class Stream(IterableDataset):
    """Resumes by itself, or, without a state, by being read again."""

    def __init__(self, stateful):
        self.files, self.at = Files(), 0
        if stateful:
            self.state_dict = lambda: {"at": self.at}
            self.load_state_dict = self.resume

    def resume(self, state):
        self.at = state["at"]

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        while self.at < len(self.files) // step:
            self.at += 1
            path, label = self.files.samples[first + (self.at - 1) * step]
            with open(path, "rb") as file:
                yield first + (self.at - 1) * step, augmented(file.read(), 0), label
        self.at = 0


SAMPLERS = {
    "shuffle": lambda d: {"shuffle": True},
    "own": lambda d: {"shuffle": True, "generator": owned()},
    "sequential": lambda d: {},
    "torch": lambda d: {"sampler": RandomSampler(d, generator=owned(4))},
    "subset": lambda d: {"sampler": SubsetRandomSampler(range(4, 90), owned(3))},
    "rank": lambda d: {"sampler": StatefulDistributedSampler(d, 2, 1, seed=3)},
    "resumable": lambda d: {"sampler": Resumable(len(d))},
    "one": lambda d: {"shuffle": True, "batch_size": None},
    "drop": lambda d: {"shuffle": True, "batch_size": 7, "drop_last": True},
}
DATASETS = {"files": Files, "getitems": Batched, "counting": Counting, "stream": lambda: Stream(True),
            "again": lambda: Stream(False)}


def loader_of(dataset, sampler, **more):
    data = DATASETS[dataset]()
    return StatefulDataLoader(data, **{"batch_size": 8, **SAMPLERS[sampler](data), **more})


def resumed(dataset, sampler, steps, **more):
    """Leaves the first and the second epoch after `steps` batches, resumes there, and trains another epoch."""
    first, training, found = loader_of(dataset, sampler, **more), Training(), []
    for epoch in (0, 1):
        if hasattr(first.sampler, "set_epoch"):
            first.sampler.set_epoch(epoch)
        if steps:
            training.epoch(first, steps)
        state = first.state_dict()
        found.append(digest(state))
        second = loader_of(dataset, sampler, **more)
        second.load_state_dict(state)
        if hasattr(second.sampler, "set_epoch"):
            second.sampler.set_epoch(epoch)
        training.epoch(second)
        training.epoch(first)
        training.epoch(second, 2)
        found.append(digest(second.state_dict()))
    return {"kept": found, **training.result()}


for _sampler in SAMPLERS:
    for _workers in (0, 2):
        case(f"{_sampler}-{_workers}", "files", _sampler, 3, num_workers=_workers)(resumed)
for _steps in (0, 1, 6, 100):
    for _workers in (0, 2):
        case(f"after-{_steps}-{_workers}", "files", "shuffle", _steps, num_workers=_workers)(resumed)
for _dataset in ("getitems", "counting"):
    for _workers in (0, 2):
        case(f"{_dataset}-{_workers}", _dataset, "own", 2, num_workers=_workers)(resumed)
for _dataset in ("stream", "again"):
    for _workers in (0, 1, 2):
        case(f"{_dataset}-{_workers}", _dataset, "sequential", 2, num_workers=_workers)(resumed)
for _every in (0, 2, 3, 5):
    case(f"every-{_every}", "files", "shuffle", 3, num_workers=2, snapshot_every_n_steps=_every)(resumed)
case("persistent", "files", "own", 3, num_workers=2, persistent_workers=True)(resumed)
case("spawn", "counting", "shuffle", 2, num_workers=1, persistent_workers=True, multiprocessing_context="spawn")(resumed)
case("forkserver", "files", "rank", 2, num_workers=1, persistent_workers=True,
     multiprocessing_context="forkserver")(resumed)


@case("in-turns-0", 0)
@case("in-turns-2", 2)
def in_turns(workers):
    """Two loaders, one of which has its state taken before its first batch and resumes its own."""
    loaders, training, found = [loader_of("files", "own", num_workers=workers) for _ in range(2)], Training(), []
    found.append(digest(loaders[0].state_dict()))
    iterators = [iter(loader) for loader in loaders]
    for _ in range(3):
        for iterator in iterators:
            training.step(next(iterator))
    state = loaders[0].state_dict()
    training.epoch(loaders[1], 2)
    loaders[0].load_state_dict(state)
    training.epoch(loaders[0])
    training.epoch(loaders[0])
    return {"kept": [*found, digest(state)], **training.result()}


@case("saved", 2)
def saved(workers):
    """The state goes through a file."""
    path, first, training = f"{work()}/state", loader_of("files", "shuffle", num_workers=workers), Training()
    training.epoch(first, 5)
    torch.save({"loader": first.state_dict(), "model": training.model.state_dict()}, path)
    del first
    second, state = loader_of("files", "shuffle", num_workers=workers), torch.load(path, weights_only=False)
    second.load_state_dict(state["loader"])
    training.model.load_state_dict(state["model"])
    return training.epoch(second).epoch(second).result()


if __name__ == "__main__":
    main()
