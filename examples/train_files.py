#!/usr/bin/env python3
"""Trains a classifier on a folder of small files, one folder for each class.

An ordinary PyTorch script: DataLoader, DistributedSampler, DistributedDataParallel. It runs as one
process, under torchrun, and as tasks of a Slurm step. Given the same files, options and number of
processes it reads the same bytes and ends with the same loss.
"""

import argparse
import os
import zlib

import torch
from torch import distributed, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Files(Dataset):
    """Sample: how often each byte occurs in a file, the file's class, and its checksum."""

    def __init__(self, root):
        self.classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
        self.files = [(os.path.join(root, name, file), label) for label, name in enumerate(self.classes)
                      for file in sorted(os.listdir(os.path.join(root, name)))]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path, label = self.files[index]
        with open(path, "rb") as file:
            data = file.read()
        counts = torch.bincount(torch.frombuffer(bytearray(data), dtype=torch.uint8).long(), minlength=256)
        return counts / len(data), label, zlib.crc32(data)


def place():
    """Rank and number of processes, by torchrun or Slurm."""
    rank = os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0"))
    world = os.environ.get("WORLD_SIZE", os.environ.get("SLURM_NTASKS", "1"))
    return int(rank), int(world)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="folder with a folder of files for each class")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2, help="processes that read, for each that trains")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    rank, world = place()
    if world > 1:
        distributed.init_process_group("gloo", rank=rank, world_size=world)
    data = Files(arguments.data)
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=True, seed=1)
    loader = DataLoader(data, arguments.batch_size, sampler=sampler, num_workers=arguments.workers)
    model = nn.Linear(256, len(data.classes))
    if world > 1:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    totals = torch.zeros(2, dtype=torch.int64)  # samples, sum of their checksums
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        for counts, labels, checksums in loader:
            loss = cross_entropy(model(counts), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            totals += torch.tensor([len(labels), int(checksums.sum())])
    if world > 1:
        distributed.all_reduce(totals)
        distributed.destroy_process_group()
    if rank == 0:
        print(f"samples {totals[0]}")
        print(f"checksums {totals[1]}")
        print(f"loss {loss.item()!r}")


if __name__ == "__main__":
    main()
