#!/usr/bin/python3
# test: timeout=600 turns
"""Samples that are not read from copies, since threads of their own read them, or a worker leaves them open: their
files are opened ahead and handed over. A job that locks files or renames one meanwhile reads the same bytes."""
import json
import os
import random
import shutil
import subprocess
import sys

import harness
import slowfs_harness
import stage_testing
from harness import claim

FILES, BYTES, EPOCHS, WORKERS = 800, 3000, 3, 2
JOB = """
import fcntl, os, sys, time
sys.path.insert(0, sys.argv[1])
import load_window, torch
folder, kind, what, away = sys.argv[2:]
load_window.WORKERS = %d
class Disturbing(load_window.KINDS[kind]):
    def value(self, index):
        if what == "locks" and index %% 5 == 0:
            with open(self.samples[index][0], "rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
        if what == "computes":
            time.sleep(0.02)
        if what == "pauses":  # as for a checkpoint or a validation: names expire meanwhile
            self.read = getattr(self, "read", 0) + 1
            if self.read %% 150 == 0:
                time.sleep(1.5)
        if what == "renames" and index %% 50 == 0:
            name = os.path.join(away, f"new-{index}")
            with open(name, "w") as file:
                file.write("saved")
            os.rename(name, os.path.join(away, f"saved-{index}"))
        return super().value(index)
class Numbered(load_window.Threads):  # nothing says where its samples are but what the pool's threads open
    def __init__(self, folder):
        self.where = folder
    def __len__(self):
        return %d
    def __getitem__(self, index):
        name = "%%d/0.bin" if what == "deep" else "%%04d.bin"
        self.samples = {index: (os.path.join(self.where, name %% index),)}
        try:
            return self.value(index), 0
        finally:
            del self.samples
load_window.KINDS[kind] = Numbered if what in ("numbered", "deep") else Disturbing
if what == "twice":
    once = load_window.read
    load_window.read = lambda path: once(path) and once(path)
sys.argv = ["load_window", folder, kind, "%d", "3"]
load_window.main()
""" % (WORKERS, FILES, EPOCHS)


class Test:
    def __init__(self, place):
        self.place = place
        self.source = os.path.join(place.work, "source")
        self.away = os.path.join(place.work, "saved")
        os.makedirs(self.away)
        draw = random.Random(5)
        for index in range(FILES):
            folder = os.path.join(self.source, "data", f"class-{index % 4}")
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, f"{index:04d}.bin"), "wb") as file:
                file.write(draw.randbytes(BYTES))

        os.makedirs(os.path.join(self.source, "numbered"))
        for index in range(FILES):
            with open(os.path.join(self.source, "numbered", f"{index:04d}.bin"), "wb") as file:
                file.write(draw.randbytes(BYTES))

        for index in range(FILES):  # as Zarr's chunks
            folder = os.path.join(self.source, "deep", str(index))
            os.makedirs(folder)
            with open(os.path.join(folder, "0.bin"), "wb") as file:
                file.write(draw.randbytes(BYTES))

        # As numpy.save() writes them, which the Python of the tests may lack.
        array = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % BYTES
        head = b"\x93NUMPY\1\0\x76\0" + array.ljust(117).encode() + b"\n"
        for index in range(FILES):
            folder = os.path.join(self.source, "arrays", f"class-{index % 4}")
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, f"{index:04d}.npy"), "wb") as file:
                file.write(head + draw.randbytes(BYTES))

    def run(self, kind, what, library):
        """What the epochs read, the report, and what the job's own processes requested of the mount."""
        report = os.path.join(self.place.work, "report.json")
        remembers = "1" if what == "pauses" else "5"
        with slowfs_harness.Mount(self.place.folder, self.source, "--latency", "4", "--attr-timeout", remembers,
                                  "--entry-timeout", remembers) as mount:
            folder = mount.path(what if what in ("numbered", "deep") else "arrays" if kind == "mmap_mode" else "data")
            command = ["/usr/bin/python3", "-c", JOB, os.path.join(harness.TOP, "bench/reader"), folder, kind, what,
                       self.away]
            job = self.place.start(command, library, stdin=subprocess.PIPE, **stage_testing.by_default(report),
                                   SLUICE_MEMORY="64M", OMP_NUM_THREADS="1")
            out, err = job.communicate("\n" * EPOCHS, timeout=120)
            claim(job.returncode == 0, f"{kind}: {err}")
            asked = [one for one in mount.stats()["processes"].values() if one["command"] != "sluice-optimize"]
            own = {request: sum(one[request] for one in asked) for request in ("open", "lookup")}
            harness.drive.end_optimizer(self.place.sockets)
        read = [(epoch["bytes"], epoch["digest"]) for epoch in json.loads(out)["passes"]]
        return read, harness.take_report(report) if library else {}, own

    def check(self, kind, what, least):
        # Computing does not change what is read.
        plain, _, asked = self.run(kind, "nothing" if what == "computes" else what, None)
        under, found, own = self.run(kind, what, harness.LIBRARY)
        said = f"{kind}, {what}: {found['opened_ahead']} opened ahead, {own} of the job's own, {asked} without"
        print(said, file=sys.stderr)
        claim(under == plain, f"{kind}, {what}: {under}, and {plain} without")
        claim(found["opened_ahead"] >= least, f"{said}: {found}")
        claim(least == 0 or own["open"] <= asked["open"] - least, said)
        # Names of files that are held have been looked up again by the time that a job goes on.
        claim(what != "pauses" or own["lookup"] <= asked["lookup"] / 2, said)


def test(place):
    stage_testing.need_slow_mounts()
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False).returncode:
        harness.skip("no PyTorch")
    shutil.rmtree(os.path.join(place.work, "source"), ignore_errors=True)
    tests = Test(place)
    # The first epochs find out that copies are of no use; how soon, and how many files are taken before they have
    # been open for too long, depends on what else the machine does.
    # In "deep" a sample takes less than half of its storage time once its folder is known, though it is opened in place
    # of its copy.
    # In "computes" an epoch takes longer than a file is held: what was read ahead at its begin is opened again in
    # time. A copy gives "mmap_mode" each header, which is no use of the copy.
    cases = (("thread_pool", "nothing", FILES // 8), ("kept_open", "nothing", FILES // 8),
             ("thread_pool", "twice", FILES // 8), ("thread_pool", "numbered", FILES // 8),
             ("thread_pool", "deep", FILES // 2),
             ("thread_pool", "pauses", FILES // 8), ("mmap_mode", "nothing", FILES // 2),
             ("thread_pool", "computes", FILES), ("thread_pool", "locks", 0), ("thread_pool", "renames", 0))
    for kind, what, least in harness.in_turn(cases, 4):
        tests.check(kind, what, least)


if __name__ == "__main__":
    harness.main(test)
