#!/usr/bin/python3
# test: timeout=240
"""Datasets, budgets and shared memory as no user would choose them: the job is right, and warned of
what it misses with one line at most.

stage_odd [WORD...]: only checks with one of the words in their names.
"""
import ctypes
import errno
import os
import shutil
import stat
import struct
import subprocess
import sys

import harness
import stage_testing
from harness import claim
from stage_testing import SETTINGS, Ground

# argv: a folder, how many epochs, and files to wait for until they are staged. Prints what each file
# of the folder held in each epoch; which came as copies, and the most that all copies took, is written to
# the file COPIES. With FILL the memory file system is filled once copies have been read.
JOB = r"""
import ctypes, hashlib, os, stat, sys, time
sys.path.insert(0, sys.argv[1])
import sluice

folder = os.fsencode(sys.argv[2])
names = sorted(os.listdir(folder))
paths = [os.path.join(folder, name) for name in names]
libc = ctypes.CDLL(None)
FSTAT, READLINK = 5, 89

def is_copy(handle):
    # The kernel shows what is behind the descriptor, os.fstat() of the original.
    behind, about = (ctypes.c_ulong * 18)(), os.fstat(handle)
    return libc.syscall(FSTAT, handle, behind) == 0 and behind[:2] != [about.st_dev, about.st_ino]

def staged(path):
    with sluice.fetch(number):  # copies are given in a window alone
        handle = os.open(path, os.O_RDONLY)
        try:
            return is_copy(handle)
        finally:
            os.close(handle)

def in_memory():
    sizes = 0
    for name in os.listdir(stage) if stage else []:
        try:
            sizes += os.lstat(os.path.join(stage, name)).st_blocks * 512
        except OSError:
            pass
    return sizes

def folder_of(handle):
    # Asked of the kernel: other tests' copies lie beside ours.
    link = ctypes.create_string_buffer(4096)
    libc.syscall(READLINK, b"/proc/self/fd/%d" % handle, link, 4095)
    return os.path.dirname(link.value)

copies, most, stage = [], 0, None
def read(path):
    global stage
    try:
        about = os.lstat(path)
        if not stat.S_ISREG(about.st_mode) and not stat.S_ISLNK(about.st_mode):
            if not stat.S_ISDIR(about.st_mode):
                return oct(about.st_mode)
        with open(path, "rb") as file:
            if is_copy(file.fileno()):
                copies.append(path.hex())
                stage = stage or folder_of(file.fileno())
            data = file.read()
            return about.st_size, os.fstat(file.fileno()).st_size, hashlib.sha256(data).hexdigest()
    except OSError as why:
        return why.errno

number = sluice.dataset(sys.argv[2], len(paths))
sluice.locate_files(number, 0, paths)
for epoch in range(int(sys.argv[3])):
    sluice.publish_order(number, epoch, range(len(paths)), whole=True)
    deadline = time.monotonic() + 20
    while sluice.available and not all(map(staged, sys.argv[4:])):
        if time.monotonic() > deadline:
            sys.exit("not staged")
        time.sleep(0.002)
    for index, path in enumerate(paths):
        with sluice.sample(number, index):
            print(epoch, path, read(path))
        most = max(most, in_memory() if index % 16 == 0 else 0)
        if copies and os.environ.pop("FILL", None):
            with open("/dev/shm/x", "wb", 0) as file:
                try:
                    while file.write(bytes(65536)):
                        pass
                except OSError:
                    pass
if os.environ.get("COPIES"):
    with open(os.environ["COPIES"], "w") as out:
        print(most, *copies, file=out)
"""
MODULE = os.path.join(harness.TOP, "adapters", "python")
IN_OPEN, IN_NONBLOCK = 0x20, 0o4000


class Opens:
    """Which names of a folder were opened, by anybody."""

    def __init__(self, folder):
        libc = ctypes.CDLL(None)
        self.fd = libc.inotify_init1(IN_NONBLOCK)
        claim(libc.inotify_add_watch(self.fd, os.fsencode(folder), IN_OPEN) >= 0, "inotify")

    def names(self):
        found = set()
        while True:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                return found
            at = 0
            while at < len(data):
                length, = struct.unpack_from("I", data, at + 12)
                found.add(data[at + 16:at + 16 + length].rstrip(b"\0"))
                at += 16 + length


