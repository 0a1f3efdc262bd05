#!/usr/bin/python3
# test: timeout=600
"""Under `iis`, what is said to come from memory does: samples that were promised as hits are compared with the
files that were opened on the storage in each epoch, where a file takes more memory than it holds bytes, and where
not; and every answer is counted once.

importance_memory [NUMBER...]: of promises.SETTINGS, only these."""
import json
import os
import sys

import harness
import stage_testing
from harness import claim
from stage_testing import Ground

sys.path.insert(0, harness.TOP)
from bench.lib import promises  # noqa: E402

MOST = 0.01  # of promised hits: that were read from storage after all, or that were lost


def measure(place, setting):
    count, size, memory, epochs = setting
    with Ground(place, "mount", *promises.MOUNT[1:]) as ground:
        data = os.path.join(ground.source, "data")
        promises.make(data, count, size)
        opened = promises.Opened(data)
        settings = {f"SLUICE_{name.upper()}": value for name, value in promises.ASKED.items()}
        done = place.run(promises.command(ground.folder("data"), epochs, data), timeout=250, SLUICE_MEMORY=memory,
                         SLUICE_DATASET=None, SLUICE_CHECKPOINT=None, **settings)
        claim(done.returncode == 0, done.stderr)
        return promises.Promises(json.loads(done.stdout), opened.end())


def check(place, setting):
    found = measure(place, setting)
    what = f"{setting}: {found.status}"
    print(f"{found.read_again / found.promised:.4f} of {found.promised} promised hits were read from "
          f"storage; {what}", flush=True)
    answers = found.hits + found.status["misses"]
    claim(answers == found.trained, f"{answers} answers, {found.trained} trained; {what}")
    claim(found.hits + found.status["broken"] == found.promised, f"{found.promised} hits promised; {what}")
    claim(found.asked > 0.9 * found.status["misses"], f"only {found.asked} opens were seen; {what}")
    claim(found.hits > found.trained / 50, f"hardly a hit; {what}")
    # An optimizer that does not run for a second is taken for dead: then originals are read.
    harness.in_time(found.read_again <= MOST * found.promised, f"{found.read_again} hits were no hits; {what}")
    harness.in_time(found.status["broken"] <= MOST * found.promised, f"hits were lost; {what}")


def test(place):
    stage_testing.need_slow_mounts()
    for number, setting in enumerate(promises.SETTINGS):
        if sys.argv[1:] and str(number) not in sys.argv[1:]:
            continue
        harness.repeated(place, check, place, setting)


if __name__ == "__main__":
    harness.main(test)
