#!/usr/bin/python3
# test: timeout=200
"""All processes of a job make one report: steps of a script, and ranks that end together. The next job's
replaces it; whatever is in the way costs no job anything."""
import fcntl
import json
import os
import shlex
import signal

import harness
from harness import claim

STEP = shlex.join(harness.victim("map_scan")) + " >/dev/null"


def shell(place, script, path, library=harness.LIBRARY, words=("bash", "-c"), **settings):
    done = place.run([*words, script], library, SLUICE_REPORT=path, **settings)
    claim(done.returncode == 0, f"{script}: {done.stderr}")
    return done


def read(path):
    with open(path, encoding="utf-8") as text:
        return json.load(text)


def merges(place, path, script, count, library, words, more):
    before = read(path)["job"]
    shell(place, script, path, library, words, **more)
    found = read(path)
    what = f"{words}: {script}: {found}"
    claim(found["job"] != before, f"one job with the one before; {what}")
    # A process waits for the others' reports, and for the optimizer, only so long.
    harness.in_time(found["processes"] == count and found["mappings_armed"] == 2 * count, what)
    claim(len(found["history"]["time_ns"]) == len(found["history"]["read_bytes"]), what)


def test(place):
    path = os.path.join(place.work, "reports", "report.json")
    os.mkdir(os.path.dirname(path))
    shell(place, STEP, path)
    one = read(path)
    claim(one["processes"] == 1 and one["mappings_armed"] == 2, f"{one}")
    for words in ("bash", "-c"), ("dash", "-c"), (os.path.join(harness.BUILD, "sluice"), "run", "--", "sh", "-c"):
        library = None if "run" in words else harness.LIBRARY
        more = dict(place.environment(), LD_PRELOAD=None) if library is None else {}
        for script, count in ((f"{STEP}; true; {STEP}", 2), (f"{STEP} & {STEP} & {STEP} & wait", 3),
                              (f"{STEP} & {STEP}; sh -c {shlex.quote(STEP)}; wait", 3)):
            harness.repeated(place, merges, place, path, script, count, library, words, more)
    page = os.path.join(place.work, "page.html")
    made = place.run([os.path.join(harness.BUILD, "sluice"), "report", path, "--out", page], library=None)
    claim(made.returncode == 0, made.stderr)
    with open(page, encoding="utf-8") as text:
        claim("Of 3 programs that the job ran" in text.read(), "the page does not say whose figures these are")
    in_the_way(place, path)
    claim(os.listdir(os.path.dirname(path)) == ["report.json"], f"left: {os.listdir(os.path.dirname(path))}")
    # A job without a report has the environment that it was given.
    plain = place.run(["sh", "-c", "env | grep -c SLUICE_JOB"])
    claim(plain.stdout == "0\n", "SLUICE_JOB unasked")


def in_the_way(place, path):
    both = f"{STEP}; {STEP}"
    # Another process holds the lock for longer than any job would wait.
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    shell(place, both, path)
    claim(read(path)["processes"] == 2, "a lock that is held")
    os.close(folder)
    # What is there is no report, or half of one.
    for text in "", "{", '{\n  "job": 1,\n  "processes": 9', "x" * 100000, "\0" * 5000:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        shell(place, both, path)
        claim(read(path)["processes"] == 2, f"after {text[:20]!r}")
    # A symbolic link stays one; another user's folder, and a device, are written as they are.
    target, link = os.path.join(place.work, "target.json"), os.path.join(place.work, "link.json")
    with open(target, "w", encoding="utf-8"):
        pass
    os.symlink(target, link)
    shell(place, STEP, link)
    claim(os.path.islink(link) and read(target)["mappings_armed"] == 2, "a symbolic link was replaced")
    done = shell(place, STEP, "/dev/full")
    claim("SLUICE_REPORT=/dev/full" in done.stderr, done.stderr)
    shell(place, STEP, "/dev/null")
    claim(not os.path.exists("/dev/null.new") and os.path.exists("/dev/null"), "/dev/null was replaced")
    # What ended before the job was killed has its report.
    killed = place.run(["bash", "-c", f"{STEP}; {STEP}; kill -9 $$"], SLUICE_REPORT=path)
    claim(killed.returncode == -signal.SIGKILL, f"status {killed.returncode}")
    claim(read(path)["processes"] == 2, "a job that was killed")


if __name__ == "__main__":
    harness.main(test)
