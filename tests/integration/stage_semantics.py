#!/usr/bin/python3
# test: timeout=240
"""Descriptors and names of staged files behave as the originals' do, on a disk and on a slow mount.

stage_semantics [WORD...]: only cases with one of the words in GROUND/VICTIM/CASE.
"""
import sys

import harness
import stage_testing
from stage_testing import Ground, SETTINGS, Tally, victim


def test(place):
    tally = Tally()
    grounds = [("disk", None)]
    if stage_testing.slow_mounts():
        grounds.append(("mount", "1"))
    for name, latency in grounds:
        with Ground(place, name, latency) as ground:
            folder = ground.make()
            for program in ("stage_fd", "stage_io", "stage_path"):
                for case in stage_testing.cases_of(place, program):
                    what = f"{name}/{program}/{case}"
                    if sys.argv[1:] and not any(word in what for word in sys.argv[1:]):
                        continue
                    argv = victim(program, case, folder)
                    plain = place.run(argv, library=None)
                    tally.compare(what, plain, place.run(argv, **SETTINGS))
    tally.end()


if __name__ == "__main__":
    harness.main(test)
