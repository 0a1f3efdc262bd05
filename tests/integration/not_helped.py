#!/usr/bin/python3
# test: timeout=120
"""A job that reads data and is not helped reports why, in one line; a program that met none says nothing."""
import os
import sys

import harness
from harness import claim

TARS, BYTES = 12, 4_000_000
OWN = {"SLUICE_CHECKPOINT": None, "SLUICE_DISTANCE": None}
READ = """
import sys
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        file.read()
"""
# Two epochs, each with workers of its own: the files are the same.
WORKERS = """
import os, sys
for epoch in range(2):
    children = []
    for worker in range(4):
        children.append(os.fork())
        if children[-1] == 0:
            for path in sys.argv[1 + worker::4]:
                with open(path, "rb") as file:
                    file.read()
            os._exit(0)
    for child in children:
        os.waitpid(child, 0)
"""


def said(place, argv, **settings):
    done = place.run(argv, **{**OWN, "SLUICE_DATASET": None, **settings})
    claim(done.returncode == 0, done.stderr)
    lines = done.stderr.splitlines()
    claim(len(lines) <= 1, done.stderr)
    claim("checkpoint" not in done.stderr, done.stderr)
    return lines[0] if lines else ""


def test(place):
    folder = os.path.join(place.work, "data")
    paths = [os.path.join(folder, f"{number:02d}.tar") for number in range(TARS)]
    for path in paths:
        with open(path, "wb") as file:
            file.write(os.urandom(BYTES))
    python = [sys.executable, "-c"]
    kinds = f"nothing was done: {TARS} .tar files of 4.0 MB: too small to be followed unasked; SLUICE_DATASET=DIR takes them"
    for code in (READ, WORKERS):
        line = said(place, [*python, code, *paths])
        claim(line == "sluice: " + kinds, line)

    line = said(place, [*python, READ, paths[0]], SLUICE_DATASET="/nowhere")
    claim("SLUICE_DATASET names nothing that was read" in line and "1 .tar file of" in line, line)
    line = said(place, [os.path.join(harness.BUILD, "sluice"), "run", "--", *python, READ, paths[0]],
                library=None)
    claim("nothing was done: 1 .tar file" in line, line)

    # What is named is followed, and no program without data says anything.
    line = said(place, [*python, READ, paths[0]], SLUICE_DATASET=folder)
    claim("nothing" not in line, line)
    for argv in (["/bin/true"], ["/bin/ls", folder], [*python, "pass"], [*python, READ, paths[0]]):
        for dataset in (None, "/nowhere"):
            if dataset is None or len(argv) < 4:
                line = said(place, argv, SLUICE_DATASET=dataset)
                claim(line == "", f"{argv}: {line}")


if __name__ == "__main__":
    harness.main(test)
