"""A rank that dies in mid-epoch: torchrun starts all of them again, which resume from the last checkpoint."""
import os

import torch
import torch.distributed as dist
from cases import Files, Training, case, main, network, work
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

DIES = (1, 3)  # epoch and batch


def rank():
    return int(os.environ["RANK"])


@case("restart", 2)
def run(workers):
    path, data = os.path.join(work(), "checkpoint"), Files()
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    torch.manual_seed(1)
    training = Training(DistributedDataParallel(network()))
    sampler, begin = DistributedSampler(data, seed=3), 0
    loader = DataLoader(data, batch_size=6, sampler=sampler, num_workers=workers)
    if os.path.exists(path):
        state = torch.load(path)
        training.model.load_state_dict(state["model"])
        begin = state["epoch"]
    for epoch in range(begin, 3):
        torch.manual_seed(100 * epoch + rank())
        sampler.set_epoch(epoch)
        for number, batch in enumerate(loader):
            if attempt == 0 and rank() == 1 and (epoch, number) == DIES:
                os._exit(7)
            training.step(batch)
        if rank() == 0:
            torch.save({"model": training.model.state_dict(), "epoch": epoch + 1}, path + ".new")
            os.rename(path + ".new", path)
        dist.barrier()
    return {"attempt": attempt, "begun": begin, **training.result()}


if __name__ == "__main__":
    main(before=lambda: dist.init_process_group("gloo"), suffix=lambda: f" rank {rank()}")
    if dist.is_initialized():
        dist.destroy_process_group()
