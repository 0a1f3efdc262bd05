#!/usr/bin/python3
# test: timeout=240
"""With SLUICE_IMPORTANCE the adapter switched itself off in PyTorch 2, which imports its losses after DataLoader."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))
import harness  # noqa: E402
import importance  # noqa: E402
from harness import claim  # noqa: E402


def test(place):
    python = harness.torch2()
    for kind in ("plain", "module"):
        plain, under = (importance.run(place, 2, 3, kind, level, python) for level in (None, "loss"))
        claim(plain.returncode == 0, plain.stderr)
        harness.same(plain, under, kind)
        found = importance.known(place)
        claim(len(found) == 1 and found[0]["reported"] == 3 * importance.COUNT, f"{kind}: {found}")
    selected = importance.run(place, 0, 7, "plain", "iis", python)
    claim(selected.returncode == 0, selected.stderr)
    counts = [len(epoch) for epoch in importance.epochs_of(selected)]
    claim(counts[:5] == [importance.COUNT] * 5 and max(counts[5:]) < importance.COUNT, f"samples of epochs: {counts}")


if __name__ == "__main__":
    harness.main(test)
