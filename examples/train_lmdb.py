#!/usr/bin/env python3
"""Trains a small network on the images of an LMDB of Caffe Datum records.

An ordinary PyTorch script. Records are read in key order with one cursor; with workers, each of
them takes every n-th batch, so that the order is the same for any number of workers. Given the
same database and options it reads the same bytes and ends with the same loss.
"""

import argparse
import sys
import time
import zlib

import lmdb
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

SIDE = 32  # pixels; images are averaged down to SIDE x SIDE


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def parse_datum(data):
    """The pixels (channels, height, width) and the label of a serialised Datum."""
    fields = {}
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            fields[number], at = read_varint(data, at)
        elif kind == 2:
            length, at = read_varint(data, at)
            fields[number] = memoryview(data)[at : at + length]
            at += length
        elif kind == 5:
            at += 4
        elif kind == 1:
            at += 8
        else:
            raise ValueError("not a Datum")
    if fields.get(7):
        raise ValueError("an encoded Datum; this example reads decoded ones")
    shape = fields[1], fields[2], fields[3]
    return np.frombuffer(fields[4], dtype=np.uint8).reshape(shape), fields.get(5, 0)


class Records(IterableDataset):
    """Batches of serialised records, in key order."""

    def __init__(self, path, batch_size, limit):
        self.path = path
        self.batch_size = batch_size
        self.limit = limit

    def __iter__(self):
        worker = get_worker_info()
        mine, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        with lmdb.open(self.path, readonly=True, lock=False) as env, env.begin() as txn:
            count = env.stat()["entries"]
            count = min(count, self.limit) if self.limit else count
            cursor = txn.cursor()
            batch = []
            for index, found in enumerate(iter(cursor.next, False)):
                if index == count:
                    break
                if index // self.batch_size % workers == mine:
                    batch.append(cursor.value())
                if len(batch) == self.batch_size:
                    yield batch
                    batch = []
            if batch:
                yield batch


class Net(nn.Module):
    def __init__(self, channels, width, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.out = nn.Linear(2 * width * (SIDE // 4) ** 2, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.out(x.flatten(1))


def to_tensors(batch):
    pixels, labels = zip(*(parse_datum(record) for record in batch))
    images = torch.from_numpy(np.stack(pixels)).float().div_(255)
    return F.adaptive_avg_pool2d(images, SIDE), torch.tensor(labels)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lmdb", help="folder with data.mdb")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=0, help="records of an epoch, 0 for all")
    parser.add_argument("--workers", type=int, default=0, help="processes that read")
    parser.add_argument("--width", type=int, default=6, help="channels of the first layer")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    data = Records(arguments.lmdb, arguments.batch_size, arguments.limit)
    model = loss = optimizer = None
    records = size = digest = 0
    stall = 0.0
    begin = time.perf_counter()
    for _ in range(arguments.epochs):
        batches = iter(DataLoader(data, batch_size=None, num_workers=arguments.workers))
        while True:
            asked = time.perf_counter()
            batch = next(batches, None)
            stall += time.perf_counter() - asked
            if batch is None:
                break
            for record in batch:
                digest = zlib.crc32(record, digest)
                size += len(record)
            records += len(batch)
            images, labels = to_tensors(batch)
            if model is None:
                model = Net(images.shape[1], arguments.width)
                optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    seconds = time.perf_counter() - begin
    if loss is None:
        sys.exit(f"{arguments.lmdb} has no records")

    print(f"records {records}")
    print(f"bytes {size}")
    print(f"digest {digest:08x}")
    print(f"loss {loss.item()!r}")
    print(f"seconds {seconds:.3f}")
    print(f"throughput {size / seconds / 1e6:.1f} MB/s")
    print(f"stall {stall:.3f}")


if __name__ == "__main__":
    main()
