"""Ranks that torchrun starts, with gloo: DistributedDataParallel, sharded parameters, distributed checkpoints. Each rank
prints its own cases."""
import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from cases import Batched, Files, Training, case, digest, main, network, work
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def rank():
    return int(os.environ["RANK"])


def replicated():
    """All ranks' networks begin alike."""
    torch.manual_seed(1)
    model = DistributedDataParallel(network())
    torch.manual_seed(10 + rank())
    return model


def loader_of(dataset=Files, **more):
    data = dataset()
    options = {"seed": 3, **{name: more.pop(name) for name in ("shuffle", "drop_last") if name in more}}
    sampler = DistributedSampler(data, **options)
    return DataLoader(data, batch_size=6, sampler=sampler, **more)


def trained(epochs=3, again=False, accumulate=1, **more):
    loader, training = loader_of(**more), Accumulating(replicated(), accumulate)
    for epoch in range(epochs):
        if not again:
            loader.sampler.set_epoch(epoch)
        training.epoch(loader)
    return training.result()


class Accumulating(Training):
    """Several batches for a step; gradients are exchanged for the last of them."""

    def __init__(self, model, count):
        super().__init__(model)
        self.count, self.taken = count, 0

    def step(self, batch):
        if self.count == 1:
            return super().step(batch)
        self.taken += 1
        indices, pixels, labels = batch
        self.note(indices, pixels, labels)
        last = self.taken % self.count == 0
        self.model.require_backward_grad_sync = last
        loss = torch.nn.functional.cross_entropy(self.model(pixels), labels) / self.count
        loss.backward()
        self.losses.append(loss.item().hex())
        if last:
            self.optimizer.step()
            self.optimizer.zero_grad()


for _workers in (0, 2):
    case(f"ddp-{_workers}", num_workers=_workers)(trained)
    case(f"getitems-{_workers}", dataset=Batched, num_workers=_workers, drop_last=True)(trained)
case("ddp-persistent", num_workers=1, persistent_workers=True)(trained)
case("in-order", num_workers=0, shuffle=False, epochs=2)(trained)
case("same-epoch", again=True)(trained)
case("accumulated", accumulate=3)(trained)


@case("uneven")
def uneven():
    """Ranks with different numbers of batches."""
    loader, training = DataLoader(Files(limit=60 + 12 * rank()), batch_size=6, shuffle=True), Training(replicated())
    with training.model.join():
        training.epoch(loader)
    return training.result()


@case("sharded")
def sharded():
    """FSDP, with a checkpoint that is read back into another network."""
    torch.manual_seed(1)
    models = [network(), network()]
    for model in models:
        fully_shard(model)
    loader, first = loader_of(num_workers=1), Training(models[0])
    first.epoch(loader)
    weights, states = get_state_dict(first.model, first.optimizer)
    dcp.save({"model": weights, "optimizer": states}, checkpoint_id=os.path.join(work(), "sharded"))
    second = Training(models[1])
    weights, states = get_state_dict(second.model, second.optimizer)
    dcp.load({"model": weights, "optimizer": states}, checkpoint_id=os.path.join(work(), "sharded"))
    set_state_dict(second.model, second.optimizer, model_state_dict=weights, optim_state_dict=states)
    loader.sampler.set_epoch(1)
    return {"first": whole(first), "second": whole(second.epoch(loader))}


def whole(training):
    """A result without weights, which are shards: all of them together."""
    full = {name: value.full_tensor() for name, value in training.model.state_dict().items()}
    training.model = torch.nn.Module()
    return {"whole": digest(full), **training.result()}


@case("checkpoint")
def checkpoint():
    """A distributed checkpoint in mid-epoch, from which another network goes on."""
    loader, training = loader_of(num_workers=2), Training(replicated())
    training.epoch(loader, 2)
    path, state = os.path.join(work(), "checkpoint"), {"model": training.model.state_dict()}
    dcp.save(state, checkpoint_id=path)
    other = Training(replicated())
    state = {"model": other.model.state_dict()}
    dcp.load(state, checkpoint_id=path)
    other.model.load_state_dict(state["model"])
    return {"saved": digest(state), **other.epoch(loader).result()}


if __name__ == "__main__":
    main(before=lambda: dist.init_process_group("gloo"), suffix=lambda: f" rank {rank()}")
    if dist.is_initialized():
        dist.destroy_process_group()
