#!/usr/bin/python3
# test: timeout=300
"""Files that were opened ahead of a command as it starts again: what it opens has the same number, flags, offset and
bytes, fails alike, and shows what changed meanwhile; whatever becomes of the optimizer."""
import os
import signal
import sys

import harness
import slowfs_harness
import stage_testing
from harness import claim, in_time

FILES = 120
MIDDLE = 60  # files, then something happens
JOB = """
import ctypes, os, resource, sys
folder, source, what = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
libc.fopen.restype = ctypes.c_void_p
def opens(name, flags, at=-100):
    if what == "stream":
        stream = libc.fopen(name.encode(), b"re" if flags & os.O_CLOEXEC else b"rb")
        return libc.fileno(ctypes.c_void_p(stream))
    fd = libc.openat(at, name.encode(), flags) if at != -100 else libc.open(name.encode(), flags)
    if fd < 0:
        print(name[-4:], "error", ctypes.get_errno())
    return fd
def show(fd):
    if fd < 0:
        return
    about = os.fstat(fd)
    print(fd, libc.fcntl(fd, 1), libc.fcntl(fd, 3), os.lseek(fd, 0, 1), about.st_size, about.st_mode, os.read(fd, 60))
    os.close(fd)
extra = os.O_NONBLOCK | os.O_NOCTTY if what == "nonblocking" else 0
def path(number):
    return os.path.join(folder, f"f{number:03}")
for number in range(%(MIDDLE)d):
    show(opens(path(number), os.O_RDONLY | extra | (os.O_CLOEXEC if number %% 2 else 0)))
if what == "change":
    for number in range(%(MIDDLE)d, %(FILES)d):
        with open(os.path.join(source, f"f{number:03}"), "ab") as out:
            out.write(b"changed")
elif what == "replace":
    for number in range(%(MIDDLE)d, %(FILES)d):
        with open(os.path.join(source, "new"), "wb") as out:
            out.write(b"new %%d" %% number)
        os.rename(os.path.join(source, "new"), os.path.join(source, f"f{number:03}"))
elif what == "remove":
    for number in range(%(MIDDLE)d, %(FILES)d):
        os.unlink(os.path.join(source, f"f{number:03}"))
elif what == "full":
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (held[-1] + 1, held[-1] + 1))
elif what == "gap":
    os.close(0)
elif what == "temporary":
    with open("here", "w"):
        pass
    os.rename("here", "there")
    os.unlink("there")
elif what == "unlink":
    try:
        os.unlink(path(0))
    except OSError as error:
        print(error.errno)
elif what == "confined":
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
elif what == "folder":
    os.chdir(folder)
elif what == "user":
    os.setegid(65534)
    os.seteuid(65534)
elif what == "wait":
    print("half", file=sys.stderr, flush=True)
    sys.stdin.readline()
at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY) if what == "at" else -100
for number in range(%(MIDDLE)d, %(FILES)d):
    name = f"f{number:03}" if what in ("folder", "at") else path(number)
    fds = [opens(name, os.O_RDONLY | extra, at) for _ in range(2 if what == "twice" else 1)]
    for fd in fds:
        show(fd)
""" % {"MIDDLE": MIDDLE, "FILES": FILES}
WHAT = ("nothing", "stream", "twice", "nonblocking", "gap", "temporary", "unlink", "confined", "full", "folder", "at",
        "user", "change", "replace", "remove")


