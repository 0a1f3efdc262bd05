"""accelerate: its sharding samplers and dispatchers, accumulation, epochs that begin in the middle. With one process, or
several by torchrun."""
import os

import torch
from accelerate import Accelerator, DataLoaderConfiguration, skip_first_batches
from accelerate.state import AcceleratorState, GradientState
from accelerate.utils import set_seed
from cases import Batched, Files, Training, case, main, network, owned, seed, work
from torch.utils.data import DataLoader, IterableDataset, WeightedRandomSampler

RANK = int(os.environ.get("RANK", "0"))


class Stream(IterableDataset):
    def __init__(self):
        self.files = Files()

    def __iter__(self):
        return (self.files[index] for index in range(len(self.files)))


class Accelerated(Training):
    """Training as accelerate's examples do it."""

    def __init__(self, accelerator, model, optimizer):
        super().__init__(model)
        self.accelerator, self.optimizer = accelerator, optimizer

    def step(self, batch):
        indices, pixels, labels = batch
        self.note(indices, pixels, labels)
        with self.accelerator.accumulate(self.model):
            loss = torch.nn.functional.cross_entropy(self.model(pixels), labels)
            self.accelerator.backward(loss)
            self.optimizer.step()
            self.optimizer.zero_grad()
        self.losses.append(loss.item().hex())


DATASETS = {"files": Files, "getitems": Batched, "stream": Stream}


def prepared(dataset="files", accumulate=1, precision="no", sampler=None, loader=None, **settings):
    AcceleratorState._reset_state()  # each case has settings of its own
    GradientState._reset_state()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=accumulate, mixed_precision=precision,
                              dataloader_config=DataLoaderConfiguration(**settings))
    torch.manual_seed(1)
    model = network()
    seed(7 + RANK)
    data, options = DATASETS[dataset](), {"batch_size": 6, **(loader or {})}
    if sampler == "weighted":
        options["sampler"] = WeightedRandomSampler([1.0 + i for i in range(len(data))], 72, generator=owned())
    elif sampler == "own":
        options.update(shuffle=True, generator=owned(4))
    elif dataset != "stream":
        options["shuffle"] = True
    batches = DataLoader(data, **options)
    made = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model, made, batches = accelerator.prepare(model, made, batches)
    return accelerator, Accelerated(accelerator, model, made), batches


def trained(**settings):
    accelerator, training, batches = prepared(**settings)
    for _ in range(2):
        training.epoch(batches)
    gathered = accelerator.gather_for_metrics(torch.tensor(training.indices[-3:]))
    return {"length": len(batches) if hasattr(batches.dataset, "__len__") else None, "gathered": gathered.tolist(),
            **training.result()}


def resumed(**settings):
    """A state saved in mid-epoch, and the rest of that epoch."""
    accelerator, training, batches = prepared(**settings)
    training.epoch(batches, 3)
    accelerator.save_state(os.path.join(work(), "state"))
    accelerator.wait_for_everyone()
    training.epoch(skip_first_batches(batches, 2))
    accelerator.load_state(os.path.join(work(), "state"))
    result = training.epoch(skip_first_batches(batches, 3)).epoch(batches).result()
    accelerator.wait_for_everyone()
    return result


def stateful(**settings):
    _, training, batches = prepared(use_stateful_dataloader=True, **settings)
    training.epoch(batches, 3)
    state = batches.state_dict()
    _, other, again = prepared(use_stateful_dataloader=True, **settings)
    again.load_state_dict(state)
    return {"first": training.result(), "second": other.epoch(again).epoch(again).result()}


case("shuffled")(trained)
case("seedable", use_seedable_sampler=True)(trained)
case("seedable-data", use_seedable_sampler=True, data_seed=5, sampler="own")(trained)
case("weighted", sampler="weighted")(trained)
case("split", split_batches=True, loader={"batch_size": 8})(trained)
case("uneven", even_batches=False, loader={"drop_last": True, "batch_size": 7})(trained)
case("workers", use_seedable_sampler=True, loader={"num_workers": 2})(trained)
case("persistent", loader={"num_workers": 2, "persistent_workers": True})(trained)
case("getitems", dataset="getitems", use_seedable_sampler=True)(trained)
case("dispatched", dispatch_batches=True)(trained)
case("stream", dataset="stream")(trained)
case("stream-dispatched", dataset="stream", dispatch_batches=True)(trained)
case("accumulated", accumulate=4, use_seedable_sampler=True)(trained)
case("bf16", precision="bf16")(trained)
case("resumed", use_seedable_sampler=True)(resumed)
case("resumed-workers", loader={"num_workers": 2})(resumed)
case("stateful", use_seedable_sampler=True)(stateful)
case("stateful-workers", loader={"num_workers": 2})(stateful)

if __name__ == "__main__":
    main(before=lambda: set_seed(3), suffix=lambda: f" rank {RANK}")
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
