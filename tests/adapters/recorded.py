"""What the adapter's tests share: jobs with the recorder in the library's place, and its record."""
import collections
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get("B", "build"))
RECORDER = os.path.join(BUILD, "tests-adapters", "recorder.so")
ADAPTER = os.path.join(TOP, "adapters", "pytorch")
PYTHON = "/usr/bin/python3"
WHOLE, TENTATIVE = 1, 2

sys.path.insert(0, os.path.join(TOP, "tests", "integration"))
sys.dont_write_bytecode = True
import harness  # noqa: E402
from harness import Failure, claim  # noqa: E402,F401


def run(arguments, record=None, adapter=ADAPTER, cwd=None, timeout=100, python=PYTHON, **settings):
    """A Python job; with `record`, a file's name, under the recorder and the adapter."""
    values = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C.UTF-8",
              "PYTHONDONTWRITEBYTECODE": "1"}
    if record:
        values.update(LD_PRELOAD=RECORDER, RECORDER_FILE=record, SLUICE_LOG="debug")
        if adapter:
            values["RECORDER_ADAPTER"] = adapter
    values.update(settings)
    try:
        return subprocess.run([python, *arguments], env=values, cwd=cwd, capture_output=True,
                              text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise Failure(f"still running after {timeout} s: {arguments}") from None


def notes(done):
    """The adapter's lines, and standard error without them."""
    lines = done.stderr.splitlines(True)
    own = [line for line in lines if line.startswith("sluice: ")]
    return own, "".join(line for line in lines if line not in own)


def skip_without_torch():
    if run(["-c", "import torch"]).returncode != 0:
        harness.skip("this Python has no PyTorch")


class Dataset:
    """All calls about one dataset. order[epoch]: what is known of it at the end; whole: epochs
    whose end was published; published[epoch]: (first, count, reads begun before) of each call;
    tentative[epoch]: what was published tentatively."""

    def __init__(self, number, samples, name):
        self.number, self.samples, self.name = number, samples, name
        self.order, self.whole = collections.defaultdict(list), set()
        self.published, self.tentative = collections.defaultdict(list), {}
        self.begun, self.open, self.files, self.parts = [], collections.Counter(), {}, {}


class Record:
    """A recorder's file, read."""

    def __init__(self, path):
        self.datasets, self.pids = {}, set()
        with open(path, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                pid, what, rest = line.rstrip("\n").split(" ", 2)
                self.pids.add(pid)
                getattr(self, what)(pid, rest)

    def of_case(self, case):
        """The dataset whose attribute `case` has this value; None if there were no calls about it."""
        found = [d for d in self.datasets.values() if re.search(f" case={case}[ (]", d.name)]
        return found[0] if found else None

    def dataset(self, _pid, rest):
        number, samples, name = rest.split(" ", 2)
        known = self.datasets.setdefault(int(number), Dataset(int(number), int(samples), name))
        claim((known.name, known.samples) == (name, int(samples)), f"two datasets are {number}")

    def order(self, _pid, rest):
        number, epoch, first, count, flags, *indices = map(int, rest.split())
        data = self.datasets[number]
        claim(len(indices) == count, "the recorder's line is cut")
        claim(all(i < data.samples for i in indices), f"an index beyond {data.name}")
        if flags & TENTATIVE:
            claim(first == 0 and epoch not in data.published, f"epoch {epoch} of {data.name} is not tentative")
            data.tentative[epoch] = indices
            return
        data.published[epoch].append((first, count, len(data.begun)))
        claim(first <= len(data.order[epoch]), f"a gap in the order of {data.name}")
        data.order[epoch][first:] = indices
        (data.whole.add if flags & WHOLE else data.whole.discard)(epoch)

    def begin(self, pid, rest):
        number, index = map(int, rest.split())
        self.datasets[number].begun.append(index)
        self.datasets[number].open[pid, index] += 1

    def end(self, pid, rest):
        number, index = map(int, rest.split())
        claim(self.datasets[number].open[pid, index] > 0, f"end without begin: {index}")
        self.datasets[number].open[pid, index] -= 1

    def parts(self, _pid, rest):
        head, *paths = rest.split("\t")
        number, index = map(int, head.split())
        self.datasets[number].parts[index] = paths

    def files(self, _pid, rest):
        head, *paths = rest.split("\t")
        number, first, count = map(int, head.split())
        claim(len(paths) == count, "not as many paths as declared")
        self.datasets[number].files.update(enumerate(paths, first))
