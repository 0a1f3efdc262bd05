"""What the tests of the stage share: a folder of sample files, on the disk or on a slow mount, and
victims that run over it plain and under the library."""
import os
import random
import shutil
import tempfile

import harness
import slowfs_harness
from harness import claim


def make_files(folder, seen):
    """The files that tests/victims/stage_*.c are about, in `folder`, which victims see as `seen`. The
    same each time but for their inodes and times."""
    draw = random.Random(3)
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("sub", "deep/er", "far"):
        os.makedirs(os.path.join(folder, name))
    jail = os.path.join(folder, "jail" + seen)
    os.makedirs(jail)
    sizes = {"f0": 0, "f1": 1, "f2": 5000, "f3": 300000, "sub/g0": 700, "deep/er/h0": 4096,
             "far/target": 9000, "mark": 10}
    for name, size in sizes.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(draw.randbytes(size))
    with open(os.path.join(jail, "f2"), "w", encoding="ascii") as file:
        file.write("in the jail")
    with open(os.path.join(folder, "sparse"), "wb") as file:
        for place in (0, 1 << 20):
            file.seek(place)
            file.write(draw.randbytes(100000))
        file.truncate(3 << 20)
    for name, target in (("link", "f3"), ("linklink", "link"), ("dirlink", "sub"), ("loop", "loop"),
                         ("dangling", "nothing"), ("farlink", "far/target")):
        os.symlink(target, os.path.join(folder, name))
    os.link(os.path.join(folder, "f3"), os.path.join(folder, "hard"))
    try:
        os.setxattr(os.path.join(folder, "f3"), "user.colour", b"blue")
    except OSError:
        pass


class Ground:
    """Where a victim's files are. `path` is what it sees, `source` the files themselves."""

    def __init__(self, place, name, latency=None, *options):
        self.place, self.name = place, name
        self.source = tempfile.mkdtemp(prefix="f-", dir=place.work)
        self.mount = None
        if latency is not None:
            work = tempfile.mkdtemp(prefix="w-", dir=place.work)
            self.mount = slowfs_harness.Mount(work, self.source, "--latency", latency, *options)
        self.path = self.mount.point if self.mount else self.source

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        # The optimizer watches folders of the mount.
        harness.drive.end_optimizer(self.place.sockets)
        if self.mount:
            self.mount.__exit__(kind, value, trace)

    def folder(self, name="data"):
        return os.path.join(self.path, name)

    def make(self, name="data"):
        make_files(os.path.join(self.source, name), self.folder(name))
        return self.folder(name)


def slow_mounts():
    """Whether slow mounts can be made here."""
    return os.path.exists("/dev/fuse") and shutil.which("fusermount3") is not None


def need_slow_mounts():
    """Skips the test where there are none."""
    if not slow_mounts():
        harness.skip("no FUSE here")


def hashed_files(count):
    """How a job begins whose dataset is the files 0 to `count` of the folder that it is given: a sample is a file's hash."""
    return f"""
import hashlib, os, sys
import torch
from torch.utils.data import DataLoader, Dataset

class Files(Dataset):
    def __init__(self, folder):
        self.samples = [(os.path.join(folder, str(number)), 0) for number in range({count})]
    def __len__(self):
        return len(self.samples)
    def __getitem__(self, index):
        with open(self.samples[index][0], "rb") as data:
            return hashlib.sha256(data.read()).hexdigest()
"""


def epoch_of_files(paths, batch, workers):
    """A job that reads an epoch of the files `paths`, an expression of the folder `above`, and prints their hash."""
    return f"""
import hashlib, os, sys
import torch
from torch.utils.data import DataLoader, Dataset

class Files(Dataset):
    def __init__(self, above):
        self.samples = {paths}
    def __len__(self):
        return len(self.samples)
    def __getitem__(self, index):
        with open(self.samples[index], "rb") as data:
            return hashlib.sha256(data.read()).hexdigest()

torch.manual_seed(5)
whole = hashlib.sha256()
for batch in DataLoader(Files(sys.argv[1]), batch_size={batch}, shuffle=True, num_workers={workers}, collate_fn=list):
    whole.update(repr(batch).encode())
print(whole.hexdigest())
"""


def batches_of_one_call(epochs, pause_s):
    """A job whose dataset reads each batch with one call; decoding one takes `pause_s`. Prints the bytes read."""
    return f"""
import os, sys, time
from torch.utils.data import DataLoader, Dataset

class Files(Dataset):
    def __init__(self, folder):
        self.files = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name[0] != ".")
    def __len__(self):
        return len(self.files)
    def __getitem__(self, index):
        with open(self.files[index], "rb") as file:
            return len(file.read())
    def __getitems__(self, indices):
        time.sleep({pause_s})
        return [self[index] for index in indices]

loader = DataLoader(Files(sys.argv[1]), batch_size=10, shuffle=True)
print(sum(int(sizes.sum()) for epoch in range({epochs}) for sizes in loader))
"""


SETTINGS = {"SLUICE_STAGE": "always", "SLUICE_STALE": "1000", "SLUICE_DATASET": None,
            "SLUICE_CHECKPOINT": None, "SLUICE_DISTANCE": None, "SLUICE_MEMORY": "64M"}


def by_default(report):
    """Settings under which a job runs as for its user, from a first run on, and leaves its report."""
    return {"SLUICE_CHECKPOINT": None, "SLUICE_DISTANCE": None, "SLUICE_DATASET": None, "SLUICE_PLACES": "off",
            "SLUICE_REPORT": report}


def victim(name, *arguments):
    return [os.path.join(harness.BUILD, "victims", name), *arguments]


def cases_of(place, name):
    done = place.run(victim(name, "--list"), library=None)
    claim(done.returncode == 0, done.stderr)
    return done.stdout.split()


def first_difference(plain, under):
    for number, (one, other) in enumerate(zip(plain.splitlines(), under.splitlines()), 1):
        if one != other:
            return f"line {number}\n  plain: {one[:400]}\n  under: {other[:400]}"
    return f"{len(plain.splitlines())} lines and {len(under.splitlines())}"


class Tally:
    """Runs every case, says which differ, and fails at the end."""

    def __init__(self):
        self.bad, self.count = [], 0

    def compare(self, what, plain, under):
        self.count += 1
        other = [li for li in under.stderr.splitlines() if not li.startswith("sluice:")]
        if plain.returncode not in (0, 1):
            self.fail(what, f"the plain run ended with {plain.returncode}: {plain.stderr}")
        elif under.returncode != plain.returncode or other != plain.stderr.splitlines():
            self.fail(what, f"status {under.returncode}, plain {plain.returncode}: {under.stderr}"
                            f"{first_difference(plain.stdout, under.stdout)}")
        elif under.stdout != plain.stdout:
            self.fail(what, first_difference(plain.stdout, under.stdout))

    def fail(self, what, why):
        self.bad.append(what)
        print(f"{what}: differs: {why}", flush=True)

    def end(self):
        claim(not self.bad, f"{len(self.bad)} of {self.count} differ: {' '.join(self.bad)}")
        print(f"{self.count} cases are the same")
