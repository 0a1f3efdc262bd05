#!/usr/bin/python3
# test: timeout=200
"""The process that becomes the optimizer closed its copies of the job's descriptors while the job waited for it. One of
a mount that answers nothing is flushed as it is closed, so that the job waited for the mount."""
import os
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
import stage_testing
from harness import claim
from stage_testing import Ground

BYTES = 8 << 20
WITHIN = 60  # seconds
# Has a file of the mount open, and, at a line of its input, reads another elsewhere.
JOB = """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
print("open", flush=True)
sys.stdin.readline()
data = 0
with open(sys.argv[2], "rb", buffering=0) as other:
    while piece := other.read(1 << 16):
        data += len(piece)
print(data, flush=True)
"""


def line_of(job):
    """What the job prints next; None: nothing in time."""
    found = []
    reads = threading.Thread(target=lambda: found.append(job.stdout.readline()), daemon=True)
    reads.start()
    reads.join(WITHIN)
    return found[0].strip() if found else None


def test(place):
    stage_testing.need_slow_mounts()
    path = os.path.join(place.work, "data", "big")
    with open(path, "wb") as file:
        file.write(os.urandom(BYTES))
    with Ground(place, "hung", 1, "--flush") as hung:
        with open(os.path.join(hung.source, "file"), "wb") as file:
            file.write(b"content")
        with place.impatient():
            job = place.start([sys.executable, "-c", JOB, hung.folder("file"), path], stdin=subprocess.PIPE)
        claim(line_of(job) == "open", "the job did not begin")
        os.kill(hung.mount.pid, signal.SIGSTOP)
        try:
            job.stdin.write("\n")
            job.stdin.flush()
            read = line_of(job)
        finally:
            os.kill(hung.mount.pid, signal.SIGCONT)
        claim(read == str(BYTES), f"{read} bytes read within {WITHIN} s")
        job.stdin.close()
        claim(job.wait(WITHIN) == 0, f"status {job.returncode}")


if __name__ == "__main__":
    harness.main(test)
