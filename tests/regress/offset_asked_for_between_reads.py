#!/usr/bin/python3
# test: timeout=120
"""A reader that asked for its offset between reads, as Python's tell() does, was taken for one that jumps: what it read
was not reported, and nothing was read ahead. Neither was what a reader read that did jump, nor one that began at the
end of the file, as of a zip archive."""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
import slowfs_harness
from harness import claim

SIZE, RECORD = 32 << 20, 100_000
JOB = f"""
import os, sys
kind, total = sys.argv[1], 0
with open(sys.argv[2], "rb", buffering=0) as file:
    if kind == "archive":
        file.seek(-22, os.SEEK_END)
        file.read(4096)
        file.seek(0)
    while True:
        if kind == "asks":
            at = file.tell()
        elif kind == "stays":
            os.lseek(file.fileno(), file.tell(), os.SEEK_SET)
        data = file.read({RECORD})
        if not data:
            break
        total += data[0] + len(data)
        if kind == "jumps":
            file.seek(5 * {RECORD}, os.SEEK_CUR)
print(total)
"""


def test(place):
    if not os.path.exists("/dev/fuse") or not shutil.which("fusermount3"):
        harness.skip("FUSE is needed")
    source, report = os.path.join(place.work, "source"), os.path.join(place.work, "report.json")
    os.makedirs(source)
    with open(os.path.join(source, "data"), "wb") as file:
        file.write(os.urandom(SIZE))
    own = {"SLUICE_CHECKPOINT": None, "SLUICE_DISTANCE": None, "SLUICE_DATASET": None, "SLUICE_REPORT": report}

    def check(kind):
        expected = place.run([sys.executable, "-c", JOB, kind, os.path.join(source, "data")], library=None).stdout
        with slowfs_harness.Mount(place.folder, source, "--read-latency", "5") as mount:
            done = place.run([sys.executable, "-c", JOB, kind, mount.path("data")], **own)
            claim(done.returncode == 0 and done.stdout == expected, f"{kind}: {done.stdout}{done.stderr}")
            with open(report, encoding="utf-8") as text:
                found = json.load(text)
            os.unlink(report)
        if kind == "jumps":
            claim(found["events_seen"] >= SIZE // RECORD // 6 - 5, f"{kind}: {found['events_seen']} reads were reported")
        else:
            harness.in_time(found["precached_bytes"] > SIZE // 2,
                            f"{kind}: {found['precached_bytes']} bytes were read ahead")

    for kind in ("reads", "asks", "stays", "archive", "jumps"):
        harness.repeated(place, check, kind)


if __name__ == "__main__":
    harness.main(test)
