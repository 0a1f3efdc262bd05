#!/usr/bin/python3
# test: timeout=200
"""A file whose first reads came before an optimizer answered, as while several workers start one, was never followed:
jobs that open their files once and read them for hours got nothing."""
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
import slowfs_harness
from harness import claim, until

MIB = 1 << 20
SIZE, PIECE = 96 * MIB, 1 * MIB
JOB = f"""
import os, sys
file, total = os.open(sys.argv[1], os.O_RDONLY), 0
for number in range({SIZE // PIECE}):
    data = os.read(file, {PIECE})
    total += data[0] + len(data)
    if number == 0:
        print("begun", flush=True)
        sys.stdin.readline()
print(total)
"""


def test(place):
    place.patience = None
    if not os.path.exists("/dev/fuse") or not shutil.which("fusermount3"):
        harness.skip("FUSE is needed")
    source, report = os.path.join(place.work, "source"), os.path.join(place.work, "report.json")
    os.makedirs(source)
    with open(os.path.join(source, "data"), "wb") as file:
        file.write(os.urandom(MIB) * (SIZE // MIB))
    settings = {"SLUICE_CHECKPOINT": None, "SLUICE_DISTANCE": None, "SLUICE_DATASET": None, "SLUICE_REPORT": report}
    expected = place.run([sys.executable, "-c", JOB, os.path.join(source, "data")], library=None).stdout
    with slowfs_harness.Mount(place.folder, source, "--read-latency", "10") as mount:
        # Starts the optimizer, which lingers.
        claim(place.run([sys.executable, "-c", JOB, mount.path("data")], **settings).returncode == 0, "the first job")
        optimizer = until(lambda: (harness.status(place) or {}).get("pid"), 30, "the optimizer is there")
        os.unlink(report)
        drop = os.open(mount.path(".slowfs-drop"), os.O_RDONLY)
        os.close(drop)
        os.kill(optimizer, signal.SIGSTOP)
        try:
            job = place.start([sys.executable, "-c", JOB, mount.path("data")], stdin=subprocess.PIPE, **settings)
            claim(job.stdout.readline() == "begun\n", "the job ended early")
        finally:
            os.kill(optimizer, signal.SIGCONT)
        out, err = job.communicate("\n", timeout=120)
        claim(job.returncode == 0 and "begun\n" + out == expected, out + err)
        harness.drive.end_optimizer(place.sockets)
    with open(report, encoding="utf-8") as text:
        found = json.load(text)
    claim(found["passed_no_optimizer"] == 1, f"not one file had no answer at first: {found}")
    claim(found["files_followed"] == 1, f"the file was not followed: {found}")


if __name__ == "__main__":
    harness.main(test)
