#!/usr/bin/python3
# test: timeout=180
"""Which of millions of samples an epoch fetches takes longer than a job waits for an answer otherwise: it
waits as long as the optimizer works on it, and no longer than a moment where the optimizer is stopped or killed."""
import os
import signal
import sys

import harness
from harness import claim

COUNT = 4_000_000
JOB = f"""
import array, random, sys, threading, time
sys.path.insert(0, {os.path.join(harness.TOP, "adapters/python")!r})
import sluice
number = sluice.dataset("set", {COUNT})
chance = random.Random(1)
values = array.array("d", [chance.random() for _ in range(1 << 19)])
for first in range(0, {COUNT}, len(values)):
    some = min(len(values), {COUNT} - first)
    sluice.report_importance(number, array.array("Q", range(first, first + some)), values[:some])
all_samples = bytearray(b"\\1") * {COUNT}
print("asking", flush=True)
sys.stdin.readline()
done, answers = threading.Event(), 0
def others():
    global answers
    while not done.is_set():
        answers += sluice.dataset("other", 10) > 0 and not done.is_set()
other = threading.Thread(target=others)
other.start()
began = time.monotonic()
chosen = sluice.select(number, 6, all_samples)
done.set()
took = time.monotonic() - began
other.join()
print("none" if chosen is None else sum(chosen) / {COUNT}, took, answers, flush=True)
"""


def processor_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as text:
        fields = text.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def ask(place, number=None):
    """What the job says; with `number`, that signal is sent to the optimizer while it is choosing."""
    job = place.start([sys.executable, "-c", JOB], stdin=harness.subprocess.PIPE,
                      SLUICE_IMPORTANCE="iis")
    claim(job.stdout.readline() == "asking\n", "the job does not come to its question")
    optimizer, = place.optimizers()
    before = processor_ticks(optimizer)
    job.stdin.write("now\n")
    job.stdin.flush()
    if number is not None:
        harness.until(lambda: processor_ticks(optimizer) > before + 5 or job.poll() is not None, 30,
                      "the optimizer is at it")
        os.kill(optimizer, number)
    out, err = harness.communicate(job, 60)
    if number == signal.SIGSTOP:
        os.kill(optimizer, signal.SIGCONT)
    claim(job.returncode == 0, err)
    share, seconds, answers = out.split()
    return share, float(seconds), int(answers), err


def test(place):
    share, seconds, answers, err = ask(place)
    claim(share != "none", f"no answer in {seconds:.1f} s: {err}")
    claim(0.45 < float(share) < 0.55, share)
    # Another thread's questions do not wait for that one.
    claim(answers > 3, f"{answers} answers to others in {seconds:.1f} s")
    place.patience = None
    for number, most in ((signal.SIGSTOP, 4), (signal.SIGKILL, 3)):
        for _ in range(5):
            share, seconds, _, err = ask(place, number)
            if share == "none":  # else it was done before the signal came
                break
        claim(share == "none", f"{number.name}: never in time")
        # A second without a word; a busy machine takes its time with the rest.
        claim(seconds < most, f"{number.name}: {seconds:.1f} s; {err}")


if __name__ == "__main__":
    harness.main(test)
