#!/usr/bin/python3
# test: timeout=100
"""The library asked a network mount for its statistics, to know that it is one: a round trip for each process, which a
command that reads one file there paid for nothing."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
import slowfs_harness
import stage_testing
from harness import claim

JOB = """
import os, sys
for name in sorted(os.listdir(sys.argv[1])):
    with open(os.path.join(sys.argv[1], name), "rb") as file:
        print(name, len(file.read()))
"""


def test(place):
    if not stage_testing.slow_mounts():
        harness.skip("FUSE is needed")
    source = os.path.join(place.work, "source")
    os.makedirs(source)
    for number in range(4):
        with open(os.path.join(source, str(number)), "wb") as out:
            out.write(bytes(1000 * number))
    with slowfs_harness.Mount(place.folder, source, "--latency", "5") as mount:
        command = ["/usr/bin/python3", "-c", JOB, mount.point]
        plain, under = place.run(command, library=None), place.run(command)
        harness.same(plain, under, "a job of four files")
        asked = [process["statfs"] for process in mount.stats()["processes"].values() if process["command"] == "python3"]
    claim(len(asked) == 2, f"{len(asked)} processes")
    claim(sum(asked) == 0, f"statistics were requested {asked} times")


if __name__ == "__main__":
    harness.main(test)
