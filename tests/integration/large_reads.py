#!/usr/bin/python3
# test: timeout=300
"""What a large read is about to read is requested as a whole on slow storage, in whatever way it is read, and the bytes
are the file's; once the file is in memory nothing is requested any more."""
import json
import os
import re
import shutil
import signal
import sys

import harness
import slowfs_harness
from harness import claim, until

MIB = 1 << 20
SIZE, PIECE = 64 * MIB, 4 * MIB
HUGE = 128 * MIB  # in one call
REQUEST = 128 << 10  # of which the kernel requests one or two at a time by itself
OWN = {"SLUICE_CHECKPOINT": None, "SLUICE_DISTANCE": None, "SLUICE_DATASET": None}
JOB = f"""
import ctypes, hashlib, os, sys
kind, path, pieces = sys.argv[1], sys.argv[2], int(sys.argv[3])
file, buffer = os.open(path, os.O_RDONLY), bytearray({PIECE})
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
stream = libc.fdopen(os.dup(file), b"rb") if kind == "fread" else None
whole = hashlib.sha256()
for piece in range(pieces):
    at = piece * 7 % {SIZE // PIECE} * {PIECE}
    if kind == "pread":
        buffer = os.pread(file, {PIECE}, at)
    elif kind == "read":
        os.lseek(file, at, os.SEEK_SET)
        buffer = os.read(file, {PIECE})
    elif kind == "readinto":
        with open(path, "rb", buffering=0) as own:
            own.seek(at)
            own.readinto(buffer)
    else:
        libc.fseek(ctypes.c_void_p(stream), ctypes.c_long(at), 0)
        libc.fread((ctypes.c_char * {PIECE}).from_buffer(buffer), 1, {PIECE}, ctypes.c_void_p(stream))
    whole.update(buffer)
print(whole.hexdigest())
"""


def argv(kind, path, pieces):
    return [sys.executable, "-c", JOB, kind, path, str(pieces)]


def answered(place, command):
    """Whether the job's file was followed."""
    report = os.path.join(place.work, "report.json")
    done = place.run(command, SLUICE_REPORT=report, **OWN)
    claim(done.returncode == 0, done.stderr)
    if not os.path.exists(report):
        return False
    with open(report, encoding="utf-8") as text:
        followed = json.load(text)["files_followed"]
    os.unlink(report)
    return followed > 0


def one_call(place, source):
    """Most of a huge read, of which the job reports nothing before its end, is read by the optimizer meanwhile."""
    path, report = os.path.join(source, "huge"), os.path.join(place.work, "report.json")
    with open(path, "wb") as file:
        file.write(os.urandom(HUGE))
    job = "import hashlib, os, sys; f = os.open(sys.argv[1], 0); print(hashlib.sha256(os.pread(f, %d, 0)).hexdigest())" % HUGE
    expected = place.run([sys.executable, "-c", job, path], library=None).stdout
    with slowfs_harness.Mount(place.folder, source, "--latency", 10, "--bandwidth", 200) as mount:
        until(lambda: answered(place, argv("pread", mount.path("first"), 1)), 60, "the optimizer answers")
        done = place.run([sys.executable, "-c", job, mount.path("huge")], SLUICE_REPORT=report, **OWN)
        asked = mount.stats()["totals"]["read_bytes"]
    claim(done.returncode == 0 and done.stdout == expected, done.stderr)
    with open(report, encoding="utf-8") as text:
        ahead = json.load(text)["precached_bytes"]
    claim(ahead > HUGE // 2, f"{ahead >> 20} MiB of {HUGE >> 20} were read ahead")
    claim(asked < HUGE + SIZE + HUGE // 20, f"{asked >> 20} MiB were read from storage")


def test(place):
    if not os.path.exists("/dev/fuse") or not shutil.which("fusermount3"):
        harness.skip("FUSE is needed")
    source = os.path.join(place.work, "source")
    os.makedirs(source)
    original = os.path.join(source, "data")
    for name in ("data", "first"):
        with open(os.path.join(source, name), "wb") as file:
            file.write(os.urandom(SIZE))
    for kind in ("pread", "read", "readinto", "fread"):
        expected = place.run(argv(kind, original, 1), library=None).stdout
        with slowfs_harness.Mount(place.folder, source, "--max-background", 64) as mount:
            # An optimizer is there, which answers in time.
            until(lambda at=mount, by=kind: answered(place, argv(by, at.path("first"), 1)), 60, "the optimizer answers")
            before = mount.stats()["totals"]["read"]
            os.kill(mount.pid, signal.SIGUSR1)  # every read hangs
            job = place.start(argv(kind, mount.path("data"), 1), **OWN)
            try:
                until(lambda at=mount, had=before: at.stats()["totals"]["read"] - had >= PIECE // REQUEST * 3 // 4, 60,
                      f"{kind}: most of a piece is requested before any of it has come")
            finally:
                os.kill(mount.pid, signal.SIGUSR2)
            out, err = harness.communicate(job, 60)
            claim(job.returncode == 0 and out == expected, f"{kind}: {out}{err}")
    one_call(place, source)
    if not shutil.which("strace"):
        return
    with slowfs_harness.Mount(place.folder, source) as mount:
        with open(mount.path("data"), "rb") as file:
            file.read()
        def few_requests():
            """On a busy machine a read of what is in memory may take as long as one of storage."""
            trace = os.path.join(place.work, "trace")
            done = place.run(["strace", "-f", "-e", "trace=readahead", "-o", trace,
                              *argv("pread", mount.path("data"), 16)], **OWN)
            claim(done.returncode == 0, done.stderr)
            with open(trace, encoding="utf-8", errors="replace") as text:
                return len(re.findall(r"readahead\(", text.read())) < 16 * PIECE // REQUEST // 2

        until(few_requests, 90, "what is in memory is not requested")


if __name__ == "__main__":
    harness.main(test)
