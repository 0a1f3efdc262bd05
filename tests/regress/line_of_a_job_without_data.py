#!/usr/bin/python3
"""A job that met no data, but had SIGSEGV of its own (blocked, sent, handled), was followed by a line
about what had been pre-cached; and one that waited in a read, of its own program for example, left a report."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
import harness
from harness import claim

JOB = """
import os, signal, time
seen = []
signal.signal(signal.SIGSEGV, lambda number, frame: seen.append(number))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGSEGV])
os.kill(os.getpid(), signal.SIGSEGV)
print(len(seen), signal.SIGSEGV in signal.sigpending())
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGSEGV])
os.kill(os.getpid(), signal.SIGSEGV)
print(len(seen))
def waits(pid):  # in read()
    with open(f"/proc/{pid}/syscall") as text:
        return text.read().split()[0] == "0"
os.mkfifo("slow")
if os.fork() == 0:
    with open("slow", "wb", 0) as slow:
        slow.write(bytes(1000))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not waits(os.getppid()):
            os.sched_yield()
        slow.write(bytes(1000))
    os._exit(0)
slow = os.open("slow", os.O_RDONLY)
print([len(os.read(slow, 1000)) for _ in range(2)])
os.unlink("slow")
"""


def test(place):
    argv = [sys.executable, "-c", JOB]
    plain, under = place.run(argv, library=None), place.run(argv)
    harness.same(plain, under, "the job")
    claim(not harness.sluice_lines(under), f"it was reported on: {under.stderr}")
    report = os.path.join(place.work, "report.json")
    place.run(argv, SLUICE_REPORT=report)
    claim(not os.path.exists(report), "a report was written")


if __name__ == "__main__":
    harness.main(test)
