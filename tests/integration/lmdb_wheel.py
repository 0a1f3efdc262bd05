#!/usr/bin/python3
# test: timeout=200
"""Records that are read by PyPI's package lmdb, which has an LMDB of its own inside, are known like those that Debian's
reads: by keys that follow a rule, and by a list of the keys."""
import os

import harness
import samples_keys
from harness import claim


def test(place):
    python = harness.torch2("lmdb")
    folder = os.path.join(place.work, "set")
    os.mkdir(folder)
    done = place.run([python, "-c", samples_keys.MAKE, folder], library=None)
    claim(done.returncode == 0, done.stderr)
    for kind, workers, least in (("padded", 2, 0.1), ("pairs", 0, 0.1), ("listed", 2, 0.3)):
        epochs = samples_keys.EPOCHS
        harness.repeated(place, samples_keys.check, epochs - 1 + least, epochs, place, folder, kind, workers, python)


if __name__ == "__main__":
    harness.main(test)
