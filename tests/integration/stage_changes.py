#!/usr/bin/python3
# test: timeout=300
"""Staged files that change through this host: what is opened next holds the new bytes, whoever
made the change. SLUICE_STALE is long: nothing here may rest on it. (What another process changes is
seen as soon as the optimizer is notified.)

stage_changes [WORD...]: only cases with one of the words in WRITER/CASE.
"""
import sys

import harness
import stage_testing
from stage_testing import Ground, SETTINGS, Tally, victim


def test(place):
    tally = Tally()
    with Ground(place, "disk") as ground:
        for case in stage_testing.cases_of(place, "stage_change"):
            for writer in "job", "other":
                what = f"{writer}/{case}"
                if sys.argv[1:] and not any(word in what for word in sys.argv[1:]):
                    continue
                if what == "other/link_count":  # changes no bytes, and notifies no watcher: stage_watch.h
                    continue
                argv = victim("stage_change", case, ground.make(), writer)
                plain = place.run(argv, library=None)
                ground.make()
                tally.compare(what, plain, place.run(argv, **SETTINGS))
    tally.end()


if __name__ == "__main__":
    harness.main(test)
