#!/usr/bin/python3
"""Each open of a small file asked the kernel what the file is, a system call that a job of small files pays for each of
them, and on a mount without attribute caching a round trip. What was read of it says that it is small."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
from harness import claim

TURNS = 500
JOB = f"""
import os, sys
for _ in range({TURNS}):
    fd = os.open(sys.argv[1], os.O_RDONLY)
    assert len(os.read(fd, 8192)) == 4096
    os.close(fd)
for _ in range({TURNS}):
    fd = os.open(sys.argv[2], os.O_RDONLY)
    while os.read(fd, 50000):
        pass
    os.close(fd)
"""


def test(place):
    paths = [os.path.join(place.work, name) for name in ("small.bin", "large.bin")]
    for path, size in zip(paths, (4096, 200_000)):
        with open(path, "wb") as file:
            file.write(os.urandom(size))
    trace = os.path.join(place.work, "trace")
    done = place.run(["strace", "-f", "-o", trace, "-e", "trace=openat,fstat,newfstatat,readlink", sys.executable,
                      "-c", JOB, *paths])
    claim(done.returncode == 0, done.stderr)
    with open(trace, encoding="utf-8", errors="replace") as text:
        lines = text.read().splitlines()
    first = next(number for number, line in enumerate(lines) if paths[0] in line and "openat(" in line)
    last = next(number for number, line in enumerate(lines) if paths[1] in line and "openat(" in line)
    opened = sum("openat(" in line for line in lines[first:last])
    asked = sum("stat(" in line for line in lines[first:last])
    claim(opened >= TURNS and asked < TURNS / 10, f"{asked} times for {opened} opens of a small file")
    names = sum("readlink(" in line and "/fd/" in line for line in lines[last:])
    claim(names <= 2, f"the name of a file that was known was looked up {names} times")


if __name__ == "__main__":
    harness.main(test)
