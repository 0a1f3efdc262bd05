#!/usr/bin/python3
# test: timeout=300 alone long
"""The optimizer is killed, stopped, slow or absent at 200 random moments; every job ends with the
right digest, and all that costs no more than a fixed small delay.   chaos [SEED]"""
import os
import random
import shutil
import signal
import statistics
import sys
import threading
import time

import harness
from harness import claim

MOMENTS = 200
PASSES = 30
# Seconds that one job may lose to an optimizer in trouble, beyond what the machine's noise costs:
# handshakes have deadlines, and everything else is not waited for.
ALLOWED_EACH = 1.0
ALLOWED_MEDIAN = 0.25


def slow(pid, over):
    """Gives the optimizer one twentieth of its time."""
    while not over.is_set():
        try:
            os.kill(pid, signal.SIGSTOP)
            over.wait(0.019)
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return
        over.wait(0.001)


def moment(place, how, delay, bare, mode):
    over, helpers = threading.Event(), []
    hurt = []
    started = time.monotonic()
    job = place.start(harness.victim("steady", PASSES), SLUICE_CHECKPOINT=mode,
                      library=bare if how == "absent" else harness.LIBRARY)
    harness.ended_within(job, delay)
    for pid in place.optimizers() if how != "absent" else []:
        try:
            if how == "kill":
                os.kill(pid, signal.SIGKILL)
            elif how == "stop":
                os.kill(pid, signal.SIGSTOP)
            elif how == "slow":
                helpers.append(threading.Thread(target=slow, args=(pid, over)))
                helpers[-1].start()
            hurt.append(pid)
        except ProcessLookupError:
            pass
    try:
        out, err = harness.communicate(job, 60)
    finally:
        over.set()
        job.kill()
        for helper in helpers:
            helper.join()
        for pid in hurt if how == "stop" else []:
            os.kill(pid, signal.SIGKILL)
    return job.returncode, out, err, time.monotonic() - started, bool(hurt)


def test(place):
    place.patience = None
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed} (again: tests/integration/chaos {seed})", flush=True)
    draw = random.Random(seed)
    # Without an optimizer beside it the library finds none to start.
    bare = os.path.join(place.folder, "bare", "libsluice.so")
    os.mkdir(os.path.dirname(bare))
    shutil.copy(harness.LIBRARY, bare)
    plain = place.run(harness.victim("steady", PASSES), library=None)
    claim(plain.returncode == 0, plain.stderr)
    calm = [place.run(harness.victim("steady", PASSES)).seconds for _ in range(5)]
    usual = statistics.median(calm)
    lost, struck = {}, 0
    for number in range(MOMENTS):
        how = draw.choice(["kill", "stop", "slow", "absent"])
        mode = draw.choice(["cell", "cell", "page", "observe"])
        delay = draw.uniform(0, usual)
        status, out, err, seconds, hurt = moment(place, how, delay, bare, mode)
        what = f"moment {number}, {how} after {delay:.3f} s, {mode}"
        claim(status == 0 and out == plain.stdout, f"{what}: status {status}, output {out!r}, {err}")
        lost.setdefault(how, []).append(seconds - usual)
        struck += hurt
        claim(seconds < max(calm) + ALLOWED_EACH, f"{what}: {seconds:.2f} s instead of {usual:.2f}")
    for how, seconds in sorted(lost.items()):
        print(f"{how}: {len(seconds)} times, lost {statistics.median(seconds) * 1000:.0f} ms in the "
              f"median, {max(seconds) * 1000:.0f} ms at most")
        claim(statistics.median(seconds) < ALLOWED_MEDIAN, f"{how} costs too much")
    claim(struck > MOMENTS / 4, f"only {struck} of {MOMENTS} moments found an optimizer to hurt")


if __name__ == "__main__":
    harness.main(test)
