#!/usr/bin/python3
# test: timeout=200
"""A dataset that reads a batch with one call (`__getitems__`, as Hugging Face's do) has no sample whose opens can be told
from the others'. That was taken for samples that do not open their files: their locations were discarded, and one
sample of each batch counted as one that needs its original."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "integration"))
import harness  # noqa: E402
import stage_testing  # noqa: E402
from harness import claim  # noqa: E402

FILES, BYTES, EPOCHS = 500, 20_000, 3


def test(place):
    if not stage_testing.slow_mounts():
        harness.skip("no FUSE here")
    python = harness.torch2()
    with stage_testing.Ground(place, "mount", "1") as ground:
        for number in range(FILES):
            with open(os.path.join(ground.source, f"{number:04d}"), "wb") as file:
                file.write(os.urandom(BYTES))
        report = os.path.join(place.work, "report.json")
        job = stage_testing.batches_of_one_call(EPOCHS, 0.02)
        done = place.run([python, "-W", "ignore", "-c", job, ground.path], timeout=150,
                         **{**stage_testing.SETTINGS, "SLUICE_PLACES": "off", "SLUICE_REPORT": report})
    claim(done.returncode == 0 and done.stdout == f"{FILES * BYTES * EPOCHS}\n", done.stdout + done.stderr)
    with open(report, encoding="utf-8") as text:
        found = json.load(text)
    unknown = dict(zip(found["epochs"]["epoch"], found["epochs"]["sample_unknown"]))
    print(f"unknown by epoch {unknown}; {found['originals_needed']} needed their originals")
    claim(found["originals_needed"] == 0, "samples are taken for such as need the original")
    claim(unknown[EPOCHS - 1] == 0, "the samples' files were discarded")


if __name__ == "__main__":
    harness.main(test)
