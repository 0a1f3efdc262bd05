#!/usr/bin/python3
# test: timeout=300
"""SLUICE_CACHE_DIR: what was fetched from a slow mount is read from packs the next time, in this run and in
later ones; never instead of a file that changed, and never where a pack is damaged."""
import fcntl
import glob
import json
import os
import shutil
import subprocess
import sys
import time

import harness
import stage_testing
from harness import claim, in_time
from stage_testing import Ground

COUNT, BYTES, EPOCHS = 600, 16000, 3
# argv: the folder. Prints what its files hold, in the order of each epoch.
JOB = stage_testing.hashed_files(COUNT) + f"""
class Computed(Files):
    def __getitem__(self, index):
        hashlib.sha256(bytes(1 << 19)).digest()  # what a job computes
        return super().__getitem__(index)

torch.manual_seed(3)
for epoch in range({EPOCHS}):
    for batch in DataLoader(Computed(sys.argv[1]), batch_size=16, shuffle=True, num_workers=2):
        print(epoch, *batch, flush=True)
"""


def brief(found):
    return {name: value for name, value in found.items() if isinstance(value, int) and value}


class Packs:
    def __init__(self, place, ground):
        self.place, self.ground = place, ground
        self.source, self.folder = os.path.join(ground.source, "set"), ground.folder("set")
        self.cache = os.path.join(place.work, "cache")
        os.mkdir(self.cache)
        os.mkdir(self.source)
        for number in range(COUNT):
            self.write(number, b"first")
        self.settle()
        self.script = os.path.join(place.work, "job.py")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(JOB)

    def write(self, number, word):
        with open(os.path.join(self.source, str(number)), "wb") as file:
            file.write(b"%s %d " % (word, number) * (BYTES // len(b"%s %d " % (word, number))))

    def settle(self):
        """Files that changed a moment ago are not packed: they may change again at the same time."""
        newest = max(os.stat(os.path.join(self.source, str(number))).st_ctime for number in range(COUNT))
        harness.until(lambda: time.time() > newest + 4, 30, "the files are old enough")

    def files(self):
        return sorted(glob.glob(os.path.join(self.cache, "sluice-packs-*", "*.pack")))

    def verify(self):
        return subprocess.run([os.path.join(harness.BUILD, "sluice"), "chunks", "verify", self.cache],
                              capture_output=True, text=True, check=False)

    def left(self):
        """Whether no optimizer holds the packs' folder."""
        for path in glob.glob(os.path.join(self.cache, "*", "lock")):
            with open(path, "rb") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
        return True

    def run(self, what, **settings):
        """The job plain and under the library, which must be the same; its report, and what was said."""
        argv = [sys.executable, "-W", "ignore", self.script, self.folder]
        path = os.path.join(self.place.work, "report")
        plain = self.place.run(argv, library=None, timeout=100)
        claim(plain.returncode == 0, plain.stderr)
        under = self.place.run(argv, timeout=100,
                               **{**dict(SLUICE_REPORT=path, SLUICE_MEMORY="2M", SLUICE_LINGER="60",
                                         SLUICE_CACHE_DIR=self.cache, SLUICE_DATASET=None, SLUICE_PLACES="off",
                                         SLUICE_CHECKPOINT=None, SLUICE_DISTANCE=None), **settings})
        harness.same(plain, under, what)
        # What is still to be packed is written when no job reads any more, and then the folder is left.
        harness.until(self.left, 30, "the packs are left to others")
        found, stage = {}, (harness.status(self.place) or {}).get("stage") or {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as text:
                found = json.load(text)
            os.unlink(path)
        print(f"{what}: {found.get('packed_files')} files from packs; {stage.get('packs')}")
        self.restart()
        return found, stage.get("packs"), under.stderr

    def restart(self):
        harness.drive.end_optimizer(self.place.sockets)


def check_rereads(packs):
    found, counts, said = packs.run("first run")
    in_time(found["packed_files"] > COUNT // 2, f"later epochs did not come from packs: {brief(found)}")
    claim("MB came from packs" in said, said)
    claim(counts["samples"] > COUNT // 2 and counts["damaged_packs"] == 0, f"{counts}")
    claim(packs.files(), "there are no packs")
    done = packs.verify()
    claim(done.returncode == 0, f"{done.stdout}{done.stderr}")
    found, counts, _ = packs.run("second run")
    in_time(found["packed_files"] > (EPOCHS - 1) * COUNT, f"packs of an earlier run were not used: {brief(found)}")


def check_changed(packs):
    """run() compares with a plain run."""
    for number in range(0, COUNT, 3):
        packs.write(number, b"other")
    packs.run("changed files")
    packs.settle()
    packs.run("changed files, packed anew")
    found, _, _ = packs.run("changed files, from packs")
    in_time(found["packed_files"] > (EPOCHS - 1) * COUNT, f"what changed was not packed again: {brief(found)}")


def check_damaged(packs):
    def flip(path):
        # In every sample but the first: some are there in an older version, which is never read.
        with open(path, "r+b") as file:
            for place in range(64 << 10, os.path.getsize(path), BYTES // 2):
                file.seek(place)
                byte = file.read(1)
                file.seek(place)
                file.write(bytes([byte[0] ^ 1]))

    def cut(path):
        os.truncate(path, os.path.getsize(path) // 2)

    def replace(path):
        with open(path, "wb") as file:
            file.write(b"something else " * 100000)

    for spoil in flip, cut, replace:
        claim(packs.files(), "there are no packs")
        for path in packs.files():
            spoil(path)
        done = packs.verify()
        claim(done.returncode == 1 and done.stdout, f"{spoil.__name__}: not found: {done}")
        _, counts, _ = packs.run(f"damaged packs ({spoil.__name__})")
        claim(counts["damaged_packs"] > 0, f"{spoil.__name__}: {counts}")
        packs.run("made again")
        done = packs.verify()
        claim(done.returncode == 0, f"{spoil.__name__}: a bad one is there still: {done.stdout}")


def check_room(packs):
    """No room, no rights, not there: one line, and the job continues."""
    shutil.rmtree(packs.cache)
    os.mkdir(packs.cache)
    found, counts, _ = packs.run("little room", SLUICE_PACKS="3M")
    claim(0 < counts["bytes"] <= 3 << 20, f"more than may be, or nothing: {counts}")
    found, counts, _ = packs.run("none wanted", SLUICE_PACKS="0")
    claim(found["packed_files"] == 0 and counts is None, f"{found} {counts}")
    found, counts, _ = packs.run("not there", SLUICE_CACHE_DIR=packs.cache + "/missing")
    claim(found["packed_files"] == 0 and counts is None, f"{found} {counts}")
    if os.geteuid() == 0 and not subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", packs.cache],
                                                capture_output=True, check=False).returncode:
        try:
            _, counts, _ = packs.run("full disk")
            claim(counts is not None and not counts["adding"], f"{counts}")
        finally:
            subprocess.run(["umount", "-l", packs.cache], check=True)


def test(place):
    stage_testing.need_slow_mounts()
    harness.need_modules("torch")
    if tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) < (6, 8):
        harness.skip("files of FUSE mounts are not packed before Linux 6.8")
    with Ground(place, "mount", "1") as ground:
        packs = Packs(place, ground)
        harness.repeated(place, check_rereads, packs)
        harness.repeated(place, check_changed, packs)
        check_damaged(packs)
        check_room(packs)


if __name__ == "__main__":
    harness.main(test)
