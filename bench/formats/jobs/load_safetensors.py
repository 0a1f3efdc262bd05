"""Loads safetensors files one after the other: load_safetensors.py ORDER FILE... ORDER is header, name,
shuffled, threads, or rank/ranks, for a process of a tensor-parallel job, which reads its rows of every tensor; the
latter may be followed by an order: 1/4:name."""
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from safetensors import safe_open
from timed import Load

order, paths = sys.argv[1], sys.argv[2:]
THREADS = 8
part, _, order = order.rpartition(":") if ":" in order or "/" not in order else (order, "", "header")
rank, ranks = (int(word) for word in part.split("/")) if part else (0, 1)


def rows_of(file, name):
    """This rank's part of a tensor; what cannot be split every rank has whole."""
    part = file.get_slice(name)
    shape = part.get_shape()
    if len(shape) < 2:
        return part[:]
    return part[shape[0] * rank // ranks:shape[0] * (rank + 1) // ranks]


def load_by_threads(load, file, names):
    lock = threading.Lock()

    def one(name):
        tensor = file.get_tensor(name)
        total, size = int(tensor.view(-1).view(torch.int64).sum()), tensor.numel() * tensor.element_size()
        with lock:
            load.add(size, total)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(one, names))


load = Load()
for path in paths:
    with safe_open(path, framework="pt") as opened:
        names = list(opened.offset_keys())
        if order == "name":
            names.sort()
        elif order == "shuffled":
            random.Random(7).shuffle(names)
        if order == "threads":
            load_by_threads(load, opened, names)
        else:
            for name in names:
                load.tensor(rows_of(opened, name) if ranks > 1 else opened.get_tensor(name))
load.end()