class Checks:
    def __init__(self, place):
        self.place = place
        self.count = os.path.join(place.work, "copies")

    def job(self, folder, epochs, *wait):
        return [sys.executable, "-c", JOB, MODULE, folder, str(epochs), *wait]

    def copies(self):
        """Paths, one for each time that a file came as a copy; and the most bytes of all copies."""
        with open(self.count, encoding="ascii") as text:
            most, *paths = text.read().split()
        return [bytes.fromhex(path) for path in paths], int(most)

    def compare(self, folder, what, *wait, epochs=2, least=0, most=None, **settings):
        """The same plain and under the library; between `least` and `most` files came as copies."""
        argv = self.job(folder, epochs, *wait)
        plain = self.place.run(argv, library=None)
        claim(plain.returncode == 0, f"{what}: {plain.stderr}")
        under = self.place.run(argv, COPIES=self.count, **{**SETTINGS, **settings})
        harness.same(plain, under, what)
        own = [line for line in harness.sluice_lines(under) if "the job waited" not in line]
        claim(not own, f"{what}: {own}")
        copies = len(self.copies()[0])
        claim(copies >= least, f"{what}: {copies} copies, at least {least} expected")
        claim(most is None or copies <= most, f"{what}: {copies} copies, at most {most} expected")
        return under

    def folder(self, name, files=20, size=20000):
        folder = os.path.join(self.place.work, name)
        os.mkdir(folder)
        for number in range(files):
            with open(os.path.join(folder, f"{number:04}"), "wb") as file:
                file.write(bytes([number % 256]) * size)
        return folder

    def check_kinds(self):
        """Whatever can lie in a folder."""
        folder = self.folder("kinds")
        at = lambda name: os.path.join(os.fsencode(folder), name)
        open(at(b"empty"), "wb").close()
        os.mkdir(at(b"folder"))
        os.mkfifo(at(b"pipe"))
        if os.geteuid() == 0:
            os.mknod(at(b"device"), 0o600 | stat.S_IFCHR, os.makedev(1, 5))
        os.symlink(b"nothing", at(b"dangling"))
        os.symlink(b"loop", at(b"loop"))
        every = bytes(b for b in range(1, 256) if b != ord("/"))
        odd = [every[:127], every[127:], b"new\nline", b" ", b"...", b"x" * 255]
        for name in odd:
            with open(at(name), "wb") as file:
                file.write(name * 100)
        opens = Opens(folder)
        self.compare(folder, "odd files", folder + "/0019", *map(at, [b"empty", *odd]), least=40)
        copied = self.copies()[0]
        for name in odd:
            claim(at(name) in copied, f"{name} was not staged")
        opened = opens.names()
        claim(not opened & {b"pipe", b"device"}, f"a process opened {opened}")

    def check_vanished(self):
        """Files that were located and are not there, and one that comes back."""
        folder = self.folder("vanished")
        script = JOB.replace("for epoch in", f"os.unlink({folder + '/0007'!r})\nfor epoch in", 1)
        script = script.replace("    for index, path",
                                f"    if epoch == 1: open({folder + '/0007'!r}, 'w').write('back')\n"
                                "    for index, path", 1)
        argv = [sys.executable, "-c", script, MODULE, folder, "3", folder + "/0019"]
        plain = self.place.run(argv, library=None)
        claim(plain.returncode == 0 and "back" not in plain.stderr, plain.stderr)
        under = self.place.run(argv, **SETTINGS)
        harness.same(plain, under, "a file that vanishes")

    def check_memory(self):
        """A budget of a hundredth, and files larger than a quarter of it."""
        folder = self.folder("memory", files=1000, size=100000)
        self.compare(folder, "a hundredth", SLUICE_MEMORY="1M", epochs=2, least=10)
        taken = self.copies()[1]
        claim(0 < taken <= 1 << 20, f"copies took {taken} bytes of a budget of 1 MiB")
        large = self.folder("large", files=4, size=20000)
        with open(os.path.join(large, "0002"), "wb") as file:
            file.write(b"l" * 1000000)
        self.compare(large, "a large file", large + "/0003", SLUICE_MEMORY="2M", least=4, most=6)

    def check_never(self):
        folder = self.folder("never")
        self.compare(folder, "SLUICE_STAGE=never", SLUICE_STAGE="never", most=0)
        self.compare(folder, "SLUICE_STAGE=auto on a disk", SLUICE_STAGE="auto", most=0)
        self.compare(folder, "SLUICE_PREFETCH=off", SLUICE_PREFETCH="off", most=0)

    def check_stale(self):
        folder = self.folder("stale")
        self.compare(folder, "SLUICE_STALE=0", folder + "/0019", SLUICE_STALE="0", least=30)

    def check_denied(self):
        """A user who may not read all of it."""
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            return "needs root and setpriv"
        folder = self.folder("denied")
        os.chmod(self.place.folder, 0o755)
        os.chmod(self.place.work, 0o755)
        os.chmod(self.place.sockets, 0o700)
        os.chmod(os.path.join(folder, "0003"), 0o600)
        os.chmod(os.path.join(folder, "0004"), 0)
        os.chown(os.path.join(folder, "0005"), 65534, 65534)
        os.chmod(os.path.join(folder, "0005"), 0)
        os.makedirs(os.path.join(folder, "shut"))
        sockets = os.path.join(self.place.folder, "n")
        os.mkdir(sockets, 0o700)
        os.chown(sockets, 65534, 65534)
        self.count = os.path.join(sockets, "copies")
        as_user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        argv = [*as_user, *self.job(folder, 2, folder + "/0019")]
        plain = self.place.run(argv, library=None)
        claim(plain.returncode == 0 and f"{errno.EACCES}\n" in plain.stdout, plain.stderr)
        under = self.place.run([*as_user, "env", f"LD_PRELOAD={harness.LIBRARY}",
                                *self.job(folder, 2, folder + "/0019")], LD_PRELOAD=None,
                               COPIES=self.count, **{**SETTINGS, "SLUICE_SOCKET": sockets + "/s.sock"})
        harness.drive.end_optimizer(sockets)
        harness.same(plain, under, "denied")
        claim(len(self.copies()[0]) >= 30, "nothing was staged for another user")
        self.count = os.path.join(self.place.work, "copies")
        return None

    def check_lowered(self):
        """A job that gives up its rights reads no copy that it could not have opened."""
        if os.geteuid() != 0:
            return "needs root"
        folder = self.folder("lowered")
        os.chmod(self.place.folder, 0o755)
        os.chmod(self.place.work, 0o755)
        os.chmod(os.path.join(folder, "0003"), 0o600)
        os.chown(os.path.join(folder, "0004"), 0, 12345)
        os.chmod(os.path.join(folder, "0004"), 0o040)
        ways = {"seteuid": "os.seteuid(65534)", "setresuid": "os.setresuid(65534, 65534, 65534)",
                "back": "os.seteuid(65534); os.listdir(folder); os.seteuid(0)",
                "groups": "os.setgroups([12345]); os.setegid(12345); os.seteuid(65534)",
                "capabilities": "import struct; os.chown(folder + b'/0005', 1, 1); "
                                "os.chmod(folder + b'/0005', 0o600); "
                                "assert libc.capset(struct.pack('Ii', 0x20080522, 0), bytes(24)) == 0",
                "fsuid": "libc.setfsuid(65534)"}
        for name, call in ways.items():
            script = JOB.replace("    for index, path", f"    {call}\n    for index, path", 1)
            argv = [sys.executable, "-c", script, MODULE, folder, "1", folder + "/0019"]
            plain = self.place.run(argv, library=None)
            claim(plain.returncode == 0, plain.stderr)
            claim(name == "back" or f" {errno.EACCES}\n" in plain.stdout, plain.stdout)
            harness.same(plain, self.place.run(argv, **SETTINGS), name)
            harness.drive.end_optimizer(self.place.sockets)
        return None

    def in_namespace(self, folder, script, what, least=0, most=None, **settings):
        """The job under the library in a mount namespace of its own, after `script`."""
        waited_for = [os.path.join(folder, min(os.listdir(folder)))] if least else []
        argv = self.job(folder, 2, *waited_for)
        plain = self.place.run(argv, library=None)
        under = self.place.run(
            ["unshare", "-m", "bash", "-c", script + '; exec env LD_PRELOAD=$LIB "$@"', "bash", *argv],
            LD_PRELOAD=None, LIB=harness.LIBRARY, COPIES=self.count, **{**SETTINGS, **settings})
        harness.same(plain, under, what)
        copies = len(self.copies()[0])
        claim(copies >= least and (most is None or copies <= most), f"{what}: {copies} copies")
        said = under.stderr
        for name in os.listdir(self.place.sockets):
            if name.endswith(".log"):
                with open(os.path.join(self.place.sockets, name), encoding="utf-8") as text:
                    said += text.read()
                os.unlink(os.path.join(self.place.sockets, name))
        harness.drive.end_optimizer(self.place.sockets)
        return said

    def check_shared_memory(self):
        """/dev/shm too small, full, not there, and with another user's folder in it."""
        if os.geteuid() != 0:
            return "needs root"
        if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
            return "no mount namespaces here"
        folder = self.folder("shm", files=200, size=100000)
        mount = "mount -t tmpfs -o size={} none /dev/shm"
        ours = "/dev/shm/sluice-0"
        none = {
            "4 KiB of it": mount.format("4k"),
            "full": mount.format("20m") + "; head -c 20M /dev/zero > /dev/shm/full || true",
            "not a memory file system": "mount --bind /tmp /dev/shm",
            "not there": "mount -t tmpfs none /dev && mknod /dev/null c 1 3",
            "read-only": "mount -t tmpfs -o ro,size=1g none /dev/shm",
            "of another user": mount.format("1g") + f"; mkdir -m 700 {ours}; chown 65534 {ours}",
            "open to all": mount.format("1g") + f"; mkdir -m 777 {ours}",
            "a link": mount.format("1g") + f"; mkdir -m 700 /dev/shm/x; ln -s x {ours}",
            "a file": mount.format("1g") + f"; touch {ours}",
        }
        for what, script in none.items():
            said = self.in_namespace(folder, script, what, most=0)
            lines = [line for line in said.splitlines() if "not staged" in line]
            claim(len(lines) == 1, f"{what}: said {len(lines)} times that files are not staged: {said}")
        self.in_namespace(folder, mount.format("10m"), "10 MiB of it", least=1)
        # It fills up while it is being used: what is in the stage stays whole.
        self.in_namespace(folder, mount.format("16m"), "filling up", least=1, FILL="1")
        # Another folder takes its place, and what a killed process left there is removed.
        disk = os.path.join(self.place.work, "disk")
        left = os.path.join(disk, f"sluice-{os.geteuid()}", "1-1")
        os.makedirs(left, 0o700)
        os.chmod(os.path.dirname(left), 0o700)
        for name in ("lock", "0000000000000001"):
            open(os.path.join(left, name), "w", encoding="ascii").close()
        self.in_namespace(folder, mount.format("4k"), "on a disk", least=1, SLUICE_CACHE_DIR=disk)
        claim(not os.path.exists(left), "what a killed optimizer left stays")
        return None

    def check_other_host(self):
        """Files that change behind the mount are seen after SLUICE_STALE (8 s) and what the mount caches
        (1 s): whoever opens one later than that, however busy the machine is."""
        if not stage_testing.slow_mounts():
            return "no FUSE here"
        script = JOB.replace("        with sluice", r"""
        if index == 10 and epoch == 0:
            with open(os.environ["BEHIND"], "w") as file:
                file.write("changed on another host")
            begun, asked, old, seen = time.monotonic(), 0, -1, False
            with sluice.fetch(number):
                # An optimizer that is late lets opens through, and the copy is given again when it is not.
                while not seen or asked < begun + 10:
                    asked = time.monotonic()
                    seen = open(path).read() == "changed on another host"
                    old = old if seen else asked - begun
                    assert old < 40
                    time.sleep(0.01)
            print("seen in time:", old < 10 or old)
        with sluice""", 1)
        script = script.replace("while sluice.available", "while epoch == 0 and sluice.available", 1)
        source = self.folder("behind")
        with Ground(self.place, "mount", "1") as ground:
            shutil.copytree(source, os.path.join(ground.source, "d"))
            folder = ground.folder("d")
            behind = os.path.join(ground.source, "d", "0010")
            argv = [sys.executable, "-c", script, MODULE, folder, "3", folder + "/0010"]
            plain = self.place.run(argv, library=None, BEHIND=behind)
            claim(plain.returncode == 0, plain.stderr)
            shutil.copyfile(os.path.join(source, "0010"), behind)
            under = self.place.run(argv, **{**SETTINGS, "BEHIND": behind, "SLUICE_STALE": "8",
                                            "SLUICE_STAGE": None})
            claim(plain.stdout == under.stdout, stage_testing.first_difference(plain.stdout, under.stdout))
            harness.same(plain, under, "another host")
        return None


def test(place):
    checks = Checks(place)
    for name in [n for n in dir(checks) if n.startswith("check_")]:
        if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
            continue
        left_out = getattr(checks, name)()
        harness.drive.end_optimizer(place.sockets)
        print(f"{name[6:]}: {'left out: ' + left_out if left_out else 'holds'}", flush=True)


if __name__ == "__main__":
    harness.main(test)
