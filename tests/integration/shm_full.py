#!/usr/bin/python3
"""Shared memory is full, or no file may grow, or no descriptor is left: the job is right."""
import os
import resource
import subprocess

import harness
from harness import claim


def test(place):
    argv = harness.victim("map_scan")
    plain = place.run(argv, library=None)

    def limited(kind, value):
        return lambda: resource.setrlimit(kind, (value, value))

    # What a small descriptor table leaves is the job's; the library may need one for a moment.
    for spare in (0, 1, 2):
        done = place.run(argv, preexec=limited(resource.RLIMIT_NOFILE, 4 + spare))
        harness.same(plain, done, f"{spare} descriptors to spare")
        harness.drive.end_optimizer(place.sockets)
    harness.same(plain, place.run(argv, preexec=limited(resource.RLIMIT_FSIZE, 0)), "no file grows")
    harness.drive.end_optimizer(place.sockets)
    harness.same(plain, place.run(argv, preexec=limited(resource.RLIMIT_MEMLOCK, 0)), "no memlock")
    harness.drive.end_optimizer(place.sockets)
    room = 200 << 20
    harness.same(plain, place.run(argv, preexec=limited(resource.RLIMIT_AS, room)),
                 "200 MiB of addresses")
    harness.drive.end_optimizer(place.sockets)
    if os.geteuid() != 0:
        print("not tried with a full /dev/shm: mounting needs root")
        return
    # A private /dev/shm of 4 KiB, and a /tmp of 64 KiB for good measure, as in a full container.
    script = ("mount -t tmpfs -o size=4k none /dev/shm && head -c 4096 /dev/zero > /dev/shm/full; "
              "exec env LD_PRELOAD=$LIB \"$@\"")
    probe = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        print("not tried with a full /dev/shm: no mount namespaces here")
        return
    done = place.run(["unshare", "-m", "bash", "-c", script, "bash", *argv], LD_PRELOAD=None,
                     LIB=harness.LIBRARY)
    harness.same(plain, done, "a full /dev/shm")
    claim(done.returncode == 0, done.stderr)


if __name__ == "__main__":
    harness.main(test)
