"""What the tests of slowfs share: mounts of it, reads past the page cache, and how checks are run."""
import json
import mmap
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from waiting import wait_for

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SLOWFS = os.path.join(TOP, os.environ.get("B", "build"), "bench/slowfs")
ROOT = os.geteuid() == 0
KIB, MIB = 1024, 1 << 20


class Failure(Exception):
    """A broken promise."""


class Noise(Failure):
    """A time outside its tolerance. Other processes delay ours: a check that measures time may be
    repeated, one that counts may not."""


def claim(truth, what):
    if not truth:
        raise Failure(what)


def near(value, wanted, low, high, what):
    if not wanted * low <= value <= wanted * high:
        raise Noise(f"{what}: {value:.4g}, promised {wanted:.4g} ({low:g} to {high:g} times)")


def until(condition, what, seconds=10):
    got = wait_for(condition, seconds)
    if not got:
        raise Failure(f"not within {seconds} s: {what}")
    return got


def running(pid):
    """Whether a process is there and has not ended; its parent may not collect it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Mount:
    """slowfs with `options` over `source`; ended on exit, whatever happened."""

    def __init__(self, work, source, *options):
        self.point = tempfile.mkdtemp(prefix="m-", dir=work)
        self.source = source
        command = [SLOWFS, *map(str, options), source, self.point]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        claim(done.returncode == 0, f"{' '.join(command)}: {done.returncode} {done.stderr}")
        claim(os.path.ismount(self.point), "slowfs came back before its mount worked")
        claim(not done.stderr, f"slowfs talks: {done.stderr}")
        self.pid = self.stats()["pid"]

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if running(self.pid):
            os.kill(self.pid, signal.SIGTERM)
            try:
                until(lambda: not running(self.pid), "slowfs ends on SIGTERM")
            except Failure:
                os.kill(self.pid, signal.SIGKILL)
                subprocess.run(["fusermount3", "-uz", self.point], check=False)
                if kind is None:
                    raise
        if kind is None:
            claim(not os.path.ismount(self.point), "the mount outlives slowfs")
            os.rmdir(self.point)

    def path(self, *names):
        return os.path.join(self.point, *names)

    def stats(self):
        with open(os.path.join(self.point, ".slowfs-stats"), "rb") as file:
            return json.load(file)

    def account(self, pid=None):
        """What a process was charged for; all 0 if it has requested nothing."""
        stats = self.stats()
        nothing = {**dict.fromkeys(stats["totals"], 0), "read_sizes": {}}
        return stats["processes"].get(str(pid or os.getpid()), nothing)


class Direct:
    """A file read past the page cache: one request for each call."""

    def __init__(self, path, size):
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
        self.buffer = mmap.mmap(-1, size)
        self.buffer[0] = 0

    def read(self, offset):
        return os.preadv(self.fd, [self.buffer], offset)

    def close(self):
        os.close(self.fd)


def timed(call):
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


def missing(path):
    """A lookup that nothing can have cached."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return
    raise Failure(f"{path} should not exist")


def at_once(count, call):
    """Calls call(0) ... call(count - 1) in threads, all started together; returns seconds."""
    barrier = threading.Barrier(count + 1)
    trouble = []

    def body(number):
        barrier.wait()
        try:
            call(number)
        except Exception as why:
            trouble.append(why)

    threads = [threading.Thread(target=body, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    barrier.wait()
    begun = time.monotonic()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begun
    if trouble:
        raise trouble[0]
    return took


def fork(call):
    """Runs call() in a child process; returns its pid. `done(pid)` waits for it."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            call()
            status = 0
        except BaseException as why:
            print(f"child: {why!r}", flush=True)
        finally:
            os._exit(status)
    return pid


def done(pid):
    claim(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, "a child process failed")


def settle(mount):
    """Path walks ask for the root's attributes; after this they are cached."""
    until(lambda: mount.account()["getattr"] == 1, "the root's attributes are cached")


def ended(pid):
    """The wait status of a child in a tuple, or None while it runs."""
    got, status = os.waitpid(pid, os.WNOHANG)
    return (status,) if got else None


class Checks:
    """A SOURCE to mount. Each method check_NAME of a test's own class holds one promise; it returns
    why it was left out, or None."""

    def __init__(self, work):
        self.work = work
        self.source = os.path.join(work, "source")
        os.makedirs(os.path.join(self.source, "folder"))
        self.data = random.Random(1).randbytes(64 * MIB)
        with open(os.path.join(self.source, "data"), "wb") as file:
            file.write(self.data)
        for number in range(300):
            with open(os.path.join(self.source, "folder", str(number)), "w", encoding="ascii") as f:
                f.write(str(number))
        os.symlink("data", os.path.join(self.source, "link"))

    def mount(self, *options, source=None):
        return Mount(self.work, source or self.source, *options)


def run_check(check):
    """Returns why it was left out, or None. A time off its tolerance is measured again."""
    for attempt in range(4):
        try:
            return check()
        except Noise as why:
            if attempt == 3:
                raise
            print(f"    again: {why}", flush=True)
    return None


def main(test):
    if not os.path.exists("/dev/fuse") or not shutil.which("fusermount3"):
        print("FUSE is not to be had here")
        return 77
    if not os.path.exists(SLOWFS):
        print(f"{SLOWFS} is not built")
        return 1
    work = tempfile.mkdtemp(prefix="slowfs-", dir=os.environ.get("TEST_DIR"))
    os.chmod(work, 0o755)
    try:
        checks = test(work)
        probe = subprocess.run([SLOWFS, checks.source, tempfile.mkdtemp(prefix="p-", dir=work)],
                               capture_output=True, text=True, check=False)
        if probe.returncode != 0:
            print(f"slowfs does not mount here: {probe.stderr.strip()}")
            return 77
        probe_point = next(p for p in os.listdir(work) if p.startswith("p-"))
        subprocess.run(["fusermount3", "-u", os.path.join(work, probe_point)], check=True)
        bad = 0
        for name in [n for n in dir(checks) if n.startswith("check_")]:
            if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
                continue
            begun = time.monotonic()
            try:
                left_out = run_check(getattr(checks, name))
                word = f"left out: {left_out}" if left_out else "holds"
            except (Failure, OSError, subprocess.SubprocessError) as why:
                word = f"BROKEN: {why}"
                bad += 1
            print(f"{name[6:]:18} {time.monotonic() - begun:5.1f} s  {word}", flush=True)
        return 1 if bad else 0
    finally:
        shutil.rmtree(work, ignore_errors=True)
