#!/usr/bin/python3
# test: timeout=300
"""SLUICE_POLICY=lcache: what leaves memory is written to a log on a disk in the order of the next epoch, and read from
there by whole chunks; the same bytes as plain where files change, where the disk is full or returns other bytes,
where the next order is not known, and where there is no folder."""
import hashlib
import json
import os
import subprocess
import time

import harness
import stage_testing
from harness import claim, in_time
from stage_testing import Ground

COUNT, BYTES, EPOCHS = 800, 16000, 5
# argv: the folder, whether the next epoch's order can be known, and a file for what its files hold, epoch by epoch.
JOB = stage_testing.hashed_files(COUNT) + f"""
class Numbered(Files):
    def __getitem__(self, index):
        return index, super().__getitem__(index)

torch.manual_seed(3)
generator = torch.Generator().manual_seed(5) if sys.argv[2] == "known" else None
loader = DataLoader(Numbered(sys.argv[1]), batch_size=16, shuffle=True, num_workers=2, generator=generator, collate_fn=list)
out = open(sys.argv[3], "w")
for epoch in range({EPOCHS}):
    for batch in loader:
        print(epoch, batch, file=out)
    if generator is None:
        torch.rand(1000)  # as a training step does: more than is foreseen
    print("end", epoch, file=sys.stderr, flush=True)
    sys.stdin.readline()
"""


