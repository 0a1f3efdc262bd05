"""Trains on a dataset of image files: any_job.py KIND FOLDER WORKERS [METHOD]. The kinds are those of bench/formats and of
any_odd.py, the method is how workers start. Prints all that the epochs read, in their order, and the state of every
generator after them."""
import hashlib
import os
import random
import sys

import numpy
import torch
from torch.utils.data import DataLoader

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 2, "bench", "formats", "jobs"))
sys.dont_write_bytecode = True
import any_odd  # noqa: E402
from file_datasets import KINDS  # noqa: E402


def states(generator):
    for name, state in (("torch", torch.get_rng_state().numpy()), ("loader", generator.get_state().numpy()),
                        ("numpy", numpy.random.get_state()[1]), ("python", repr(random.getstate()))):
        print(name, hashlib.sha1(state.encode() if isinstance(state, str) else state.tobytes()).hexdigest())


def main():
    kind, folder, workers, method = sys.argv[1], sys.argv[2], int(sys.argv[3]), (*sys.argv[4:], None)[0]
    torch.set_num_threads(1)
    for seed in (torch.manual_seed, numpy.random.seed, random.seed):
        seed(11)
    if kind in any_odd.KINDS:
        os.chdir(folder)
    dataset = any_odd.KINDS[kind]() if kind in any_odd.KINDS else KINDS[kind](folder)
    before = sorted(getattr(dataset, "__dict__", {}))
    generator = torch.Generator()
    loader = DataLoader(dataset, batch_size=10, shuffle=True, num_workers=workers, generator=generator,
                        multiprocessing_context=method if workers else None)
    for epoch in range(2):
        for batch in loader:
            if isinstance(batch, dict):
                batch = [batch["size"], batch["sum"], batch["label"]]
            print(epoch, *[values.tolist() for values in batch])
        states(generator)
    print(len(dataset), sorted(getattr(dataset, "__dict__", {})) == before)


if __name__ == "__main__":
    main()
