#!/usr/bin/python3
# test: timeout=120
"""Holds what slowfs promises about contents, faults, mounting and unmounting against what it does.

  slowfs_contents [NAME...]    only the checks whose name contains one of these
"""
import errno
import mmap
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile

import slowfs_harness
from slowfs_harness import (KIB, MIB, ROOT, SLOWFS, Direct, Failure, at_once, claim, done, ended, fork, missing,
                            running, until)
from waiting import communicate

sys.dont_write_bytecode = True


def drop(mount):
    with open(mount.path(".slowfs-drop"), "rb"):
        pass


class Contents(slowfs_harness.Checks):
    # Contents

    def check_tree(self):
        """Names, bytes, attributes and links of a random tree are those of SOURCE."""
        tree = os.path.join(self.work, "tree")
        make_tree(tree, random.Random(2))
        with self.mount("--attr-timeout", 0.5, source=tree) as mount:
            count = compare_trees(tree, mount.point)
            claim(count > 300, f"only {count} entries compared")
            one, two = (os.stat(mount.path(n)) for n in ("hard-a", "hard-b"))
            claim(one.st_ino == two.st_ino and one.st_nlink == 2, "hard links are two files")
            claim(len(os.listdir(mount.path("wide"))) == 1000, "a large folder lost names")
            claim(mount.account()["readdir"] > 20, "so few requests list no large folder")
            # Random places, through read, a mapping and past the page cache.
            chance = random.Random(3)
            with open(os.path.join(tree, "large"), "rb") as file:
                truth = file.read()
            with open(mount.path("large"), "rb", buffering=0) as file, \
                    mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
                direct = Direct(mount.path("large"), 64 * KIB)
                for _ in range(200):
                    offset, size = chance.randrange(len(truth)), chance.randrange(1, 300000)
                    claim(os.pread(file.fileno(), size, offset) == truth[offset:offset + size], "read")
                    offset = chance.randrange(len(truth))
                    claim(mapped[offset:offset + size] == truth[offset:offset + size], "mapping")
                    offset = offset // 4096 * 4096
                    got = direct.read(offset)
                    claim(direct.buffer[:got] == truth[offset:offset + 64 * KIB], "O_DIRECT")
                direct.close()
        shutil.rmtree(tree)

    def check_replaced(self):
        """A file that takes another's name is seen, and an open one still reads the old."""
        path = os.path.join(self.source, "changing")
        with self.mount("--attr-timeout", 0, "--entry-timeout", 0) as mount:
            for turn in range(20):
                text = f"version {turn}".encode() * (turn + 1)
                with open(path + ".new", "wb") as file:
                    file.write(text)
                old = open(mount.path("changing"), "rb", buffering=0) if turn else None
                os.replace(path + ".new", path)
                with open(mount.path("changing"), "rb") as file:
                    claim(file.read() == text, f"version {turn} is not seen")
                if old:
                    claim(old.read() == f"version {turn - 1}".encode() * turn, "open file changed")
                    claim(os.fstat(old.fileno()).st_nlink == 0, "removed file has a name")
                    old.close()
        os.unlink(path)

    def check_forget(self):
        """Nodes go when the kernel forgets them."""
        folder = os.path.join(self.work, "brief")
        os.mkdir(folder)
        with self.mount("--entry-timeout", 0, "--attr-timeout", 0, source=folder) as mount:
            names = [f"f{n}" for n in range(500)]
            for name in names:
                with open(os.path.join(folder, name), "wb"):
                    pass
                os.stat(mount.path(name))
            claim(mount.stats()["nodes"] >= 500, f"{mount.stats()['nodes']} nodes of 500 files")
            for name in names:
                os.unlink(os.path.join(folder, name))
                missing(mount.path(name))
            until(lambda: mount.stats()["nodes"] == 0, "500 removed files are forgotten")
        os.rmdir(folder)

    def check_drop(self):
        """Opening .slowfs-drop drops this mount's pages, attributes and names, and no other's; also while
        others read and look up."""
        names = [f"folder/{number}" for number in range(300)]
        keep = ("--entry-timeout", 1000, "--attr-timeout", 1000)

        def read_all(mount):
            before = mount.stats()["totals"]
            for name in names:
                with open(mount.path(name), "rb", buffering=0) as file:
                    claim(file.read() == name.split("/")[1].encode(), "bytes")
            after = mount.stats()["totals"]
            return after["lookup"] - before["lookup"], after["read_bytes"] - before["read_bytes"]

        with self.mount(*keep) as mount, self.mount(*keep) as other:
            first = read_all(mount)
            claim(first[0] >= 301 and first[1] > 0, f"{first} when nothing was cached")
            claim(read_all(other) == first, "the other mount was read differently")
            claim(read_all(mount) == (0, 0), "names and pages are not cached")
            drop(mount)
            claim(read_all(mount) == first, "not all was dropped")
            claim(read_all(other) == (0, 0), "another mount lost what it had cached")
        with self.mount(*keep, "--latency", 1) as mount:
            at_once(4, lambda number: [drop(mount) for _ in range(20)] if number == 0 else
                    [read_all(mount) for _ in range(2)])
        with self.mount("--threads", 1) as mount:
            try:
                drop(mount)
                claim(False, "dropped with one thread")
            except OSError as why:
                claim(why.errno == errno.EOPNOTSUPP, str(why))

    def check_read_only(self):
        """Whatever would write fails with EROFS."""
        with self.mount() as mount:
            data, new = mount.path("data"), mount.path("new")
            attempts = {
                "open for writing": lambda: os.open(data, os.O_WRONLY),
                "open for both": lambda: os.open(data, os.O_RDWR),
                "create": lambda: os.open(new, os.O_CREAT | os.O_WRONLY, 0o644),
                "mkdir": lambda: os.mkdir(new), "rmdir": lambda: os.rmdir(mount.path("folder")),
                "unlink": lambda: os.unlink(data), "rename": lambda: os.rename(data, new),
                "symlink": lambda: os.symlink("x", new), "link": lambda: os.link(data, new),
                "chmod": lambda: os.chmod(data, 0o600), "truncate": lambda: os.truncate(data, 0),
                "utime": lambda: os.utime(data), "mkfifo": lambda: os.mkfifo(new),
                "setxattr": lambda: os.setxattr(data, "user.x", b"y")}
            for what, attempt in attempts.items():
                try:
                    attempt()
                except OSError as why:
                    claim(why.errno == errno.EROFS, f"{what}: {why}")
                else:
                    raise Failure(f"{what} succeeds")
            claim(not os.access(data, os.W_OK) and os.access(data, os.R_OK), "access()")

    # Faults

    def check_hang(self):
        """SIGUSR1 hangs reads and nothing else, SIGUSR2 lets them go on."""
        with self.mount() as mount:
            def reader():
                with open(mount.path("data"), "rb", buffering=0) as file:
                    claim(file.read(2 * MIB) == self.data[:2 * MIB], "bytes after the hang")
            os.kill(mount.pid, signal.SIGUSR1)
            until(lambda: signal_taken(mount.pid, signal.SIGUSR1), "signal taken")
            child = fork(reader)
            until(lambda: mount.stats()["hung"] >= 1, "a read hangs")
            claim(os.waitpid(child, os.WNOHANG)[0] == 0, "the reader ended")
            os.stat(mount.path("folder", "11"))
            claim(mount.stats()["hung"] >= 1, "the read hangs no more")
            os.kill(mount.pid, signal.SIGUSR2)
            done(child)
            claim(mount.stats()["hung"] == 0, "still hung")
        with self.mount("--hang-after", MIB) as mount:
            def reader():
                file = Direct(mount.path("data"), 64 * KIB)
                for offset in range(0, 2 * MIB, 64 * KIB):
                    claim(file.read(offset) == 64 * KIB, "short")
            child = fork(reader)
            until(lambda: mount.stats()["hung"] == 1, "a read hangs")
            claim(mount.account(child)["read_bytes"] == MIB + 64 * KIB, "hung at the wrong byte")
            os.kill(mount.pid, signal.SIGUSR2)
            done(child)

    def check_hung_unmount(self):
        """A hung mount can be ended; its reader gets an error."""
        def reader(mount):
            try:
                with open(mount.path("data"), "rb", buffering=0) as file:
                    file.read(4096)
            except OSError:
                return
            raise Failure("a read that was never answered succeeded")
        for way in ("signal", "lazily"):
            with self.mount("--hang-after", 0) as mount:
                child = fork(lambda m=mount: reader(m))
                until(lambda m=mount: m.stats()["hung"] == 1, "a read hangs")
                if way == "signal":
                    os.kill(mount.pid, signal.SIGTERM)
                else:
                    # The kernel takes the mount away once its last user is gone.
                    subprocess.run(["fusermount3", "-uz", mount.point], check=True)
                    os.kill(child, signal.SIGKILL)
                status = until(lambda c=child: ended(c), f"the reader ends ({way})")
                claim(way == "lazily" or status == (0,), f"the reader ended with {status}")
                until(lambda m=mount: not running(m.pid), f"slowfs ends ({way})")

    def check_fail(self):
        """--fail-after gives so many right bytes, then EIO."""
        with self.mount("--fail-after", MIB) as mount:
            file = Direct(mount.path("data"), 64 * KIB)
            for offset in range(0, MIB, 64 * KIB):
                claim(file.read(offset) == 64 * KIB, "short")
                claim(file.buffer[:] == self.data[offset:offset + 64 * KIB], "bytes")
            for _ in range(3):
                try:
                    file.read(MIB)
                except OSError as why:
                    claim(why.errno == errno.EIO, f"{why}")
                else:
                    raise Failure("a read after --fail-after succeeds")
            file.close()
            claim(mount.stats()["totals"]["failed"] == 3, "failures are not counted")

    # Coming and going

    def check_unmount(self):
        """fusermount3, umount, SIGTERM and SIGINT all end it, quickly, requests waiting or not."""
        ways = {"fusermount3": lambda m: subprocess.run(["fusermount3", "-u", m.point], check=True),
                "SIGTERM": lambda m: os.kill(m.pid, signal.SIGTERM),
                "SIGINT": lambda m: os.kill(m.pid, signal.SIGINT)}
        if ROOT:
            ways["umount"] = lambda m: subprocess.run(["umount", m.point], check=True)
        for name, way in ways.items():
            with self.mount("--read-latency", 0.1) as mount:
                with open(mount.path("data"), "rb", buffering=0) as file:
                    file.read(MIB)
                way(mount)
                until(lambda m=mount: not os.path.ismount(m.point), f"unmounted by {name}", 3)
                until(lambda m=mount: not running(m.pid), f"slowfs ends by {name}", 3)
        # A minute of answers is due; no process waits for them.
        with self.mount("--bandwidth", 1, "--read-latency", 60000) as mount:
            child = fork(lambda: Direct(mount.path("data"), MIB).read(0))
            until(lambda: mount.account(child)["read"] == 1, "the read is on its way")
            os.kill(mount.pid, signal.SIGTERM)
            until(lambda: not running(mount.pid), "slowfs ends with a read under way", 3)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def check_background(self):
        """The command comes back and holds no pipe; --foreground stays until a signal."""
        point = tempfile.mkdtemp(prefix="m-", dir=self.work)
        inherited, other = os.pipe()
        # communicate() waits for the end of the pipes, which a daemon that inherited them would hold.
        with subprocess.Popen([SLOWFS, self.source, point], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, pass_fds=[other]) as command:
            communicate(command, 10)
        os.close(other)
        claim(os.read(inherited, 1) == b"", "the daemon holds a descriptor that it inherited")
        os.close(inherited)
        subprocess.run(["fusermount3", "-u", point], check=True)
        for turn in range(10):
            with subprocess.Popen([SLOWFS, "--foreground", self.source, point]) as server:
                try:
                    # The signal may come before it has settled; half of the turns do.
                    until(lambda: os.path.ismount(point), "mounted in the foreground")
                    if turn % 2:
                        os.stat(os.path.join(point, "data"))
                        claim(server.poll() is None, "--foreground went to the background")
                    server.send_signal(signal.SIGINT)
                    claim(server.wait(10) == 0, f"status {server.returncode}")
                finally:
                    server.kill()
        claim(not os.path.ismount(point), "the mount outlives slowfs")
        os.rmdir(point)

    def check_bad_usage(self):
        """A mistake gets one line and a status that is not 0, and nothing is mounted."""
        point = tempfile.mkdtemp(prefix="m-", dir=self.work)
        good = [self.source, point]
        for words in ([], [self.source], ["/nonexistent", point], [self.source, "/nonexistent"],
                      [os.path.join(self.source, "data"), point], ["--latency", "fast", *good],
                      ["--bandwidth", "nan", *good], ["--read-latency", "-1", *good],
                      ["--hang-after", "-1", *good], ["--parallel", "1.5", *good],
                      ["--profile", "quick", *good], ["--stats", "/nonexistent/x", *good],
                      ["--no-such-option", *good], [self.work, point]):
            got = subprocess.run([SLOWFS, *words], capture_output=True, text=True, timeout=10,
                                 check=False)
            claim(got.returncode != 0, f"{words}: status 0")
            claim(len(got.stderr.splitlines()) == 1 and got.stderr.startswith("slowfs: "),
                  f"{words}: {got.stderr!r}")
            claim(not os.path.ismount(point), f"{words}: mounted all the same")
        os.rmdir(point)

    def check_ordinary_user(self):
        """Without root: the same bytes and figures; what needs root is refused with one line."""
        if not ROOT:
            return "runs as one already"
        # /dev/fuse is open to all on a usual system; where it is not, a namespace of our own has
        # one that is.
        script = """
            set -e
            mknod "$2/fuse" c 10 229; chmod 666 "$2/fuse"; mount --bind "$2/fuse" /dev/fuse
            as="setpriv --reuid 65534 --regid 65534 --clear-groups"
            trap '$as fusermount3 -uz "$2/m" 2>/dev/null || true' EXIT
            $as "$1" --latency 0.2 --bandwidth 200 "$2/s" "$2/m"
            # Past the page cache: what the kernel takes of it would be read, and counted, twice.
            $as dd "if=$2/m/data" iflag=direct bs=1M status=none | cmp - "$2/s/data"
            $as grep -q '"read_bytes": 8388608' "$2/m/.slowfs-stats"
            $as fusermount3 -u "$2/m"
            if $as "$1" --read-ahead 4096 "$2/s" "$2/m" 2> "$2/said"; then exit 3; fi
            [ "$(wc -l < "$2/said")" = 1 ]; grep -q 'needs root' "$2/said"
            ! mountpoint -q "$2/m"
        """
        folder = os.path.join(self.work, "user")
        for name in ("s", "m"):
            os.makedirs(os.path.join(folder, name))
        with open(os.path.join(folder, "s", "data"), "wb") as file:
            file.write(self.data[:8 * MIB])
        for name in ("", "s", "m"):
            os.chown(os.path.join(folder, name), 65534, 65534)
        probe = subprocess.run(["unshare", "-m", "true"], check=False)
        if probe.returncode != 0:
            return "no mount namespace"
        got = subprocess.run(["unshare", "-m", "bash", "-xc", script, "user", SLOWFS, folder],
                             capture_output=True, text=True, timeout=30, check=False)
        claim(got.returncode == 0, f"as an ordinary user: {got.returncode}\n{got.stderr}")
        return None


