#!/usr/bin/python3
"""Each open and close of a file asked the kernel twice which process this is (a vfork's child shares our
memory), which was a third of what they take."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
from harness import claim

TURNS = 500
JOB = f"""
import os, subprocess, sys
subprocess.run(["/bin/true"], close_fds=False)  # by vfork: that is over then
for _ in range({TURNS}):
    os.close(os.open(sys.argv[1], os.O_RDONLY))
"""


def test(place):
    path = os.path.join(place.work, "data.bin")
    with open(path, "wb") as file:
        file.write(os.urandom(200_000))
    trace = os.path.join(place.work, "trace")
    done = place.run(["strace", "-f", "-o", trace, "-e", "trace=getpid,openat,fstat,newfstatat", sys.executable, "-c",
                      JOB, path])
    claim(done.returncode == 0, done.stderr)
    with open(trace, encoding="utf-8", errors="replace") as text:
        lines = text.read().splitlines()
    opened = sum(path in line for line in lines if "openat(" in line)
    claim(opened >= TURNS, f"the trace holds {opened} opens")
    asked = sum("getpid()" in line for line in lines)
    claim(asked < TURNS / 10, f"{asked} times for {opened} opens")


if __name__ == "__main__":
    harness.main(test)
