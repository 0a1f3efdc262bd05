"""torchdata.nodes: pipelines whose stages are threads or processes."""
import torch
from cases import Plain, Training, case, digest, main, owned
from torch.utils.data import RandomSampler, SequentialSampler, default_collate
from torchdata.nodes import (Batcher, IterableWrapper, Loader, Mapper, MapStyleWrapper, MultiNodeWeightedSampler,
                             ParallelMapper, Prefetcher, SamplerWrapper, Unbatcher)


class Read:
    """What maps an index to a sample; a process can be sent it."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __call__(self, index):
        return self.dataset[index]

    def batch(self, indices):
        return default_collate([self.dataset[index] for index in indices])


def indices(dataset, shuffle=True):
    return SamplerWrapper(RandomSampler(dataset, generator=owned()) if shuffle else SequentialSampler(dataset))


def wrapped(**_):
    dataset = Plain()
    return Batcher(MapStyleWrapper(dataset, RandomSampler(dataset, generator=owned())), 8)


def mapped(**more):
    dataset = Plain()
    return Batcher(ParallelMapper(indices(dataset), Read(dataset), **more), 8, drop_last=False)


def whole_batches(**more):
    """As torchdata's own DataLoader of nodes: batches of indices, which workers read."""
    dataset = Plain()
    return Prefetcher(ParallelMapper(Batcher(indices(dataset), 8), Read(dataset).batch, **more), 2)


def chained(**_):
    dataset = Plain()
    node = Mapper(IterableWrapper(range(90, 2, -1)), Read(dataset))
    return Batcher(Unbatcher(Batcher(Prefetcher(node, 4), 5)), 7)


def mixed(**_):
    parts = [Mapper(indices(Plain(), shuffle), Read(Plain())) for shuffle in (True, False)]
    return Batcher(MultiNodeWeightedSampler(dict(zip("ab", parts)), {"a": 0.7, "b": 0.3}, seed=4), 8)


def pipeline(make, ordered=True, **more):
    """An epoch, a state in mid-epoch, the rest, and another loader that resumes there."""
    def batches(loader, most=None):
        found = []
        for number, batch in enumerate(loader, 1):
            found.append(default_collate(batch) if isinstance(batch[0], tuple) else batch)
            if number == most:
                break
        return found

    loader, training = Loader(make(**more)), Training()
    passes = [batches(loader), batches(loader, 3)]
    if not ordered:  # what was begun when the epoch was left is in no order
        return {"samples": digest(sorted(torch.cat([batch[0] for batch in passes[0]]).tolist())), **training.result()}
    state = loader.state_dict()
    other = Loader(make(**more))
    other.load_state_dict(state)
    passes += [batches(other), batches(other)]
    for one in passes:
        for batch in one:
            training.step(batch)
    return {"kept": digest(state), **training.result()}


case("wrapped", wrapped)(pipeline)
case("chained", chained)(pipeline)
case("mixed", mixed)(pipeline)
for _workers in (0, 1, 4):
    case(f"threads-{_workers}", mapped, num_workers=_workers, method="thread")(pipeline)
    case(f"batches-{_workers}", whole_batches, num_workers=_workers, method="thread")(pipeline)
case("threads-any-order", mapped, False, num_workers=4, method="thread", in_order=False)(pipeline)
case("few-at-a-time", mapped, num_workers=3, method="thread", max_concurrent=3, snapshot_frequency=2)(pipeline)
case("processes", mapped, num_workers=2, method="process", multiprocessing_context="fork")(pipeline)
case("forkserver", whole_batches, num_workers=1, method="process", multiprocessing_context="forkserver")(pipeline)

if __name__ == "__main__":
    main()
