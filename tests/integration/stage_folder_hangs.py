#!/usr/bin/python3
# test: timeout=240
"""A server that answers nothing, not even for the names of folders: threads of the optimizer wait in a folder's
look-up, some for another's. A job on another mount is supplied meanwhile, and the first goes on afterwards."""
import json
import os
import random
import signal
import sys

import harness
import stage_testing
from harness import claim, until
from stage_testing import Ground

FOLDERS, FILES, BYTES = 4, 48, 20_000
STAT = {"4", "262", "332"}  # stat, newfstatat, statx: what a folder is looked up with
JOB = stage_testing.epoch_of_files(
    f"[os.path.join(above, str(number % {FOLDERS}), str(number)) for number in range({FILES})]", 4, 2)
# Names expire at once. Fewer look-ups than after which paths are no longer visited.
MOUNT = "--entry-timeout", 0.05, "--attr-timeout", 0.05


def ground(place, name, latency):
    made = Ground(place, name, latency, *MOUNT)
    draw = random.Random(name)
    for number in range(FILES):
        path = os.path.join(made.source, "data", str(number % FOLDERS), str(number))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(draw.randbytes(BYTES))
    return made


def threads_in_look_ups(place):
    """How many threads of the optimizer wait for a folder's name."""
    return sum(text.split()[0] in STAT for text in harness.of_threads(place, "syscall"))


def stops_in_a_look_up(place, server):
    """Stops the server while a thread looks a folder up. False: the answer came first."""
    if threads_in_look_ups(place) == 0:
        return False
    os.kill(server, signal.SIGSTOP)
    for _ in range(100):  # an answer that was on its way arrives
        if threads_in_look_ups(place) == 0:
            os.kill(server, signal.SIGCONT)
            return False
    return True


def test(place):
    harness.need_modules("torch")
    stage_testing.need_slow_mounts()
    if os.geteuid() != 0 or os.uname().machine != "x86_64":
        harness.skip("root is needed to see what threads wait for, and the numbers of system calls of x86-64")
    settings = {**stage_testing.SETTINGS, "SLUICE_STALE": None}
    report = os.path.join(place.work, "report.json")
    job = [sys.executable, "-W", "ignore", "-c", JOB]
    with ground(place, "hung", 100) as hung, ground(place, "other", 2) as other:
        def runs(where, library, **more):
            done = place.run([*job, where.folder()], library=library, timeout=100, **settings, **more)
            claim(done.returncode == 0, done.stderr)
            return done

        natives = {where.name: runs(where, None).stdout for where in (hung, other)}
        first = place.start([*job, hung.folder()], **settings)
        until(lambda: first.poll() is not None or stops_in_a_look_up(place, hung.mount.pid), 60, "a folder is looked up")
        try:
            beside = runs(other, harness.LIBRARY, SLUICE_REPORT=report)
            claim(threads_in_look_ups(place) > 0, "no thread waits for a folder any more")
            claim(first.poll() is None, "the job on the hung mount has ended")
        finally:
            os.kill(hung.mount.pid, signal.SIGCONT)
        out, err = harness.communicate(first, 100)
        claim(first.returncode == 0 and out == natives["hung"], f"after the hang: {first.returncode} {err}")
        claim(beside.stdout == natives["other"], "other bytes beside a hung mount")
        with open(report, encoding="utf-8") as text:
            counts = json.load(text)
        supplied = counts["sample_hits"] + counts["sample_late"]
        print(f"{supplied} of {FILES} samples of the other job were supplied, in {beside.seconds:.1f} s")
        claim(supplied > FILES / 4, f"the other job was not supplied: {counts}")


if __name__ == "__main__":
    harness.main(test)
