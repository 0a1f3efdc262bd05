#!/usr/bin/python3
# test: timeout=200
"""Where a storage answers few requests a second none is made twice: threads that fetch files of the same few folders
asked for these at the same time, whenever the kernel's knowledge of them had expired, and an epoch took longer than
without Sluice."""
import os
import random
import sys

import harness
import stage_testing
from harness import claim
from stage_testing import Ground

FOLDERS, COUNT, BYTES = 4, 1600, 20_000
MOST = 0.08  # look-ups of folders / files that were fetched; it was 0.2
JOB = stage_testing.epoch_of_files(
    "sorted(os.path.join(at, name) for at, _, names in os.walk(above) for name in names)", 32, 4)


def run(place, library):
    """The job's outcome, and what the optimizer asked the storage for."""
    draw = random.Random(9)
    with Ground(place, "scarce", 2, "--requests", 200, "--bandwidth", 100) as ground:
        for number in range(COUNT):
            path = os.path.join(ground.source, "data", str(number % FOLDERS), f"{number:04}")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(draw.randbytes(BYTES))
        settings = {**stage_testing.SETTINGS, "SLUICE_STAGE": None, "SLUICE_STALE": None}
        done = place.run([sys.executable, "-W", "ignore", "-c", JOB, ground.folder()], library=library, timeout=150,
                         **settings)
        claim(done.returncode == 0, done.stderr)
        asked = [one for one in ground.mount.stats()["processes"].values() if one["command"].startswith("sluice-opt")]
    return done, asked


def test(place):
    harness.need_modules("torch")
    stage_testing.need_slow_mounts()
    native, _ = run(place, None)
    under, asked = run(place, harness.LIBRARY)
    claim(native.stdout == under.stdout, "other bytes")
    fetched = sum(one["open"] for one in asked)
    folders = sum(one["lookup"] + one["getattr"] for one in asked) - fetched
    print(f"{fetched} files were fetched, {folders} requests more; {native.seconds:.1f} and {under.seconds:.1f} s")
    claim(fetched > COUNT / 2, "few files were fetched: this shows nothing")
    claim(folders < MOST * fetched, f"{folders} requests for folders")


if __name__ == "__main__":
    harness.main(test)
