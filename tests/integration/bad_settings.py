#!/usr/bin/python3
"""Bad settings: a preloaded job gets one clear line and the default; `sluice run` an error, 2."""
import os
import subprocess

import harness
from harness import claim

BAD = {"SLUICE_SIZE": "fifty", "SLUICE_DISTANCE": "12Q", "SLUICE_THRESHOLD": "400",
       "SLUICE_CHECKPOINT": "sometimes", "SLUICE_PREFETCH": "perhaps", "SLUICE_MEMORY": "-1",
       "SLUICE_LINGER": "soon", "SLUICE_LOG": "loud"}


def complaints(done, name):
    return [line for line in harness.sluice_lines(done) if name in line]


def test(place):
    argv = harness.victim("map_scan")
    plain = place.run(argv, library=None)
    for name, value in BAD.items():
        done = place.run(argv, **{name: value})
        harness.same(plain, done, f"{name}={value}")
        lines = complaints(done, name)
        claim(len(lines) == 1, f"{name}={value}: one line is due, not {lines}; all: {done.stderr}")
        claim(value in lines[0], f"the line does not repeat the value: {lines[0]}")
    # A program that touches no data says nothing, and children do not repeat what was said.
    done = place.run(["bash", "-c", "/bin/true; /bin/true"], SLUICE_SIZE="fifty")
    claim(done.returncode == 0 and len(complaints(done, "SLUICE_SIZE")) <= 1, done.stderr)
    good = place.run(argv, SLUICE_SIZE="50M", SLUICE_THRESHOLD="80")
    claim(not [li for li in harness.sluice_lines(good) if "SLUICE_" in li], good.stderr)
    sluice = os.path.join(harness.BUILD, "sluice")
    for flag, value in (("--size", "fifty"), ("--threshold", "0"), ("--checkpoint", "x")):
        ran = subprocess.run([sluice, "run", flag, value, "--", "touch", place.work + "/ran"],
                             capture_output=True, text=True, check=False)
        claim(ran.returncode == 2, f"sluice run {flag} {value}: status {ran.returncode}")
        claim(len(ran.stderr.splitlines()) == 1 and value in ran.stderr, ran.stderr)
        claim(not os.path.exists(place.work + "/ran"), "the command ran all the same")


if __name__ == "__main__":
    harness.main(test)
