#!/usr/bin/python3
# test: timeout=600 alone long
"""A million tiny samples, each a file of its own, in shuffled order and with memory for a few of them:
the same bytes, and nothing that grows with the dataset beyond what is said of it. The order of all is
published; a fifth of them is read."""
import json
import os
import shutil
import sys
import tempfile

import harness
from harness import claim

FOLDERS, EACH = 1000, 1000
COUNT = FOLDERS * EACH
READ = COUNT // 5
MEMORY = 64 << 20
# argv: the folder, and where the module is.
JOB = f"""
import hashlib, random, sys
sys.path.insert(0, sys.argv[2])
import sluice
folder = sys.argv[1]
paths = [folder + "/%d/%d" % divmod(i, {EACH}) for i in range({COUNT})]
number = sluice.dataset("million " + folder, {COUNT})
sluice.locate_files(number, 0, paths)
order = list(range({COUNT}))
random.Random(1).shuffle(order)
sluice.publish_order(number, 0, order, whole=True)
whole = hashlib.sha256()
for index in order[:{READ}]:
    with sluice.sample(number, index), open(paths[index], "rb") as file:
        whole.update(file.read())
print(whole.hexdigest())
"""


def make(folder):
    for at in range(FOLDERS):
        os.mkdir(os.path.join(folder, str(at)))
        for number in range(EACH):
            path = f"{folder}/{at}/{number}"
            handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
            os.write(handle, b"%d of a million" % (at * EACH + number))
            os.close(handle)


def most_memory(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as text:
        for line in text:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


def test(place):
    shm = os.statvfs("/dev/shm")
    if shm.f_favail < 2 * COUNT or shm.f_bavail * shm.f_frsize < 8 << 30:
        harness.skip("/dev/shm is too small for a million files")
    folder = tempfile.mkdtemp(prefix="sluice-million-", dir="/dev/shm")
    try:
        make(folder)
        argv = [sys.executable, "-c", JOB, folder, os.path.join(harness.TOP, "adapters", "python")]
        plain = place.run(argv, library=None, timeout=200)
        claim(plain.returncode == 0, plain.stderr)
        report = os.path.join(place.work, "report")
        under = place.run(argv, timeout=400, SLUICE_STAGE="always", SLUICE_MEMORY=str(MEMORY),
                          SLUICE_REPORT=report, SLUICE_DATASET=None, SLUICE_CHECKPOINT=None,
                          SLUICE_DISTANCE=None, SLUICE_LINGER="30")
        harness.same(plain, under)
        with open(report, encoding="utf-8") as text:
            found = json.load(text)
        memory = [most_memory(pid) for pid in place.optimizers()]
        begun = sum(found["sample_" + word] for word in ("hits", "late", "misses"))
        print(f"plain {plain.seconds:.0f} s, under Sluice {under.seconds:.0f} s; {begun} samples "
              f"known, {found['sample_hits']} hits; the optimizer took {memory[0] >> 20} MiB")
        claim(begun >= 0.99 * READ, f"of {begun} samples it was known where they are")
        claim(found["sample_hits"] > 0.01 * READ, f"{found['sample_hits']} hits")
        # 100 bytes a sample is what is allowed; the rest is what any optimizer takes.
        claim(memory[0] < 100 * COUNT + MEMORY + (64 << 20), f"{memory[0]} bytes of memory")
    finally:
        harness.drive.end_optimizer(place.sockets)
        shutil.rmtree(folder)


if __name__ == "__main__":
    harness.main(test)
