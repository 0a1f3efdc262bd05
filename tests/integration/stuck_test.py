#!/usr/bin/python3
"""A test whose job does not end says what the job's processes are at, and leaves none of them: one that held the job's
output open made the test itself run until its timeout, with nothing said."""
import sys

import harness
import stuck

FORKS = """
import faulthandler, os, signal
faulthandler.register(signal.SIGUSR2)
def in_the_child():
    print(os.getpid(), flush=True)
    while True:  # it returns after each dump
        signal.pause()
if os.fork() == 0:
    os.setsid()
    in_the_child()
while True:
    signal.pause()
"""


def run(place):
    try:
        place.run([sys.executable, "-c", FORKS], library=None, timeout=3)
    except harness.Failure as failure:
        said = str(failure)
    else:
        raise harness.Failure("it ended")
    child = next(line for line in said.splitlines() if line.isdigit())
    harness.claim("in in_the_child" in said, f"not where the child is: {said}")
    harness.claim(f"{child}: {sys.executable} -c" in said, f"not its processes: {said}")
    harness.until(lambda: not stuck.read(child, "cmdline"), 20, "the end of the job's child")


harness.main(run)
