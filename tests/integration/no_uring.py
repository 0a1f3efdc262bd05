#!/usr/bin/python3
"""io_uring is off: by the test switch, by seccomp as containers do, and by sysctl where one may."""
import ctypes
import struct

import harness
from harness import claim

SYSCTL = "/proc/sys/kernel/io_uring_disabled"


def refuse_uring():
    """A seccomp filter that answers io_uring_setup and _enter with EPERM, as Docker's does."""
    libc = ctypes.CDLL(None, use_errno=True)
    allow, eperm = 0x7FFF0000, 0x00050001
    code = [(0x20, 0, 0, 0), (0x15, 2, 0, 425), (0x15, 1, 0, 426), (0x06, 0, 0, allow),
            (0x06, 0, 0, eperm)]
    program = b"".join(struct.pack("HBBI", *line) for line in code)
    buffer = ctypes.create_string_buffer(program)
    header = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(buffer))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.create_string_buffer(header), 0, 0):
        raise OSError("no seccomp")


def test(place):
    argv = harness.victim("streams", "read")
    plain = place.run(argv, library=None)
    claim(plain.returncode == 0, plain.stderr)
    harness.same(plain, place.run(argv, SLUICE_FORCE_FALLBACK="nouring"), "by switch")
    harness.drive.end_optimizer(place.sockets)
    harness.same(plain, place.run(argv, preexec=refuse_uring), "by seccomp")
    claim(place.optimizers(), "no optimizer runs without io_uring")
    harness.drive.end_optimizer(place.sockets)
    try:
        with open(SYSCTL, encoding="ascii") as text:
            before = text.read()
        with open(SYSCTL, "w", encoding="ascii") as text:
            text.write("2")
    except OSError as why:
        print(f"not tried by sysctl: {why}")
        return
    try:
        harness.same(plain, place.run(argv), "by sysctl")
    finally:
        with open(SYSCTL, "w", encoding="ascii") as text:
            text.write(before)


if __name__ == "__main__":
    harness.main(test)
