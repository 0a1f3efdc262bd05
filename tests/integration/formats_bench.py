#!/usr/bin/python3
# test: timeout=300 long
"""The benchmark of loading models in a tiny size: one row runs through, the three sides read the same bytes, and
nothing stays mounted or running."""
import os
import subprocess

import harness
from harness import claim, skip

if not os.access("/dev/fuse", os.R_OK | os.W_OK):
    skip("there is no /dev/fuse that this user may open")
done = subprocess.run(["scripts/bench-formats", "--small", "--quick", "--row", "safetensors, shuffled"],
                      cwd=harness.TOP, capture_output=True, text=True, timeout=280, check=False)
if "skipped" in done.stdout:
    skip("build/venv has no safetensors")
claim(done.returncode == 0, done.stdout + done.stderr)
lines = [line for line in done.stdout.splitlines() if line.startswith("| safetensors, shuffled | 10 ms |")]
claim(len(lines) == 1, done.stdout)
plain, sluice, warm = (float(word.rstrip(" s")) for word in lines[0].split("|")[3:6])
claim(0 < warm < plain and sluice > 0, lines[0])
with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
    claim("bench-data/formats" not in mounts.read(), "a mount was left")
