#!/usr/bin/python3
# test: timeout=120
"""What compares jobs with and without Sluice finds every kind of difference, and takes no job for the same that fails, or
prints less than it should, in both runs: see tests/stack."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "stack"))
import compare  # noqa: E402
import harness  # noqa: E402
import stage_testing  # noqa: E402
from harness import claim  # noqa: E402

JOB = compare.Job("tampered", "tampered.py")
FOUND = ["order: indices", "byte: bytes", "loss: losses", "generator: states", "exception: raised", "quantity: more",
         "absent: only without Sluice", "added: only under Sluice"]
ENDS = ["status: 0 plain, 3 under", "printed: ['one', 'two'] plain, ['two', 'one'] under",
        "said: ['file.py:6: UserWarning: # workers'] plain, ['file.py:7: UserWarning: # workers'] under",
        "Sluice has seen nothing of the job", "Sluice has seen no samples"]


def refused(comparison, case, what):
    try:
        comparison.compare([case])
    except harness.Failure as failure:
        claim(what in str(failure), f"{case}: {failure}")
        return
    claim(False, f"{case}: taken for a comparison")


def test(place):
    with compare.Comparison(place, harness.torch2(), JOB) as comparison:
        outcome = comparison.compare()
        claim(outcome.cases == len(comparison.cases), f"{outcome.cases} cases counted")
        expected = []
        for variant in compare.VARIANTS:
            expected += [f"tampered ({variant}), {line}" for line in FOUND] + [f"tampered ({variant}): {line}" for line in ENDS]
        expected.append("tampered (loss): Sluice has observed no losses")
        left = list(outcome.differences)
        for start in expected:
            match = [line for line in left if line.startswith(start)]
            claim(len(match) == 1, f"{start}: found {match} in {outcome.differences}")
            left.remove(match[0])
        claim(not left, f"differences where there are none: {left}")
        refused(comparison, "breaks", "a job that fails in any run")
        refused(comparison, "vanishes", "not printed or not listed")
    print(f"{len(expected)} differences found")


if __name__ == "__main__":
    stage_testing.need_slow_mounts()
    harness.main(test)
