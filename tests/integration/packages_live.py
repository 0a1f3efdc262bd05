#!/usr/bin/python3
# test: timeout=300
"""SLUICE_IMPORTANCE=iis:substitute=any with chunks in SLUICE_CACHE_DIR: substitutes are read in packages. An epoch has no
sample twice, each has its own bytes, also where chunks are damaged or lack, and where the optimizer is killed."""
import json
import os
import subprocess

import harness
import stage_testing
import substitution
from harness import claim
from stage_testing import Ground
from substitution import COUNT, once

SLUICE = os.path.join(harness.BUILD, "sluice")
EACH, UNBOUNDED = 16, "any,most-substituted=100"


def chunk(cache, number):
    return os.path.join(cache, f"sluice-chunks-{os.geteuid()}", f"{number:08x}.pack")


def make(cache, folder):
    os.makedirs(cache, exist_ok=True)
    made = subprocess.run([SLUICE, "chunks", "make", "--cache-dir", cache, "--samples", str(EACH), folder],
                          capture_output=True, text=True, timeout=120, check=False)
    claim(made.returncode == 0, made.stderr)


def run(place, *arguments, **settings):
    """With an optimizer of its own, whose counts begin with it."""
    found = substitution.run(place, *arguments, **settings)
    harness.drive.end_optimizer(place.sockets)
    return found


def hits(counts):
    return counts["h_hits"] + counts["l_exact"] + counts["l_substituted"]


def chunks_read(place, kind="plain"):
    with open(os.path.join(place.work, f"status-{kind}"), encoding="utf-8") as text:
        return (json.load(text).get("chunks") or {}).get("reads", 0)


def log_of(place):
    with open(os.path.join(place.sockets, "s.log"), encoding="utf-8") as text:
        return text.read()


def test(place):
    stage_testing.need_slow_mounts()
    # What the kernel has cached of a file is not read again: it would hide what was not in memory.
    with Ground(place, "mount", "1", "--no-keep-cache") as ground:
        os.rename(substitution.make(place), os.path.join(ground.source, "samples"))
        check(place, ground.folder("samples"))


def check(place, folder):
    cache = os.path.join(place.work, "cache")
    make(cache, folder)
    settings = {"SLUICE_CACHE_DIR": cache, "SLUICE_PACKS": "0", "SLUICE_MEMORY": "6M", "SLUICE_STALE": "600"}
    for workers in (0, 2):
        what = f"{workers} workers"
        epochs, without, _ = run(place, folder, workers, substitute=UNBOUNDED + ",packages=off", **settings)
        once(epochs, f"{what}, without packages")
        claim(chunks_read(place) == 0, f"{what}: chunks were read without packages")
        epochs, counts, _ = run(place, folder, workers, substitute=UNBOUNDED, **settings)
        once(epochs, what)
        trained = sum(map(len, epochs))
        print(f"{what}: {trained} trained, hits {hits(without)} and {hits(counts)}, {chunks_read(place)} chunks read: {counts}")
        claim(counts["reported"] == trained and hits(counts) + counts["misses"] == trained, f"{what}: {counts}")
        claim(chunks_read(place) > COUNT // EACH, f"{what}: no packages were read: {counts}")
        claim(hits(counts) > hits(without) + trained / 10, f"{what}: {hits(without)} hits, {hits(counts)} with packages")
        # A worker that comes before its package has read the sample itself.
        claim(counts["broken"] < trained / 10, f"{what}: {counts}")
    bounded, counts, _ = run(place, folder, 2, substitute="any", **settings)
    once(bounded, "bounded")
    substitution.adds_up(counts, sum(map(len, bounded)), "bounded")
    epochs, _, _ = run(place, folder, 2, kind="kill", substitute=UNBOUNDED, **settings)
    once(epochs, "kill")

    for number in range(0, COUNT // EACH, 3):
        with open(chunk(cache, number), "r+b") as file:
            file.seek(-substitution.BYTES, os.SEEK_END)
            file.write(b"9999 9")  # another number and label
    epochs, _, _ = run(place, folder, 2, substitute=UNBOUNDED, **settings)
    once(epochs, "damaged")
    claim(chunks_read(place) > 0, "damaged: no packages were read")
    os.unlink(chunk(cache, 1))
    epochs, counts, _ = run(place, folder, 2, substitute=UNBOUNDED, **settings)
    once(epochs, "one lacks")
    claim(chunks_read(place) == 0, f"packages although a chunk lacks: {counts}")
    lines = [line for line in log_of(place).splitlines() if f"{EACH} of {COUNT} samples are files in no chunk" in line]
    claim(len(lines) == 1, f"said {len(lines)} times: {lines}")


if __name__ == "__main__":
    harness.main(test)
