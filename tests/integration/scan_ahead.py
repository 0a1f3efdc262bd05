#!/usr/bin/python3
# test: timeout=200
"""Jobs that walk through a tree on a slow mount find its folders listed, and see what they see without Sluice; those
that look into a folder or two start nothing. A folder that changes meanwhile is seen as it is."""
import os
import shutil
import signal
import sys

import harness
import slowfs_harness
import stage_testing
from harness import claim, in_time

FOLDERS, FILES = 60, 4
LISTINGS = 32  # on a mount at a time, as optimizer/services/scans.h has it
WALK = """
import os, sys
for folder, folders, names in os.walk(sys.argv[1]):
    print(folder, folders, [(name, os.stat(os.path.join(folder, name)).st_size) for name in names])
"""
# As torchvision's ImageFolder does.
SORTED = """
import os, sys
for name in sorted(entry.name for entry in os.scandir(sys.argv[1]) if entry.is_dir()):
    for folder, _, names in sorted(os.walk(os.path.join(sys.argv[1], name), followlinks=True)):
        print(folder, sorted(names))
"""
FEW = """
import os, sys
print(sorted(os.listdir(sys.argv[1])), os.listdir(os.path.join(sys.argv[1], "class-7")))
"""
# Adds a file to a folder that may have been listed ahead, from outside of the mount, and removes one.
CHANGES = """
import os, sys
for number, folder in enumerate(sorted(os.listdir(sys.argv[1]))):
    if number == 20:
        os.mkdir(os.path.join(sys.argv[2], "class-9", "new"))
        os.unlink(os.path.join(sys.argv[2], "class-9", "f0"))
    if number < 20:
        print(os.listdir(os.path.join(sys.argv[1], folder)))
"""


def make(folder, deep):
    for number in range(FOLDERS):
        above = os.path.join(folder, f"class-{number * 37 % FOLDERS}")
        for sub in [os.path.join(above, name) for name in ("a", "b")] if deep else [above]:
            os.makedirs(sub)
            for file in range(FILES):
                with open(os.path.join(sub, f"f{file}"), "wb") as out:
                    out.write(b"x" * (number + file))


def requests(mount, command):
    """For names, attributes and folders, of all processes of this name."""
    return sum(process[kind] for process in mount.stats()["processes"].values() if process["command"] == command
               for kind in ("lookup", "getattr", "opendir", "readdir"))


class Test:
    def __init__(self, place):
        self.place, self.made = place, {}
        for deep in (False, True):
            self.made[deep] = os.path.join(place.work, f"tree-{deep}")
            make(self.made[deep], deep)

    def run(self, mount, argv, **settings):
        report = os.path.join(self.place.work, "report.json")
        done = self.place.run(argv, timeout=100, **{**stage_testing.by_default(report), **settings})
        claim(done.returncode == 0, done.stderr)
        return done, harness.take_report(report), requests(mount, os.path.basename(argv[0]))

    def both(self, deep, argv, *options):
        """The requests of the job's own processes without Sluice and with it, and how many folders were listed."""
        outcomes = []
        for library in (None, harness.LIBRARY):
            with slowfs_harness.Mount(self.place.folder, self.made[deep], "--latency", "4", "--attr-timeout", "30",
                                      "--entry-timeout", "30", *options) as mount:
                command = [word.replace("{}", mount.point) for word in argv]
                done, found, asked = self.run(mount, command, LD_PRELOAD=library)
                outcomes.append((done.stdout.replace(mount.point, ""), done.stderr, asked, found))
            harness.drive.end_optimizer(self.place.sockets)
        plain, under = outcomes
        claim(plain[0] == under[0], f"{argv}: {stage_testing.first_difference(plain[0], under[0])}")
        claim(plain[1] == under[1], f"{argv}: {under[1]}")
        return plain[2], under[2], under[3].get("folders_listed", 0)

    def walks(self):
        python = sys.executable
        jobs = [("os.walk", [python, "-c", WALK, "{}"]), ("sorted", [python, "-c", SORTED, "{}"]),
                ("find", ["find", "{}", "-type", "f", "-size", "+1c", "-printf", "%p %s\\n"])]
        if not shutil.which("find"):
            jobs.pop()
        for name, argv in jobs:
            for deep in (False, True):
                harness.repeated(self.place, self.walk, name, argv, deep)
        # A mount that caches no listings: nothing is won but names and attributes, and nothing differs.
        self.both(False, jobs[0][1])

    def walk(self, name, argv, deep):
        plain, under, listed = self.both(deep, argv, "--cache-folders")
        print(f"{name}, {'deep' if deep else 'flat'}: {plain} requests, {under} under Sluice, {listed} folders")
        in_time(listed > FOLDERS // 2, f"{name}: {listed} folders were listed ahead")
        in_time(under < 0.7 * plain, f"{name}, deep {deep}: {under} requests of the job's own, {plain} without")

    def few(self):
        with slowfs_harness.Mount(self.place.folder, self.made[False], "--latency", "4") as mount:
            self.run(mount, [sys.executable, "-c", FEW, mount.point])
            claim(not self.place.optimizers(), "an optimizer was started for two folders")

    def changed(self):
        """What was listed ahead is no older than what the mount's own timeouts allow: none here."""
        with slowfs_harness.Mount(self.place.folder, self.made[False], "--latency", "4", "--attr-timeout", "0",
                                  "--entry-timeout", "0", "--cache-folders") as mount:
            self.run(mount, [sys.executable, "-c", CHANGES, mount.point, self.made[False]])
            listed = self.place.run(["ls", "-U", mount.path("class-9")])
            claim(listed.stdout.split() == os.listdir(os.path.join(self.made[False], "class-9")), listed.stdout)


    def beside_hung(self):
        """A server died while its tree was walked: as many listings as are made at a time wait there for good."""
        harness.drive.end_optimizer(self.place.sockets)  # it knows a mount of changed() by its device number
        options = "--attr-timeout", "30", "--entry-timeout", "30", "--cache-folders"
        argv = [sys.executable, "-c", WALK]
        with slowfs_harness.Mount(self.place.folder, self.made[True], "--latency", "200", *options) as hung, \
                slowfs_harness.Mount(self.place.folder, self.made[True], "--latency", "4", *options) as other:
            first = self.place.start([*argv, hung.point], **stage_testing.by_default(os.path.join(self.place.work, "r")))
            pids = harness.until(self.place.optimizers, 30, "an optimizer runs")
            harness.until(lambda: first.poll() is not None or harness.waits_for_fuse(self.place, pids) >= LISTINGS, 60,
                          "folders are listed")
            claim(first.poll() is None, "the walk ended before so many folders were listed at a time")
            os.kill(hung.pid, signal.SIGSTOP)
            try:
                stuck = harness.waits_for_fuse(self.place)
                _, found, _ = self.run(other, [*argv, other.point])
                claim(first.poll() is None, "the walk on the hung mount has ended")
            finally:
                os.kill(hung.pid, signal.SIGCONT)
            _, err = harness.communicate(first, 100)
            claim(first.returncode == 0, err)
            harness.drive.end_optimizer(self.place.sockets)
        print(f"beside {stuck} listings that hang {found['folders_listed']} folders were listed")
        claim(found["folders_listed"] > FOLDERS // 2, f"{found['folders_listed']} folders were listed beside a hung mount")


def test(place):
    stage_testing.need_slow_mounts()
    tests = Test(place)
    tests.walks()
    tests.few()
    tests.changed()
    tests.beside_hung()


if __name__ == "__main__":
    harness.main(test)
