#!/usr/bin/python3
# test: timeout=200
"""Copies that are slower to read than their originals are switched off for that dataset after a few samples, and the job's
end says so. Copies that help stay. The slow memory file system is the job's own doing: it looks past the library at what it
was given, and takes its time over a copy."""
import json
import os
import sys

import harness
import stage_testing
from harness import claim
from stage_testing import Ground

FILES, BYTES, EPOCHS = 300, 20_000, 6
MOST_COPIES = 100  # samples that may be read from copies before they are switched off; all are 1,800
JOB = """
import ctypes, os, sys, time
sys.path.insert(0, sys.argv[2])
import sluice
folder, slow = sys.argv[1], float(sys.argv[3])
paths = [os.path.join(folder, str(i)) for i in range(%d)]
dataset = sluice.dataset("numbers", len(paths))
sluice.locate_files(dataset, 0, paths)
libc, about, copies, total = ctypes.CDLL(None), (ctypes.c_uint64 * 18)(), 0, 0
device = os.stat(folder).st_dev
for epoch in range(%d):
    order = [(epoch * 31 + i * 7) %% len(paths) for i in range(len(paths))]
    sluice.publish_order(dataset, epoch, order, whole=True)
    for i in order:
        with sluice.sample(dataset, i), open(paths[i], "rb") as file:
            libc.syscall(5, file.fileno(), ctypes.byref(about))  # fstat
            if about[0] != device:
                copies += 1
                if slow:  # a sleep of 0 s gives the processor away: on a busy machine, for milliseconds
                    time.sleep(slow)
            total += len(file.read())
        time.sleep(0.003)  # what it computes
print(total)
print(copies, file=sys.stderr)
""" % (FILES, EPOCHS)


def run(place, folder, slow, **settings):
    report = os.path.join(place.work, "report.json")
    argv = [sys.executable, "-c", JOB, folder, harness.PYTHON_ADAPTER, str(slow)]
    done = place.run(argv, timeout=150, **{**stage_testing.SETTINGS, "SLUICE_REPORT": report, **settings})
    claim(done.returncode == 0 and done.stdout == f"{EPOCHS * FILES * BYTES}\n", done.stdout + done.stderr)
    harness.drive.end_optimizer(place.sockets)
    with open(report, encoding="utf-8") as text:
        found = json.load(text)
    os.unlink(report)
    copies = int(next(line for line in done.stderr.splitlines() if line.isdigit()))
    print(f"off {found['copies_off']} times; {copies} copies read; hits {found['sample_hits']}, late "
          f"{found['sample_late']}, misses {found['sample_misses']}; {done.seconds:.1f} s")
    said = "copying files was switched off for numbers: more time was lost by it than saved" in done.stderr
    return found["copies_off"], copies, said


def make(folder):
    os.makedirs(folder)
    for number in range(FILES):
        with open(os.path.join(folder, str(number)), "wb") as file:
            file.write(os.urandom(BYTES))
    return folder


def harmed(place, local):
    off, copies, said = run(place, local, 0.03)
    claim(copies > 0, "nothing was copied: the test tests nothing")
    claim(off >= 1, "copies that cost more than they save go on")
    claim(said, "the job's end does not say what was switched off")
    harness.in_time(copies <= MOST_COPIES, f"{copies} samples were read from copies before they were switched off")


def test(place):
    local = make(os.path.join(place.work, "local"))
    harness.repeated(place, harmed, place, local)
    off, copies, said = run(place, local, 0)
    claim(off == 0 and not said and copies > EPOCHS * FILES / 2, "what does no harm was switched off")
    if not stage_testing.slow_mounts():
        print("no slow mounts here")
        return
    with Ground(place, "originals", 4) as ground:
        make(os.path.join(ground.source, "data"))
        off, copies, said = run(place, ground.folder(), 0)
        claim(off == 0 and not said and copies > EPOCHS * FILES / 2, "what helps was switched off")
        off, copies, said = run(place, ground.folder(), 0.2)
        claim(off >= 1 and copies <= MOST_COPIES, "copies that cost more than the storage go on")


if __name__ == "__main__":
    harness.main(test)
