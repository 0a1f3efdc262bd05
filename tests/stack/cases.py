"""What the training scripts of this folder share: datasets over small files, a small network, and cases. These are
ordinary jobs, which know nothing of Sluice: JOB.py DATA WORK [CASE...] prints one line of JSON for each case, all that
it saw; JOB.py DATA --make makes what it needs, and prints the cases' names."""
import contextlib
import faulthandler
import gc
import hashlib
import json
import os
import pathlib
import random
import signal
import sys
import zlib

import numpy
import torch
from torch.utils.data import Dataset

# A job that does not end is asked by this where it is (tests/integration/stuck.py).
faulthandler.register(signal.SIGUSR2, all_threads=True)
PIXELS, CLASSES = 64, 4
_cases = {}


def case(name, *arguments, **named):
    """Adds a case: calls the function with the arguments, and prints what it returns, a dict by quantity."""
    def add(function):
        assert name not in _cases, name
        _cases[name] = lambda: function(*arguments, **named)
        return function
    return add


def data():
    return sys.argv[1]


def work():
    """A folder that is empty when the job begins."""
    return sys.argv[2]


def seed(number):
    torch.manual_seed(number)
    random.seed(number)
    numpy.random.seed(number % (1 << 32))


def main(before=None, suffix=lambda: "", make=lambda: None):
    """`before` is called first; `suffix` returns what is added to a case's name when it is printed; `make` adds to the
    data folder what only this job reads."""
    if sys.argv[2] == "--make":
        make()
        print("\n".join(_cases))
        return
    torch.set_num_threads(1)
    if before is not None:
        before()
    gc.freeze()
    for name in sys.argv[3:] or _cases:
        seed(zlib.crc32(name.encode()))
        show(name + suffix(), _cases[name]())
        gc.collect()  # else a forked worker collects iterators that a case has left, and warns that they are its parent's


def show(name, quantities):
    sys.stdout.flush()
    os.write(1, (json.dumps({"case": name, **quantities}) + "\n").encode())  # with one call: ranks share a pipe


def digest(value):
    """Of anything made of tensors, arrays and plain values, exactly."""
    found = hashlib.sha256()
    _digest(found, value)
    return found.hexdigest()[:20]


def _digest(found, value):
    if isinstance(value, torch.Tensor):
        value = value.detach().contiguous()
        found.update(f"{value.dtype} {tuple(value.shape)}".encode())
        found.update(value.reshape(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b"")
    elif isinstance(value, numpy.ndarray):
        found.update(f"{value.dtype} {value.shape}".encode() + value.tobytes())
    elif isinstance(value, dict):
        for key, inner in value.items():
            found.update(repr(key).encode())
            _digest(found, inner)
    elif isinstance(value, (list, tuple)):
        found.update(f"{type(value).__name__} {len(value)}".encode())
        for inner in value:
            _digest(found, inner)
    else:
        found.update(repr(value).encode())


def states(*generators):
    """Of every generator that there is, and of these."""
    return [digest(torch.get_rng_state()), torch.initial_seed(), digest(random.getstate()),
            digest(numpy.random.get_state()), *[digest(generator.get_state()) for generator in generators]]


def owned(number=5):
    generator = torch.Generator()
    generator.manual_seed(number)
    return generator


def raised(error):
    """An exception's class, and its message without what differs between runs: the traceback of a worker, which has
    another process's frames, and process numbers."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    text = lines[0] + (" ... " + lines[-1] if len(lines) > 1 else "") if lines else ""
    words = ["#" if word.strip("(),.:").isdigit() else word for word in text.split()]
    return f"{type(error).__name__}: {' '.join(words)}"


def augmented(raw, index):
    """PIXELS numbers of a file's bytes, with noise from every generator."""
    pixels = torch.frombuffer(bytearray(raw[:PIXELS]), dtype=torch.uint8).float() / 255
    return pixels + 0.01 * torch.rand(PIXELS) + random.random() / 100 + float(numpy.random.rand()) / 100


class Files(Dataset):
    """Files of a folder for each class, as ImageFolder lists them."""

    def __init__(self, root=None, limit=None):
        root = root or os.path.join(data(), "images")
        listed = [(os.path.join(root, name, file), label) for label, name in enumerate(sorted(os.listdir(root)))
                  for file in sorted(os.listdir(os.path.join(root, name)))]
        self.samples = listed[:limit]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        with open(path, "rb") as file:
            return int(index), augmented(file.read(), index), label


class Plain(Files):
    """Without noise, which depends on who reads how many samples before."""

    def __getitem__(self, index):
        path, label = self.samples[index]
        with open(path, "rb") as file:
            return int(index), torch.frombuffer(bytearray(file.read()[:PIXELS]), dtype=torch.uint8).float(), label


class Batched(Files):
    """Reads a batch with one call."""

    def __getitems__(self, indices):
        return [self[index] for index in indices]


class Paths(Dataset):
    """The same files, listed under another name and by pathlib."""

    def __init__(self, limit=None):
        self.root = pathlib.Path(data()) / "images"
        self.files = sorted(self.root.glob("*/*"))[:limit]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path = self.files[index]
        return int(index), augmented(path.read_bytes(), index), int(path.parent.name[-1])


def network():
    return torch.nn.Sequential(torch.nn.Linear(PIXELS, 16), torch.nn.ReLU(), torch.nn.Dropout(0.1),
                               torch.nn.Linear(16, CLASSES))


class Training:
    """A network in training, and what it has seen: indices in order, the bytes of all batches, losses."""

    def __init__(self, model=None):
        self.model = network() if model is None else model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.indices, self.losses, self.seen = [], [], hashlib.sha256()

    def note(self, indices, pixels, labels):
        self.indices += indices.reshape(-1).tolist()
        self.seen.update(digest([indices, pixels, labels]).encode())

    def step(self, batch):
        indices, pixels, labels = batch
        if pixels.dim() == 1:  # a loader that does not batch
            pixels, labels = pixels[None], torch.as_tensor([labels])
        indices = torch.as_tensor(indices)
        self.note(indices, pixels, labels)
        loss = torch.nn.functional.cross_entropy(self.model(pixels), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item().hex())

    def epoch(self, loader, most=None):
        """Trains an epoch, or `most` batches of it."""
        for number, batch in enumerate(loader, 1):
            self.step(batch)
            if number == most:
                break
        return self

    def result(self, *generators):
        return {"indices": self.indices, "bytes": self.seen.hexdigest()[:20], "losses": digest(self.losses),
                "count": len(self.losses), "weights": digest(list(self.model.parameters())),
                "states": states(*generators)}


@contextlib.contextmanager
def expecting(result):
    """Notes in the dict `result` which exception the block raises."""
    result["raised"] = None
    try:
        yield
    except BaseException as error:
        result["raised"] = raised(error)
    gc.collect()
