#!/usr/bin/python3
# test: timeout=200
"""How many samples an epoch fetches, and which: the adapter and the optimizer have one rule, so that ranks with
one optimizer and with none have equally many batches; the choice follows from the job's seed."""
import os
import sys

import harness
from harness import claim

sys.path.insert(0, os.path.join(harness.TOP, "adapters/pytorch"))
from sluice_torch import turns  # noqa: E402


def number_rule():
    """What turns.py says, of itself."""
    rule = (5, 3, 0.5)
    full = [epoch for epoch in range(20) if turns.fetches_all(epoch, 5, 3)]
    claim(full == [0, 1, 2, 3, 4, 7, 10, 13, 16, 19], f"full epochs: {full}")
    claim(not any(turns.fetches_all(epoch, 0, 0) for epoch in range(20)), "full epochs without any")
    claim(turns.due(100, 8, 4, rule) == 100, "warming up")
    claim(turns.due(100, 8, 5, rule) == 56, "half, in whole batches")
    claim(turns.due(100, 200, 5, rule) == 100, "no more than there are")
    claim(turns.due(100, 8, 5, (5, 3, 0.0001)) == 8, "one batch at least")
    claim(turns.due(100, 8, 5, (5, 3, 1.0)) == 100, "a last batch that is not whole")
    claim(turns.due(1, 8, 5, rule) == 1, "a single sample")
    for length in range(1, 40):
        for wanted in range(1, length + 1):
            for turn in 0, 1, 7:
                values = turns.spread(range(length), wanted, turn)
                claim(len(set(values)) == wanted, f"spread {length} {wanted} {turn}")
            for takes in (lambda p, i: True, lambda p, i: False, lambda p, i: i % 3 == 0):
                taken = list(turns.exactly(range(length), wanted, length, takes))
                claim(len(set(taken)) == wanted, f"exactly {wanted} of {length}: {taken}")
            chosen = [number % 3 == 1 for number in range(length)]
            fitted = turns.fitted(range(length), chosen, wanted, 5)
            good = sum(chosen[index] for index in fitted)
            claim(len(set(fitted)) == wanted and good == min(sum(chosen), wanted), f"fitted: {fitted}")
    course = turns.Course()
    first, second = turns.Turn(course), turns.Turn(course)
    first.give()
    claim(turns.Turn(course).number == 0, "a rank that only looked at a batch has trained")
    second.give()
    second.give()
    third = turns.Turn(course)
    first.give()  # continues beside the others
    third.give()
    claim(third.number == 1 and turns.Turn(course).number == 1, "epochs that overlap count twice")
    third.end()
    claim(turns.Turn(course).number == 2, "an epoch of a single batch does not count")


SELECTOR = """
import sys
sys.path.insert(0, sys.argv[1])
import sluice
count = 4000
data = sluice.dataset("numbers", count)
sluice.report_importance(data, range(count), [float(i) for i in range(count)])
print(*sluice.selection())
for epoch in range(30):
    print(sum(sluice.select(data, epoch, bytearray(b"\\1" * count))) / count)
"""


def same_rule(place):
    """The optimizer's selector and turns.py have one rule for full epochs, and the share is its mean."""
    argv = [sys.executable, "-c", SELECTOR, os.path.join(harness.TOP, "adapters/python")]
    for options, share in (("iis", 1 / 2), ("iis:warmup=0,full-every=0,beta=300", 1 / 4),
                           ("iis:warmup=3,full-every=1", 1 / 2), ("iis:warmup=2,full-every=5,share=30", 0.3)):
        done = place.run(argv, SLUICE_IMPORTANCE=options)
        claim(done.returncode == 0, done.stderr)
        first, *epochs = done.stdout.splitlines()
        warm_up, full_every, reported = (kind(word) for kind, word in zip((int, int, float), first.split()))
        claim(abs(reported - share) < 1e-9, f"{options}: the share is {reported}")
        shares = [float(epoch) for epoch in epochs]
        for epoch, got in enumerate(shares):
            claim((got == 1) == turns.fetches_all(epoch, warm_up, full_every), f"{options}: epoch {epoch}: {got}")
        part = [got for got in shares if got < 1]
        claim(not part or abs(sum(part) / len(part) - share) < 0.02, f"{options}: {part} are not {share}")


SEEDED = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
import sluice
count = 10000
data = sluice.dataset("seeded", count)
if sys.argv[2]:
    sluice.seed(int(sys.argv[2]))
sluice.report_importance(data, range(count), [float(i) for i in range(count)])
for epoch in range(2):
    print(hashlib.sha256(sluice.select(data, epoch, bytearray(b"\\1" * count))).hexdigest())
"""


def seeds(place):
    """What is chosen follows from the job's seed, or from the one that the user gave."""
    def chosen(job, options="iis:warmup=0,full-every=0"):
        done = place.run([sys.executable, "-c", SEEDED, os.path.join(harness.TOP, "adapters/python"), job],
                         SLUICE_IMPORTANCE=options)
        claim(done.returncode == 0, done.stderr)
        harness.drive.end_optimizer(place.sockets)
        return done.stdout.split()
    claim(chosen("7") == chosen("7"), "one seed, two choices")
    claim(chosen("7")[0] != chosen("7")[1], "all epochs alike")
    claim(chosen("7") != chosen("8"), "two seeds, one choice")
    claim(chosen("") == chosen("1"), "no seed is not 1")
    given = "iis:warmup=0,full-every=0,seed=9"
    claim(chosen("7", given) == chosen("8", given) == chosen("9"), "the user's seed does not win")
    claim(chosen(str(-1)) == chosen(str((1 << 64) - 1)), "not modulo 2^64")


def test(place):
    number_rule()
    same_rule(place)
    seeds(place)


if __name__ == "__main__":
    harness.main(test)
