#!/usr/bin/python3
"""A job that is close to vm.max_map_count has what is left to itself, in every mode."""
import harness


def test(place):
    for left in (60000, 1000, 120):
        argv = harness.victim("many_maps", left)
        plain = place.run(argv, library=None)
        if plain.returncode == 77:
            harness.skip(plain.stdout.strip())
        harness.claim(plain.returncode == 0, plain.stderr)
        for mode in ("cell", "page", "observe"):
            for fallback in ("", "noguard"):
                done = place.run(argv, SLUICE_CHECKPOINT=mode, SLUICE_FORCE_FALLBACK=fallback)
                harness.same(plain, done, f"{left} mappings left, {mode} {fallback}")


if __name__ == "__main__":
    harness.main(test)
