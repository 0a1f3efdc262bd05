"""Exceptions in datasets, samplers and collate functions, workers that die, and jobs that do: failures.py END DATA KIND is
such a job."""
import os
import re
import signal
import subprocess
import sys

import torch
from cases import Batched, Files, Training, case, data, expecting, main, seed, states
from torch.utils.data import DataLoader, IterableDataset, Sampler, get_worker_info

BAD = 37


class Own(Exception):
    """An exception that cannot be made of a text."""

    def __init__(self, number, text):
        super().__init__(f"{text} {number}")


def broken(kind):
    """What a sample does instead of being read; in a worker, where that is to die."""
    if kind == "own":
        raise Own(BAD, "of the job's own")
    if kind == "stop":
        raise StopIteration("in a dataset")
    if kind == "missing":
        open(os.path.join(data(), "missing"), "rb")
    if kind == "interrupt":
        raise KeyboardInterrupt("by hand")
    if kind == "exit":
        sys.exit(5)
    if kind == "leave":
        os._exit(3)
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if kind == "term":
        os.kill(os.getpid(), signal.SIGTERM)
    if kind == "sleep":
        signal.pause()  # until it is killed
    raise IndexError(f"no sample {BAD}")


class Breaks(Files):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def __getitem__(self, index):
        if index == BAD:
            broken(self.kind)
        return super().__getitem__(index)


class BreaksTogether(Batched):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def __getitems__(self, indices):
        if BAD in indices:
            broken(self.kind)
        return super().__getitems__(indices)


class BreaksInStream(IterableDataset):
    def __init__(self, kind):
        self.files, self.kind = Files(), kind

    def __iter__(self):
        info = get_worker_info()
        for index in range(info.id if info else 0, len(self.files), info.num_workers if info else 1):
            if index == BAD:
                broken(self.kind)
            yield self.files[index]


class BreaksSampling(Sampler):
    def __iter__(self):
        yield from range(20)
        broken("own")

    def __len__(self):
        return 96


def collate(batch):
    if any(sample[0] == BAD for sample in batch):
        broken("own")
    return torch.utils.data.default_collate(batch)


def setup(number):
    broken("own")


def go_on(loader):
    """Trains until an exception, then two batches more of the same iterator, then of another one."""
    training, result, iterator = Training(), {}, None
    with expecting(result):
        iterator = iter(loader)
        training.epoch(iterator)
    more = []
    for source in (iterator, loader) if iterator is not None else (loader,):
        again = {}
        with expecting(again):
            training.epoch(source, 2)
        more.append(again["raised"])
    return {**result, "more": more, **training.result()}


DATASETS = {"files": Breaks, "getitems": BreaksTogether, "stream": BreaksInStream}


def fails(dataset, kind, **more):
    return go_on(DataLoader(DATASETS[dataset](kind), batch_size=8, **more))


for _dataset in DATASETS:
    for _kind in ("own", "index", "stop", "missing"):
        for _workers in (0, 2):
            case(f"{_dataset}-{_kind}-{_workers}", _dataset, _kind, num_workers=_workers)(fails)
for _kind in ("interrupt", "exit"):
    case(f"files-{_kind}-0", "files", _kind)(fails)
case("persistent", "files", "own", num_workers=2, persistent_workers=True)(fails)
case("spawned", "getitems", "index", num_workers=1, persistent_workers=True, multiprocessing_context="spawn")(fails)


@case("collate-0", 0)
@case("collate-2", 2)
def collating(workers):
    return go_on(DataLoader(Files(), batch_size=8, num_workers=workers, collate_fn=collate))


@case("sampling-0", 0)
@case("sampling-2", 2)
def sampling(workers):
    return go_on(DataLoader(Files(), batch_size=8, num_workers=workers, sampler=BreaksSampling()))


@case("setup", 1)
def setting_up(workers):
    return go_on(DataLoader(Files(), batch_size=8, num_workers=workers, worker_init_fn=setup))


@case("changed")
def changed():
    """A loader's attributes cannot be set once it was made."""
    loader, result = DataLoader(Files(), batch_size=8), {}
    with expecting(result):
        loader.batch_size = 4
    return result


@case("dies-leave", "leave")
@case("dies-kill", "kill")
@case("dies-segv", "segv")
@case("dies-term", "term")
@case("dies-getitems", "kill", BreaksTogether)
def dies(kind, dataset=Breaks):
    """How many batches came before a worker's death depends on time, and with tensors in flight the exception does."""
    result, loader = {}, DataLoader(dataset(kind), batch_size=8, num_workers=2, collate_fn=len)
    with expecting(result):
        for _ in loader:
            pass
    result["raised"] = result["raised"][:len("RuntimeError: DataLoader worker")]
    return {**result, "whole": Training().epoch(DataLoader(Files(), batch_size=8, num_workers=2)).result()}


@case("slow", "sleep")
def slow(kind):
    result, loader = {}, DataLoader(Breaks(kind), batch_size=8, num_workers=1, timeout=5)
    with expecting(result):
        for _ in loader:
            pass
    return {**result, "states": states()}


ENDS = ("own", "interrupt", "exit", "leave", "kill", "segv", "term", "worker")


def ends(kind):
    """How a job ends whose epoch ends in its middle."""
    job = subprocess.run([sys.executable, __file__, "END", data(), kind], capture_output=True, text=True, check=False)
    last = [line for line in job.stderr.splitlines() if line.strip() and not line.startswith("sluice:")][-1:]
    # Which of its threads notices the death of a worker first depends on time.
    return {"status": job.returncode, "printed": job.stdout,
            "said": "" if kind == "worker" else re.sub(r"\d+", "#", "".join(last))}


for _kind in ("own", "interrupt", "exit", "leave", "kill", "segv", "term", "worker"):
    case(f"ends-{_kind}", _kind)(ends)


def end(kind):
    torch.set_num_threads(1)
    seed(3)
    dataset, workers = (Breaks("kill"), 2) if kind == "worker" else (Breaks(kind), 0)
    for batch, (indices, pixels, _) in enumerate(DataLoader(dataset, batch_size=8, num_workers=workers)):
        if kind != "worker":
            print(batch, indices.tolist(), pixels.sum().item().hex(), flush=True)
    print("survived")


if __name__ == "__main__":
    if sys.argv[1] == "END":
        sys.argv = [sys.argv[0], *sys.argv[2:]]
        end(sys.argv[2])
    else:
        main()
