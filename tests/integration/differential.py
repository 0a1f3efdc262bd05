#!/usr/bin/python3
# test: timeout=600
"""500 random programs have the same results, bytes and final state with Sluice as without:
tests/differential/README.md."""
import os
import subprocess
import sys

import harness

DRIVER = os.path.join(harness.TOP, "tests", "differential", "differential.py")

if __name__ == "__main__":
    sys.exit(subprocess.run([sys.executable, DRIVER, "--count", "500", *sys.argv[1:]],
                            check=False).returncode)
