#!/usr/bin/python3
# test: timeout=200
"""What a command opened on a slow mount as it started is fetched ahead when it starts again: it sees the same, and its
own process asks the mount for less. What was modified since is read by the job alone."""
import compileall
import os
import shutil
import signal

import harness
import slowfs_harness
import stage_testing
from harness import claim, in_time

MODULES = 60
THREADS = 32  # that fetch for a start, as optimizer/services/starts.h has it
PACKAGES = 30  # of each Python first looks for three extension modules in vain
JOB = """
import os, sys
sys.path.insert(0, sys.argv[1])
import package
total = 0
for number in range(%d):
    module = __import__(f"package.m{number:02}", fromlist=["value"])
    total += module.value
for number in range(%d):
    total += __import__(f"package.p{number:02}", fromlist=["value"]).value
with open(os.path.join(sys.argv[1], "settings"), "rb") as file:
    total += len(file.read())
print(total, package.__name__)
""" % (MODULES, PACKAGES)


class Test:
    def __init__(self, place):
        self.place = place
        self.source = os.path.join(place.work, "source")
        self.places = os.path.join(place.work, "places")
        self.link = os.path.join(place.work, "libraries")  # the same path on each mount
        self.job = os.path.join(place.work, "job.py")
        with open(self.job, "w", encoding="ascii") as out:
            out.write(JOB)
        package = os.path.join(self.source, "package")
        os.makedirs(package)
        for name in ["__init__", *(f"m{number:02}" for number in range(MODULES))]:
            with open(os.path.join(package, name + ".py"), "w", encoding="ascii") as out:
                out.write(f"value = {len(name)}\n" + "# padding\n" * 1000 + "text = '" + "x" * 20000 + "'\n")
        for number in range(PACKAGES):
            folder = os.path.join(package, f"p{number:02}")
            os.makedirs(folder)
            with open(os.path.join(folder, "__init__.py"), "w", encoding="ascii") as out:
                out.write(f"value = {number}\n")
        with open(os.path.join(self.source, "settings"), "wb") as out:
            out.write(os.urandom(3_000_000))
        claim(compileall.compile_dir(package, quiet=1), "the modules do not compile")

    def run(self, library=harness.LIBRARY, lists=1, **settings):
        """Of a run on a fresh mount: what it printed, the report, and the reads and lookups of its own process."""
        report = os.path.join(self.place.work, "report.json")
        with slowfs_harness.Mount(self.place.folder, self.source, "--latency", "5", "--attr-timeout", "30",
                                  "--entry-timeout", "30") as mount:
            self.link_to(mount)
            given = {**stage_testing.by_default(report), "SLUICE_PLACES": self.places, **settings}
            done = self.place.run(["/usr/bin/python3", self.job, self.link], library=library, timeout=100, **given)
            claim(done.returncode == 0, done.stderr)
            own = [process for process in mount.stats()["processes"].values() if process["command"] == "python3"]
            if library is not None and self.places == given["SLUICE_PLACES"]:
                harness.until(lambda: os.path.isdir(self.places) and len(os.listdir(self.places)) >= lists, 20,
                              "a list is stored")
            harness.drive.end_optimizer(self.place.sockets)
        return done, harness.take_report(report), {kind: sum(process[kind] for process in own)
                                                   for kind in ("read", "lookup")}

    def second_start(self):
        plain, _, asked = self.run(library=None)
        first, found, _ = self.run()
        harness.same(plain, first, "the first start")
        claim(found["start_files"] == 0, "files were fetched for a command that never ran")
        claim(asked["lookup"] > 3 * PACKAGES, f"{asked} without Sluice")
        harness.repeated(self.place, self.started_again, plain, asked)

    def started_again(self, plain, asked):
        again, found, less = self.run()
        harness.same(plain, again, "the second start")
        print(f"{found['start_files']} files were fetched ahead; of the job's own {less}, {asked} without")
        in_time(found["start_files"] > MODULES // 2, f"{found['start_files']} files were fetched ahead")
        in_time(less["read"] < asked["read"] * 2 // 3, f"{less} of the job's own, {asked} without Sluice")
        in_time(less["lookup"] < 3 * PACKAGES, f"{less} of the job's own: packages were not looked up ahead")

    def modified(self):
        path = os.path.join(self.source, "settings")
        with open(path, "ab") as out:
            out.write(b"more")
        plain, _, _ = self.run(library=None)
        under, found, _ = self.run()
        harness.same(plain, under, "a modified file")
        claim(found["start_files"] > 0, "nothing was fetched ahead")

    def damaged(self):
        for name in os.listdir(self.places):
            with open(os.path.join(self.places, name), "r+b") as file:
                file.seek(100)
                file.write(b"\0\0\0\0")
        plain, _, _ = self.run(library=None)
        under, _, _ = self.run(SLUICE_LOG="off")
        harness.same(plain, under, "a damaged list")

    def off(self):
        other = os.path.join(self.place.work, "none")
        for settings in ({"SLUICE_PLACES": "off"}, {"SLUICE_PLACES": other, "SLUICE_PREFETCH": "off"}):
            _, found, _ = self.run(**settings)
            claim(found.get("start_files", 0) == 0 and not os.path.exists(other), f"{settings}: {found}")

    def link_to(self, mount):
        if os.path.islink(self.link):
            os.unlink(self.link)
        os.symlink(mount.point, self.link)

    def beside_hung(self):
        """A server died while a command started: as many files as are fetched at a time wait there for good."""
        shutil.rmtree(self.places, ignore_errors=True)
        links = self.link, self.link + "-other"
        for stored, self.link in enumerate(links, 1):
            self.run(lists=stored)
        options = "--attr-timeout", "30", "--entry-timeout", "30"
        with slowfs_harness.Mount(self.place.folder, self.source, "--latency", "200", *options) as hung, \
                slowfs_harness.Mount(self.place.folder, self.source, "--latency", "5", *options) as other:
            report = os.path.join(self.place.work, "report.json")
            given = {**stage_testing.by_default(report), "SLUICE_PLACES": self.places}
            self.link = links[0]
            self.link_to(hung)
            first = self.place.start(["/usr/bin/python3", self.job, self.link],
                                     **{**given, "SLUICE_REPORT": report + "-first"})
            pids = harness.until(self.place.optimizers, 30, "an optimizer runs")
            harness.until(lambda: first.poll() is not None or harness.waits_for_fuse(self.place, pids) >= THREADS, 60,
                          "files are fetched")
            os.kill(hung.pid, signal.SIGSTOP)
            try:
                stuck = harness.waits_for_fuse(self.place)
                self.link = links[1]
                self.link_to(other)
                done = self.place.run(["/usr/bin/python3", self.job, self.link], timeout=100, **given)
                claim(first.poll() is None, "the command on the hung mount has ended")
            finally:
                os.kill(hung.pid, signal.SIGCONT)
            out, err = harness.communicate(first, 100)
            claim(first.returncode == 0 and out == done.stdout, err)
            harness.drive.end_optimizer(self.place.sockets)
        found = harness.take_report(report)["start_files"]
        print(f"beside {stuck} threads that hang {found} files were fetched")
        claim(found > MODULES // 2, f"{found} files were fetched beside a hung mount")


def test(place):
    stage_testing.need_slow_mounts()
    tests = Test(place)
    tests.second_start()
    tests.modified()
    tests.damaged()
    tests.off()
    tests.beside_hung()


if __name__ == "__main__":
    harness.main(test)