def signal_taken(pid, number):
    """Whether a signal that was sent is no longer pending."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
        pending = next(line for line in status if line.startswith("ShdPnd:"))
    return not int(pending.split()[1], 16) >> (number - 1) & 1


def make_tree(top, chance):
    """Files of awkward sizes, odd names, links, holes, deep and wide folders, odd times."""
    os.makedirs(top)
    sizes = [0, 1, 100, 4095, 4096, 4097, 32767, 32768, 131071, 131073, MIB + 3]
    folders = [os.fsencode(top)]
    for number in range(25):
        path = os.path.join(chance.choice(folders), b"d%d" % number)
        os.mkdir(path)
        folders.append(path)
    names = [b"plain", b"with space", b"new\nline", "\u00fcml\u00e4ut".encode(), b"\xff\xfe", b"n" * 255]
    for folder in folders:
        for name in chance.sample(names, 3) + [b"f%d" % n for n in range(8)]:
            with open(os.path.join(folder, name), "wb") as file:
                file.write(chance.randbytes(chance.choice(sizes)))
            os.utime(file.name, ns=(chance.randrange(10**18), chance.randrange(10**18)))
            os.chmod(file.name, chance.choice((0o644, 0o600, 0o755, 0o444)))
        os.symlink(chance.choice(("plain", "../plain", "/nowhere", "x" * 1000)),
                   os.path.join(folder, b"soft"))
    with open(os.path.join(top, "large"), "wb") as file:
        file.write(chance.randbytes(9 * MIB + 77))
    with open(os.path.join(top, "sparse"), "wb") as file:
        file.truncate(3 * MIB + 5)
        os.pwrite(file.fileno(), b"middle", MIB)
    with open(os.path.join(top, "hard-a"), "wb") as file:
        file.write(b"shared")
    os.link(os.path.join(top, "hard-a"), os.path.join(top, "hard-b"))
    os.mkfifo(os.path.join(top, "fifo"))
    os.mkdir(os.path.join(top, "empty"))
    os.mkdir(os.path.join(top, "wide"))
    # Long names, so that listing them takes many requests.
    for number in range(1000):
        os.close(os.open(os.path.join(top, "wide", f"entry-{number}-{'w' * (number % 240)}"),
                         os.O_CREAT | os.O_WRONLY, 0o644))


def compare_trees(truth, seen):
    """Claims that two trees are equal; returns how many entries were compared."""
    count = 0
    truth, seen = os.fsencode(truth), os.fsencode(seen)
    for folder, _, _ in os.walk(truth):
        other = seen + folder[len(truth):]
        names = sorted(os.listdir(folder))
        got = os.listdir(other)
        claim(sorted(got) == names, f"{folder!r}: other names")
        with os.scandir(folder) as a, os.scandir(other) as b:
            kinds = [sorted((e.name, e.inode(), e.is_dir(follow_symlinks=False), e.is_symlink())
                            for e in entries) for entries in (a, b)]
        claim(kinds[0] == kinds[1], f"{folder!r}: other kinds or inode numbers")
        for name in names[::40] if len(names) > 1000 else names:
            left, right = os.path.join(folder, name), os.path.join(other, name)
            one, two = os.lstat(left), os.lstat(right)
            for field in ("st_mode", "st_ino", "st_size", "st_nlink", "st_uid", "st_gid",
                          "st_mtime_ns", "st_ctime_ns", "st_blocks"):
                claim(getattr(one, field) == getattr(two, field), f"{left!r}: other {field}")
            if os.path.islink(left):
                claim(os.readlink(left) == os.readlink(right), f"{left!r}: another target")
            elif os.path.isfile(left):
                with open(left, "rb") as file, open(right, "rb") as copy:
                    claim(file.read() == copy.read(), f"{left!r}: other bytes")
            count += 1
    return count


if __name__ == "__main__":
    sys.exit(slowfs_harness.main(Contents))
