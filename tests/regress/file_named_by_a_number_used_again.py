#!/usr/bin/python3
"""tests/differential took a new file for one of the tree that was gone if it got the same inode number.
It does not if another process still has the old one open, or makes a file first; so two runs of one
program differed (13396)."""
import os
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(TESTS, "integration"), os.path.join(TESTS, "differential")]
import harness  # noqa: E402
import generate  # noqa: E402
import ground  # noqa: E402
import tree  # noqa: E402
from harness import claim  # noqa: E402

NAME, OTHER = "other/g1", "f01"
# The first replacement frees the number, which the second takes.
STEPS = [(0, ["replacefile", NAME, 10, 72]), (0, ["replacefile", NAME, 20000, 165]),
         (0, ["stat", NAME]), (0, ["lstat", NAME]), (0, ["open", 0, NAME, "r"]), (0, ["fstat", 0]),
         (0, ["fstatat", 0]), (0, ["stat", OTHER])]
ASKED = {2: "new", 3: "new", 5: "new", 6: "new", 7: OTHER}
TRIES = 100  # another process may take the number first


def run(place, held):
    """A run without the library, and whether the number was used again. `held`: another process has
    the tree's file open until the program has ended."""
    numbers, descriptors, make, state = [], [], tree.make, tree.state
    steps = generate.Program(0, wait=False).with_steps(STEPS)

    def made(top, *about):
        make(top, *about)
        path = os.path.join(top, NAME)
        numbers.append(os.stat(path).st_ino)
        if held:
            descriptors.append(os.open(path, os.O_RDONLY))

    def left(top):
        numbers.append(os.stat(os.path.join(top, NAME)).st_ino)
        return state(top)

    tree.make, tree.state = made, left
    try:
        outcome = place.run(steps, under=False)
    finally:
        tree.make, tree.state = make, state
        for fd in descriptors:
            os.close(fd)
    return outcome, numbers[0] == numbers[1]


def test(_place):
    place = ground.Ground()
    try:
        slow, again = run(place, held=True)
        claim(not again, "the number of an open file was used again")
        for _ in range(TRIES):
            quick, again = run(place, held=False)
            if again:
                break
        else:
            harness.skip("no inode number is used again here")
    finally:
        place.end()
    claim(not quick.differences(slow), f"two plain runs differ: {quick.differences(slow)}")
    found = {int(line.split()[0]): line.split()[1] for line in quick.log}
    claim({step: found[step] for step in ASKED} == ASKED, f"{quick.log}")


if __name__ == "__main__":
    harness.main(test)
