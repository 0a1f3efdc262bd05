#!/usr/bin/python3
# test: timeout=300
"""SLUICE_POLICY=pool and brand: samples come from chunks that `sluice chunks make` has made, each once an epoch and with
its own bytes, where files change, chunks are damaged or lack, and the optimizer is killed; and in the job's own order
where nothing allows another."""
import hashlib
import json
import os
import signal
import subprocess
import time

import harness
import stage_testing
from harness import claim
from stage_testing import Ground

SLUICE = os.path.join(harness.BUILD, "sluice")
COUNT, BYTES, EPOCHS, EACH = 800, 4000, 4, 16
JOB = stage_testing.hashed_files(COUNT) + f"""
class Numbered(Files):
    def __getitem__(self, index):
        return index, super().__getitem__(index)

torch.manual_seed(3)
loader = DataLoader(Numbered(sys.argv[1]), batch_size=16, shuffle=True, num_workers=2, collate_fn=list)
out = open(sys.argv[2], "w")
for epoch in range({EPOCHS}):
    for number, batch in enumerate(loader):
        print(epoch, batch, file=out)
        if number == 20 and epoch == 1:
            print("half", file=sys.stderr, flush=True)
            sys.stdin.readline()
    print("end", epoch, file=sys.stderr, flush=True)
    sys.stdin.readline()
"""