class Test:
    def __init__(self, place):
        self.place = place
        self.source = os.path.join(place.work, "source")
        self.link = os.path.join(place.work, "mount")  # the same path on each mount
        self.places = os.path.join(place.work, "places")
        self.job = os.path.join(place.work, "job.py")
        with open(self.job, "w", encoding="ascii") as out:
            out.write(JOB)
        os.makedirs(self.source)

    def make(self):
        for number in range(FILES):
            path = os.path.join(self.source, f"f{number:03}")
            with open(path, "wb") as out:
                out.write(b"%d " % number * 50)
            os.utime(path, (1_700_000_000, 1_700_000_000))

    def run(self, what, timeout="30", library=harness.LIBRARY, between=None):
        """A run on a fresh mount: how it ended, its report, and how many opens its own process requested."""
        self.make()
        report = os.path.join(self.place.work, "report.json")
        given = {**stage_testing.by_default(report), "SLUICE_PLACES": self.places}
        with slowfs_harness.Mount(self.place.folder, self.source, "--latency", "4", "--attr-timeout", timeout,
                                  "--entry-timeout", timeout) as mount:
            if os.path.islink(self.link):
                os.unlink(self.link)
            os.symlink(mount.point, self.link)
            command = ["/usr/bin/python3", self.job, self.link, self.source, what]
            if between is None:
                done = self.place.run(command, library=library, timeout=100, **given)
            else:
                done = self.waiting(command, library, between, given)
            own = [process for process in mount.stats()["processes"].values() if process["command"] == "python3"]
            if library is not None:
                harness.until(lambda: os.path.isdir(self.places) and os.listdir(self.places), 20, "a list is stored")
            for pid in self.place.optimizers():
                os.kill(pid, signal.SIGCONT)  # a stopped one could not end
            harness.drive.end_optimizer(self.place.sockets)
        return done, harness.take_report(report), sum(process["open"] for process in own)

    def waiting(self, command, library, between, given):
        """The job's first half, then what happens between, then the rest."""
        job = self.place.start(command, library, stdin=harness.subprocess.PIPE, **given)
        line = job.stderr.readline()
        while line and line != "half\n":
            line = job.stderr.readline()
        between()
        out, err = job.communicate("\n", timeout=100)
        return harness.subprocess.CompletedProcess(command, job.returncode, out, err)

    def alike(self, what, timeout):
        plain, _, asked = self.run(what, timeout, library=None)
        under, found, own = self.run(what, timeout)
        claim(under.stdout == plain.stdout and under.returncode == plain.returncode,
              f"{what}: {stage_testing.first_difference(plain.stdout, under.stdout)}\n{under.stderr}\n{plain.stderr}")
        print(f"{what}: {found.get('opened_ahead')} were opened ahead; {own} opens of the job's own, {asked} without",
              file=sys.stderr)
        return found, own, asked

    def signalled(self, number):
        plain, _, _ = self.run("wait", library=None, between=lambda: None)
        under, _, _ = self.run("wait", between=lambda: [os.kill(pid, number) for pid in self.place.optimizers()])
        claim(under.stdout == plain.stdout and under.returncode == plain.returncode,
              f"signal {number}: {under.stderr}")


def check(tests, what):
    found, own, asked = tests.alike(what, "0" if what in ("change", "replace", "remove") else "30")
    if what in ("nothing", "stream", "nonblocking", "gap", "twice", "temporary"):
        in_time(found["opened_ahead"] > FILES // 2, f"{what}: {found}")
        in_time(own < asked - FILES // 2, f"{what}: {own} opens of the job's own, {asked} without")
        # Of each at least the open, of 4 ms; its lookup and its read are included if they were ahead as well.
        claim(found["stall_avoided_ns"] > found["opened_ahead"] * 3_500_000,
              f"{what}: {found['opened_ahead']} opens, {found['stall_avoided_ns'] / 1e9:.2f} s said to be saved")
    if what in ("unlink", "confined"):
        claim(own >= FILES - MIDDLE, f"{what}: {own} opens of the job's own: a file was handed over")


def test(place):
    stage_testing.need_slow_mounts()
    tests = Test(place)
    first, _, _ = tests.run("nothing")
    claim(first.returncode == 0, first.stderr)
    for what in WHAT:
        if what == "user" and os.geteuid() != 0:
            continue
        harness.repeated(place, check, tests, what)
    with place.impatient():
        tests.signalled(signal.SIGKILL)
        tests.signalled(signal.SIGSTOP)


if __name__ == "__main__":
    harness.main(test)
