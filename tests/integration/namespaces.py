#!/usr/bin/python3
# test: timeout=240
"""Processes that entered a pid or time namespace, or another root, after their session began, and an optimizer
whose pid is another process's by now: none is taken for what it is not."""
import os
import signal
import subprocess
import sys

import harness
from harness import claim, until

JOB = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def read():
    with open(sys.argv[1], "rb") as file:
        return sum(map(len, iter(lambda: file.read(1 << 16), b"")))
print(read(), flush=True)
kind = int(sys.argv[2])
if libc.unshare(kind) != 0:
    print("cannot", flush=True)
    sys.exit(0)
if kind == 0x80:
    with open("/proc/self/timens_offsets", "w") as offsets:
        offsets.write("monotonic 100000 0")
child = os.fork()
if child == 0:
    grandchild = os.fork()
    if grandchild == 0:
        size = read()
        os._exit(size % 97)
    got = os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1])
    print(os.getpid(), read(), got, flush=True)
    sys.stdin.readline()
    os._exit(0)
os.waitpid(child, 0)
print("ended", flush=True)
"""
NEW_PID, NEW_TIME = 0x20000000, 0x80
SIZE = 300 << 20  # a big file is followed without being named

LIVES = """
import os, sys
while True:
    with open(sys.argv[1], "rb") as file:
        file.read(1 << 16)
    print("read", flush=True)
    if not sys.stdin.readline():
        break
"""


def namespace(place, path, kind):
    job = place.start([sys.executable, "-c", JOB, path, str(kind)], stdin=subprocess.PIPE)
    try:
        claim(job.stdout.readline() == f"{SIZE}\n", "the job's own read")
        until(lambda: job.pid in harness.processes_followed(place), 20, "the job is followed")
        line = job.stdout.readline()
        if line == "cannot\n":
            print(f"no namespace {kind:x} here")
            job.communicate()
            return
        pid, size, got = map(int, line.split())
        claim(size == SIZE and got == SIZE % 97, f"what children read: {line}")
        claim((pid == 1) == (kind == NEW_PID), f"pid {pid}")
        followed = harness.processes_followed(place)
        claim(followed == [job.pid], f"followed: {followed}, the job is {job.pid}")
        _, err = job.communicate("\n", timeout=60)
        claim(job.returncode == 0, err)
    finally:
        job.kill()
    until(lambda: harness.processes_followed(place) == [], 20, "the session ends with the job")


def time_namespace_from_the_start(place, path):
    argv = ["unshare", "-T", "--monotonic", "100000", "--"]
    if subprocess.run(argv + ["true"], check=False, capture_output=True).returncode != 0:
        print("no time namespaces here")
        return
    keeper = place.start([sys.executable, "-c", LIVES, path], stdin=subprocess.PIPE)
    try:
        claim(keeper.stdout.readline() == "read\n", "the keeper")
        until(lambda: harness.processes_followed(place) == [keeper.pid], 20, "a job is followed")
        # Only the program itself runs under the library: unshare is no job.
        library = "LD_PRELOAD=" + harness.LIBRARY
        done = place.run(argv + ["env", library, sys.executable, "-c", LIVES, path],
                         LD_PRELOAD=None)
        claim(done.returncode == 0 and done.stdout == "read\n", done.stderr)
        claim(any("time namespace" in line for line in harness.sluice_lines(done)),
              f"it does not say why: {done.stderr}")
        claim(harness.processes_followed(place) == [keeper.pid], "other processes are followed")
    finally:
        harness.communicate(keeper, 60)


def take_pid(pid):
    """A process with that number; None: others were faster."""
    try:
        with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as last:
            last.write(str(pid - 1))
    except OSError:
        return None
    sleeper = subprocess.Popen(["sleep", "1000"])
    if sleeper.pid == pid:
        return sleeper
    sleeper.kill()
    sleeper.wait()
    return None


def reused_pid(place, path):
    job = place.start([sys.executable, "-c", LIVES, path], stdin=subprocess.PIPE)
    sleeper = None
    try:
        claim(job.stdout.readline() == "read\n", "the job")
        until(lambda: job.pid in harness.processes_followed(place), 20, "the job is followed")
        [optimizer] = place.optimizers()
        os.kill(optimizer, signal.SIGKILL)
        until(lambda: not os.path.exists(f"/proc/{optimizer}"), 20, "the optimizer is gone")
        for _ in range(200):
            sleeper = sleeper or take_pid(optimizer)
        if sleeper is None:
            print("no process got the optimizer's number")
            return

        def helped_again():
            job.stdin.write("\n")
            job.stdin.flush()
            job.stdout.readline()
            return job.pid in harness.processes_followed(place)

        until(helped_again, 40, "a new optimizer helps the job")
        claim(place.optimizers() != [optimizer], "the optimizer's number")
    finally:
        if sleeper is not None:
            sleeper.kill()
            sleeper.wait()
        harness.communicate(job, 60)


def test(place):
    path = os.path.join(place.work, "data", "big.bin")
    with open(path, "wb") as file:
        file.truncate(SIZE)
    namespace(place, path, NEW_PID)
    namespace(place, path, NEW_TIME)
    time_namespace_from_the_start(place, path)
    reused_pid(place, path)


if __name__ == "__main__":
    harness.main(test)
