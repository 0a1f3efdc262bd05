#!/usr/bin/python3
# test: timeout=300
"""A job with policy pool waited for as long as it waits for an optimizer at all where the file system of SLUICE_CACHE_DIR
answered nothing: the optimizer works on the question, as it said, but had no deadline for it."""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
import stage_testing
from harness import claim
from stage_testing import Ground

FILES, BYTES = 64, 2000
JOB = stage_testing.epoch_of_files(f"[os.path.join(above, str(number)) for number in range({FILES})]", 4, 2)
NO_ANSWER = "does not answer"


def test(place):
    harness.need_modules("torch")
    stage_testing.need_slow_mounts()
    data = os.path.join(place.work, "samples")
    os.makedirs(data, exist_ok=True)
    for number in range(FILES):
        with open(os.path.join(data, str(number)), "wb") as file:
            file.write(os.urandom(BYTES))
    job = [sys.executable, "-W", "ignore", "-c", JOB, data]
    native = place.run(job, library=None, timeout=100)
    claim(native.returncode == 0, native.stderr)
    with Ground(place, "cache", 1) as hung:
        os.mkdir(os.path.join(hung.source, "folder"))
        os.kill(hung.mount.pid, signal.SIGSTOP)
        try:
            # 80 s, for an optimizer that works
            settings = {**stage_testing.SETTINGS, "SLUICE_CACHE_DIR": hung.folder("folder"), "SLUICE_SUBSTITUTE": "any"}
            for policy in "pool", "brand", "lcache", "auto":
                under = place.run(job, timeout=60, **settings, SLUICE_POLICY=policy)
                claim(under.returncode == 0 and under.stdout == native.stdout, f"{policy}: {under.returncode} {under.stderr}")
                print(f"{policy}: {under.seconds:.1f} s, {native.seconds:.1f} s without")
        finally:
            os.kill(hung.mount.pid, signal.SIGCONT)
        with open(os.path.join(place.sockets, "s.log"), encoding="utf-8") as log:
            claim(NO_ANSWER in log.read(), "no line says why no chunks were read")


if __name__ == "__main__":
    harness.main(test)
