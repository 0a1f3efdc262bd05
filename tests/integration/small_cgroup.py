#!/usr/bin/python3
# test: timeout=120
"""Job and optimizer share a memory cgroup of 96 MiB while 300 MiB are read: no process is killed, and
the job is right."""
import os

import harness
from harness import claim

LIMIT = 96 << 20


def make_group():
    """A fresh memory cgroup below our own, v2 or v1; None where that is not ours to do."""
    with open("/proc/self/cgroup", encoding="ascii") as text:
        lines = [line.strip().split(":", 2) for line in text]
    for _, controllers, path in lines:
        if "memory" in controllers.split(","):
            parent, limit = "/sys/fs/cgroup/memory" + path, "memory.limit_in_bytes"
            break
    else:
        parent, limit = "/sys/fs/cgroup" + lines[-1][2], "memory.max"
    if not os.path.isdir(parent):  # a container sees its own group as the root
        parent = parent[:parent.index("/memory") + 7] if "/memory" in parent else "/sys/fs/cgroup"
    group = os.path.join(parent, f"sluice-test-{os.getpid()}")
    try:
        os.mkdir(group)
        with open(os.path.join(group, limit), "w", encoding="ascii") as out:
            out.write(str(LIMIT))
    except OSError as why:
        if os.path.isdir(group):
            os.rmdir(group)
        return None, str(why)
    return group, None


def removed(group):
    try:
        os.rmdir(group)
        return True
    except OSError:  # a process is in it still
        return False


def kills(group):
    for name in ("memory.oom_control", "memory.events"):
        try:
            with open(os.path.join(group, name), encoding="ascii") as text:
                return sum(int(li.split()[1]) for li in text if li.startswith("oom_kill "))
        except OSError:
            pass
    return 0


def test(place):
    group, why = make_group()
    if group is None:
        harness.skip(f"no memory cgroup can be made here: {why}")

    def enter():
        with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as out:
            out.write(str(os.getpid()))

    try:
        for kind in ("read", "map"):
            argv = harness.victim("streams", kind)
            plain = place.run(argv, library=None, preexec=enter)
            claim(plain.returncode == 0, plain.stderr)
            fd = os.open(os.path.join(harness.DATA, "big.bin"), os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
            for mode in ("cell", "observe"):
                done = place.run(argv, preexec=enter, SLUICE_CHECKPOINT=mode, SLUICE_DISTANCE="1M")
                harness.same(plain, done, f"{kind}, {mode}")
        claim(kills(group) == 0, "a process was killed for memory")
    finally:
        harness.drive.end_optimizer(place.sockets)
        harness.until(lambda: removed(group), 10, f"{group} is removed")


if __name__ == "__main__":
    harness.main(test)
