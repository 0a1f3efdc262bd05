#!/usr/bin/python3
# test: timeout=200
"""Samples that one call brings (`__getitems__`) were fetched for the job, read by it natively meanwhile, and fetched
again: from storage that keeps no pages between opens each of them was requested twice."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "integration"))
import harness  # noqa: E402
import stage_testing  # noqa: E402
from harness import claim  # noqa: E402

FILES, BYTES, EPOCHS = 500, 20_000, 3
MOST = 1.35  # of the dataset, an epoch: what is fetched twice approaches 2


def test(place):
    if not stage_testing.slow_mounts():
        harness.skip("no FUSE here")
    python = harness.torch2()
    job = stage_testing.batches_of_one_call(EPOCHS, 0.02)
    with stage_testing.Ground(place, "mount", "1") as ground:
        for number in range(FILES):
            with open(os.path.join(ground.source, f"{number:04d}"), "wb") as file:
                file.write(os.urandom(BYTES))
        before = ground.mount.stats()["totals"]["read_bytes"]
        done = place.run([python, "-W", "ignore", "-c", job, ground.path], timeout=150,
                         **{**stage_testing.SETTINGS, "SLUICE_PLACES": "off"})
        share = (ground.mount.stats()["totals"]["read_bytes"] - before) / (FILES * BYTES * EPOCHS)
    claim(done.returncode == 0 and done.stdout == f"{FILES * BYTES * EPOCHS}\n", done.stdout + done.stderr)
    print(f"{share:.2f} of the dataset were requested an epoch")
    claim(share < MOST, f"{share:.2f} of the dataset were requested an epoch")


if __name__ == "__main__":
    harness.main(test)
