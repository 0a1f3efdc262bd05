#!/usr/bin/python3
# test: timeout=120
"""The adapter comes to Python programs alone, and neither they nor their children see a trace."""
import os
import sys

import harness
from harness import claim

SHOW = ("import os, sys; "
        "print(os.environ.get('PYTHONPATH'), os.environ.get('SLUICE_PYTHONPATH_WAS')); "
        "print(sys.path); print('sluice_torch' in sys.modules, 'sitecustomize' in sys.modules); "
        "print(sorted(k for k in os.environ if not k.startswith(('SLUICE_', 'LD_PRELOAD'))))")
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SHOW!r}])"
INSTALLED = ("import torch.utils.data.dataloader as d; import sys; "
             "print(any(m.startswith('sluice_torch') for m in sys.modules))")


def test(place):
    own = os.path.join(place.work, "own")
    os.mkdir(own)
    python = sys.executable
    for path in (None, "", own, f"{own}:/nonexistent", ":"):
        for argv in ([python, "-c", SHOW], [python, "-c", CHILD], [python, "-E", "-c", SHOW],
                     [python, "-I", "-c", SHOW], [python, "-S", "-c", SHOW],
                     [python, "-W", "ignore", "-Ec", SHOW], [python, "-Wignore", "-c", SHOW],
                     ["/bin/sh", "-c", "echo $PYTHONPATH; env | grep -c PYTHONPATH || true"]):
            plain = place.run(argv, library=None, PYTHONPATH=path)
            under = place.run(argv, PYTHONPATH=path)
            harness.same(plain, under, f"PYTHONPATH={path!r}: {argv[:-1]}")
    found = place.run([python, "-c", INSTALLED])
    claim(found.stdout == "True\n", f"no adapter in a Python that loads torch: {found}")
    for switch in ({"SLUICE_PYTHON": "off"}, {"SLUICE_OFF": "1"}, {"library": None}):
        found = place.run([python, "-c", INSTALLED], **switch)
        claim(found.stdout == "False\n", f"{switch}: {found}")


if __name__ == "__main__":
    harness.main(test)
