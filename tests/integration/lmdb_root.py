#!/usr/bin/python3
# test: timeout=60
"""A job that opens an LMDB gets its root page on the way, and no read-ahead around it."""
import ctypes
import mmap
import os
import struct
import subprocess
import sys

import harness
from harness import claim, until

LIBC = ctypes.CDLL(None)
PAGE = 4096
RECORDS = 3000
MAKE = f"""
import lmdb, sys
env = lmdb.open(sys.argv[1], map_size=1 << 30)
with env.begin(write=True) as txn:
    for i in range({RECORDS}):
        txn.put(b"%08d" % i, bytes([i % 251]) * 6000)
env.close()
"""
# Opens, as a job does, and reads nothing until a line comes.
OPEN = """
import lmdb, sys
env = lmdb.open(sys.argv[1], readonly=True, lock=False)
print("open", flush=True)
sys.stdin.readline()
with env.begin() as txn:
    print(txn.get(b"00000007") == bytes([7]) * 6000, flush=True)
"""


def root_of(path):
    """The offset of the main tree's root, by the newer meta page (mdb.c: MDB_meta)."""
    with open(path, "rb") as file:
        metas = [file.read(PAGE)[16:152] for _ in range(2)]
    newer = max(metas, key=lambda meta: struct.unpack_from("<Q", meta, 128)[0])
    return struct.unpack_from("<Q", newer, 112)[0] * PAGE


def cached(path, offset):
    """By mincore: a read that does not wait would begin to read."""
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as whole:
        at = ctypes.addressof(ctypes.c_char.from_buffer(whole)) + offset
        seen = ctypes.c_ubyte(0)
        claim(LIBC.mincore(ctypes.c_void_p(at), ctypes.c_size_t(PAGE), ctypes.byref(seen)) == 0,
              "mincore")
        return bool(seen.value & 1)


def drop(path):
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)


def opened(place, folder, path, root, **settings):
    """(root is cached, so are its neighbours) once the job has opened the database."""
    drop(path)
    if cached(path, root):
        harness.skip("this file system does not drop what is cached")
    job = place.start([sys.executable, "-c", OPEN, folder], stdin=subprocess.PIPE, **settings)
    try:
        claim(job.stdout.readline() == "open\n", "the job did not open the database")
        wanted = settings.get("SLUICE_PREFETCH") != "off"
        if wanted:
            until(lambda: cached(path, root), 10, "the root page is in memory")
        seen = cached(path, root), cached(path, root - PAGE) or cached(path, root + PAGE)
        out, err = job.communicate("\n", timeout=30)
        claim(job.returncode == 0 and out == "True\n", f"the job: {job.returncode}, {out}, {err}")
        return seen
    finally:
        job.kill()


def test(place):
    folder = os.path.join(place.work, "db")
    done = place.run([sys.executable, "-c", MAKE, folder], library=None)
    claim(done.returncode == 0, done.stderr)
    path = os.path.join(folder, "data.mdb")
    root = root_of(path)
    claim(root > 512 << 10, f"the root at {root} lies within the first read-ahead: no test")
    claim(opened(place, folder, path, root) == (True, False), "not the root page alone")
    claim(opened(place, folder, path, root, SLUICE_PREFETCH="off") == (False, False),
          "SLUICE_PREFETCH=off reads nothing")


if __name__ == "__main__":
    harness.main(test)