class Logs:
    def __init__(self, place, ground):
        self.place, self.ground = place, ground
        self.source, self.folder = os.path.join(ground.source, "set"), ground.folder("set")
        self.cache = os.path.join(place.work, "cache")
        self.script = os.path.join(place.work, "job.py")
        for folder in self.cache, self.source:
            os.mkdir(folder)
        for number in range(COUNT):
            self.write(number, b"first")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(JOB)

    def write(self, number, word):
        with open(os.path.join(self.source, str(number)), "wb") as file:
            file.write(b"%s %d " % (word, number) * (BYTES // len(b"%s %d " % (word, number))))

    def settle(self):
        """Files that changed a moment ago are not written: they may change again at the same time."""
        newest = max(os.stat(os.path.join(self.source, str(number))).st_ctime for number in range(COUNT))
        harness.until(lambda: time.time() > newest + 4, 30, "the files are old enough")

    def epochs(self, library, order, between, settings):
        """A run that stops after each epoch, calls between(epoch), and goes on: its output, what it said, and what was
        read of the mount in each epoch, as shares of the dataset."""
        found = os.path.join(self.place.work, "found")
        argv = ["/usr/bin/python3", "-W", "ignore", self.script, self.folder, order, found]
        job = self.place.start(argv, library, stdin=subprocess.PIPE, **settings)
        shares, said, last = [], [], self.ground.mount.stats()["totals"]["read_bytes"]
        for line in job.stderr:
            if not line.startswith("end "):
                said.append(line)
                continue
            now = self.ground.mount.stats()["totals"]["read_bytes"]
            shares.append((now - last) / (COUNT * BYTES))
            between(len(shares) - 1)
            last = self.ground.mount.stats()["totals"]["read_bytes"]
            job.stdin.write("\n")
            job.stdin.flush()
        job.communicate(timeout=60)
        claim(job.returncode == 0, "".join(said))
        with open(found, encoding="utf-8") as text:
            return text.read(), "".join(said), shares

    def run(self, what, order="known", between=None, **more):
        """The job plain and under the library, which must be the same: what was said, the optimizer's log, shares."""
        self.settle()
        settings = {**stage_testing.SETTINGS, "SLUICE_POLICY": "lcache", "SLUICE_CACHE_DIR": self.cache,
                    "SLUICE_MEMORY": "3M", "SLUICE_PLACES": "off", "SLUICE_LINGER": "60", **more}
        under, said, shares = self.epochs(harness.LIBRARY, order, between or (lambda epoch: None), settings)
        log = ((harness.status(self.place) or {}).get("stage") or {}).get("log")
        harness.drive.end_optimizer(self.place.sockets)
        print(f"{what}: of the dataset {', '.join(f'{share:.2f}' for share in shares)} from the mount; {log}")
        if between is None:  # else the plain run would see other files at other times
            plain, _, _ = self.epochs(None, order, lambda epoch: None, {})
            claim(under == plain, f"{what}: {stage_testing.first_difference(plain, under)}")
        return under, said, log, shares


def check_known(logs):
    _, _, log, shares = logs.run("known orders")
    # The one after the last is ahead, too.
    claim(log["predicted_epochs"] == EPOCHS, f"the second epoch's order was not expected: {log}")
    in_time(max(shares[1:]) < 0.2, f"later epochs were read from the mount: {shares}")
    claim(log["written_files"] >= (EPOCHS - 1) * COUNT, f"what stayed in memory is in no log: {log}")
    claim(log["found_files"] > 2 * COUNT, f"{log}")
    claim(log["chunk_reads"] > 0 and log["lone_reads"] < COUNT, f"no chunks were read: {log}")
    claim(not os.listdir(logs.cache), "something is left in the folder")


def check_unknown(logs):
    _, _, log, shares = logs.run("unknown orders", order="unknown")
    claim(log["predicted_epochs"] == 0, f"{log}")
    claim(log["written_files"] < 2 * COUNT, f"it is written again for orders that do not come: {log}")
    in_time(max(shares[2:]) < 0.2, f"later epochs were read from the mount: {shares}")


def check_partial(logs):
    """A log that holds a part."""
    _, _, log, shares = logs.run("half of the dataset", SLUICE_PACKS=str(COUNT * BYTES // 2))
    claim(log["used_bytes"] <= COUNT * BYTES // 2, f"more than it may take: {log}")
    claim(max(shares[3:]) < 0.8, f"nothing came from the log: {shares}")


def check_changed(logs):
    """What changes between two epochs is read as it is now, once that must have been noticed."""
    def change(epoch):
        if epoch == 2:
            for number in range(0, COUNT, 3):
                logs.write(number, b"other")
            changed = time.time()
            harness.until(lambda: time.time() > changed + 2.5, 30, "attributes of before are out of date")
    under, _, _, _ = logs.run("changed files", between=change, SLUICE_STALE="1")
    for line in under.splitlines():
        epoch, batch = line.split(" ", 1)
        for number, digest in json.loads(batch.replace("(", "[").replace(")", "]").replace("'", '"')):
            word = b"other" if int(epoch) > 2 and number % 3 == 0 else b"first"
            claim(digest == digest_of(word, number), f"epoch {epoch}: file {number} is not {word}")
    for number in range(0, COUNT, 3):
        logs.write(number, b"first")


def digest_of(word, number):
    text = b"%s %d " % (word, number)
    return hashlib.sha256(text * (BYTES // len(text))).hexdigest()


def check_full(logs):
    """A disk without room: one line, and the job goes on."""
    small = os.path.join(logs.place.work, "small")
    os.mkdir(small)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2M", "tmpfs", small], check=False).returncode == 0
    if not mounted:
        print("full disk: no mount can be made here")
        return
    try:
        _, said, _, _ = logs.run("full disk", SLUICE_CACHE_DIR=small, SLUICE_LOG="warn")
    finally:
        subprocess.run(["umount", "-l", small], check=True)
    print(said)


def check_no_folder(logs):
    for folder in "", os.path.join(logs.place.work, "none"):
        logs.run(f"folder '{os.path.basename(folder)}'", SLUICE_CACHE_DIR=folder or None)


CHECKS = (check_known, check_unknown, check_partial, check_changed, check_full, check_no_folder)


def test(place):
    stage_testing.need_slow_mounts()
    harness.need_modules("torch", python="/usr/bin/python3")
    with Ground(place, "mount", "1") as ground:
        logs = Logs(place, ground)
        for check in CHECKS:
            harness.repeated(place, check, logs)


if __name__ == "__main__":
    harness.main(test)