def content(number, word=b"first"):
    text = b"%s %d " % (word, number)
    return text * (BYTES // len(text))


class Chunks:
    def __init__(self, place, ground):
        self.place, self.ground = place, ground
        self.source, self.folder = os.path.join(ground.source, "set"), ground.folder("set")
        self.script = os.path.join(place.work, "job.py")
        os.mkdir(self.source)
        for number in range(COUNT):
            self.write(number, b"first")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(JOB)
        self.cache = os.path.join(place.work, "cache")
        self.make(self.cache)

    def make(self, cache):
        os.makedirs(cache, exist_ok=True)
        made = subprocess.run([SLUICE, "chunks", "make", "--cache-dir", cache, "--samples", str(EACH), self.folder],
                              capture_output=True, text=True, timeout=120, check=False)
        claim(made.returncode == 0, made.stderr)

    def chunk(self, number, cache=None):
        return os.path.join(cache or self.cache, f"sluice-chunks-{os.geteuid()}", f"{number:08x}.pack")

    def write(self, number, word):
        with open(os.path.join(self.source, str(number)), "wb") as file:
            file.write(content(number, word))

    def job(self, library, settings, half=None, between=None):
        """What was read, by epoch: [(index, digest)...], what was said, and requests for bytes of the mount by epoch."""
        found = os.path.join(self.place.work, "found")
        job = self.place.start(["/usr/bin/python3", "-W", "ignore", self.script, self.folder, found], library,
                               stdin=subprocess.PIPE, **settings)
        self.drop_cached()
        reads, said = [self.reads()], []
        self.asked = {"read": 0, "lookup": 0}  # by the optimizer
        for line in job.stderr:
            if line == "half\n":
                if half:
                    half()
            elif line.startswith("end "):
                reads.append(self.reads())
                pids = self.place.optimizers()
                self.asked = self.ground.mount.account(pids[0]) if pids else self.asked
                if between:
                    between(int(line.split()[1]))
                self.drop_cached()
            else:
                said += [line] if "the job waited" not in line else []  # the line at its end
                continue
            job.stdin.write("\n")
            job.stdin.flush()
        job.communicate(timeout=60)
        claim(job.returncode == 0, "".join(said))
        epochs = [[] for _ in range(EPOCHS)]
        with open(found, encoding="utf-8") as text:
            for line in text:
                epoch, batch = line.split(" ", 1)
                epochs[int(epoch)] += json.loads(batch.replace("(", "[").replace(")", "]").replace("'", '"'))
        return epochs, "".join(said), [after - before for before, after in zip(reads, reads[1:])]

    def drop_cached(self):
        """Nothing of the mount is in the page cache."""
        with open(os.path.join(self.ground.mount.point, ".slowfs-drop"), "rb"):
            pass

    def reads(self):
        return self.ground.mount.stats()["totals"]["read"]

    def run(self, what, policy="pool", half=None, between=None, words=None, **more):
        """Under the library: every epoch has each sample once, with the bytes of the word that it has then."""
        settings = {**stage_testing.SETTINGS, "SLUICE_POLICY": policy, "SLUICE_SUBSTITUTE": "any", "SLUICE_LINGER": "60",
                    "SLUICE_CACHE_DIR": self.cache, "SLUICE_MEMORY": "3M", "SLUICE_PLACES": "off", **more}
        epochs, said, reads = self.job(harness.LIBRARY, settings, half, between)
        status = harness.status(self.place) or {}
        harness.drive.end_optimizer(self.place.sockets)
        for epoch, samples in enumerate(epochs):
            claim(sorted(index for index, _ in samples) == list(range(COUNT)), f"{what}: not each sample once")
            for index, digest in samples:
                word = words(epoch, index) if words else b"first"
                claim(digest == hashlib.sha256(content(index, word)).hexdigest(),
                      f"{what}: epoch {epoch}, {index}: other bytes")
        print(f"{what}: reads of the mount {reads}, the optimizer's {self.asked}; {status.get('chunks')}")
        return epochs, said, reads, status.get("chunks")


def check_chunks(chunks):
    for policy in "pool", "brand":
        epochs, said, _, view = chunks.run(policy, policy)
        claim(not said, said)
        claim(view["damaged"] == 0 and view["chunks"] == COUNT // EACH, f"{view}")
        job = view["jobs"][0]
        claim(job["deliveries"] == EPOCHS * COUNT and job["alone"] == 0, f"{view}")
        claim(job["substituted"] > COUNT, f"nothing was substituted: {view}")
        claim(COUNT // EACH <= view["reads"] <= job["loads"], f"chunks were not read whole: {view}")
        # A worker on a busy machine reads what has not come yet by itself: what counts is the optimizer's, in all
        # epochs. It fetches what has left memory before its turn: a fifth of the samples, which should be none.
        most = EPOCHS * COUNT / 12
        claim(chunks.asked["read"] < most, f"{policy}: samples were read from their own storage: {chunks.asked}")
        claim(chunks.asked["lookup"] < most, f"originals were asked for one by one, not by a listing: {chunks.asked}")
        if policy == "pool":
            claim(job["loads"] <= EPOCHS * COUNT // EACH, f"a chunk was read twice in an epoch: {view}")
        orders = [[index for index, _ in samples] for samples in epochs]
        claim(orders[1] != orders[2], "two epochs have the same order")


def check_on_the_storage_itself(chunks):
    """Chunks beside the samples: a request a chunk, not one a sample."""
    cache = os.path.join(chunks.ground.source, "cache")
    chunks.make(cache)
    _, said, _, view = chunks.run("on the mount", SLUICE_CACHE_DIR=chunks.ground.folder("cache"))
    claim(not said, said)
    claim(chunks.asked["read"] < EPOCHS * COUNT / 4, f"more requests than chunks: {chunks.asked} {view}")


def check_own_order(chunks):
    """The order is the job's where nothing lets another be delivered, or the samples are not all in chunks."""
    plain, _, _ = chunks.job(None, {})
    hidden = chunks.chunk(3)
    empty = os.path.join(chunks.place.work, "empty")
    os.makedirs(empty, exist_ok=True)
    for what, settings, expected in (("not allowed", {"SLUICE_SUBSTITUTE": None}, "without SLUICE_SUBSTITUTE=any"),
                                     ("no folder", {"SLUICE_CACHE_DIR": None}, "without SLUICE_CACHE_DIR"),
                                     ("no chunks", {"SLUICE_CACHE_DIR": empty}, "there are no chunks"),
                                     ("not all", {}, f"{EACH} of {COUNT} samples are files in no chunk")):
        if what == "not all":
            os.rename(hidden, hidden + ".away")
        log = os.path.join(chunks.place.sockets, "s.log")
        if os.path.exists(log):
            os.unlink(log)
        epochs, _, _, _ = chunks.run(what, **settings)
        claim(epochs == plain, f"{what}: {stage_testing.first_difference(str(plain), str(epochs))}")
        with open(log, encoding="utf-8") as text:
            lines = [line for line in text if expected in line]
        claim(len(lines) == 1, f"{what}: said {len(lines)} times: {lines}")
    os.rename(hidden + ".away", hidden)


def check_damage(chunks):
    """Chunks that cannot be read or have other bytes cost a read of the originals."""
    for number in range(0, COUNT // EACH, 4):
        with open(chunks.chunk(number), "r+b") as file:
            file.seek(-BYTES // 2, os.SEEK_END)
            file.write(b"?")
    chunks.run("damaged bytes")

    def cut(epoch):
        if epoch == 1:
            for number in range(1, COUNT // EACH, 4):
                os.truncate(chunks.chunk(number), 3000)
    chunks.run("chunks that are cut short", between=cut)
    subprocess.run([SLUICE, "chunks", "rm", chunks.cache], check=True, capture_output=True)
    chunks.make(chunks.cache)


def check_changes(chunks):
    """Files that change are read as they are, once that must have been noticed."""
    def change(epoch):
        if epoch == 1:
            for number in range(0, COUNT, 3):
                chunks.write(number, b"other")
            changed = time.time()
            harness.until(lambda: time.time() > changed + 2.5, 30, "attributes of before are out of date")
    chunks.run("changed files", between=change, SLUICE_STALE="1",
               words=lambda epoch, index: b"other" if epoch > 1 and index % 3 == 0 else b"first")
    for number in range(0, COUNT, 3):
        chunks.write(number, b"first")
    chunks.make(chunks.cache)


def check_killed(chunks):
    def kill():
        pids = chunks.place.optimizers()
        claim(len(pids) == 1, f"{pids}")
        os.kill(pids[0], signal.SIGKILL)
    chunks.run("a killed optimizer", half=kill)


CHECKS = (check_chunks, check_on_the_storage_itself, check_own_order, check_damage, check_changes, check_killed)


def test(place):
    stage_testing.need_slow_mounts()
    harness.need_modules("torch", python="/usr/bin/python3")
    with Ground(place, "mount", "1") as ground:
        chunks = Chunks(place, ground)
        for check in CHECKS:
            check(chunks)


if __name__ == "__main__":
    harness.main(test)
