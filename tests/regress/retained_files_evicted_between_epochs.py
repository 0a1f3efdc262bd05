#!/usr/bin/python3
# test: timeout=200
"""Between two epochs memory was taken for the first samples of the next one from copies that the next one would
read again: these were requested from the storage once more."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "integration"))
import harness  # noqa: E402
import stage_testing  # noqa: E402
from harness import claim  # noqa: E402

FILES, BYTES, EPOCHS, MEASURED = 3000, 20_000, 5, (2, 3)
MEMORY = "24M"  # 0.36 of the files, as they are charged, of which 4 MiB are for what is ahead
MOST = 0.7  # of the dataset, an epoch: 0.62 if all stays that can; 0.78 were requested
READER = os.path.join(harness.TOP, "bench", "reader", "load_files.py")


def settled(mount):
    """The bytes that were requested, when no more are."""
    last = [-1, 0.0]

    def same():
        now = mount.stats()["totals"]["read_bytes"]
        if now != last[0]:
            last[:] = [now, time.monotonic()]
        return time.monotonic() - last[1] > 0.5
    harness.until(same, 60, "the storage is idle")
    return last[0]


def test(place):
    if not stage_testing.slow_mounts():
        harness.skip("no FUSE here")
    with stage_testing.Ground(place, "mount", "1") as ground:
        os.mkdir(os.path.join(ground.source, "class"))
        for number in range(FILES):
            with open(os.path.join(ground.source, "class", f"{number:04d}"), "wb") as file:
                file.write(os.urandom(BYTES))
        job = place.start(["/usr/bin/python3", "-W", "ignore", READER, ground.path, str(EPOCHS), "1", "4", "own"],
                          stdin=subprocess.PIPE, **{**stage_testing.SETTINGS, "SLUICE_MEMORY": MEMORY})
        requested = []
        for epoch in range(EPOCHS):
            claim(job.stderr.readline() == f"ready {epoch}\n", "the job does not begin")
            requested.append(settled(ground.mount))
            job.stdin.write("go\n")
            job.stdin.flush()
        out, err = job.communicate(timeout=60)
        claim(job.returncode == 0 and '"passes"' in out, out + err)
    shares = [(requested[epoch + 1] - requested[epoch]) / (FILES * BYTES) for epoch in MEASURED]
    print("requested of the dataset: " + ", ".join(f"{share:.3f}" for share in shares))
    claim(max(shares) < MOST, f"{max(shares):.3f} of the dataset were requested in an epoch")


if __name__ == "__main__":
    harness.main(test)
