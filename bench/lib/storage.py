"""The storage that figures are taken on: slowfs mounts, a throttled disk, and the data on both."""
import contextlib
import json
import os
import shutil
import subprocess
import time

from bench.lib.place import Failed, Skipped, is_root, program

UNMOUNT_LIMIT = 15  # seconds
READ_AHEAD_KB = 128  # of the throttled disk, as disks usually have


def call(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout.strip()


def read_through(path):
    """Leaves the file in the page cache, as far as it fits."""
    with open(path, "rb", buffering=0) as file:
        while file.read(8 << 20):
            pass


def read_folder(folder):
    for entry in sorted(os.listdir(folder)):
        read_through(os.path.join(folder, entry))


def touch_memory(size):
    """Makes as much free memory as a cold run fills cheap to fill; see touch_memory.c."""
    mebibytes = str(size * 5 // 4 // 2**20 + 256)
    subprocess.run([program("bench/touch-memory"), mebibytes], check=True)


def mounted(folder):
    escaped = os.path.realpath(folder).replace(" ", "\\040")  # build/ may be a link
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        return any(line.split()[4] == escaped for line in mounts)


def unmount(folder):
    """Waits for processes that still have a file of it open; after that it is unmounted without waiting."""
    deadline = time.monotonic() + UNMOUNT_LIMIT
    while mounted(folder):
        late = time.monotonic() > deadline
        commands = [["umount"], ["fusermount3", "-u"]]
        if late:
            commands = [["umount", "-l"], ["fusermount3", "-u", "-z"]]
        for command in commands:
            if subprocess.run([*command, folder], capture_output=True, check=False).returncode == 0:
                break
        else:
            if late:
                raise Failed(f"{folder} cannot be unmounted")
            time.sleep(0.05)
    return time.monotonic() <= deadline


class Data:
    """Data sets, made once for all runs: each in a folder named for what it holds."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def _make(self, path, *arguments):
        if not os.path.exists(path):
            shutil.rmtree(path + ".partial", ignore_errors=True)
            call(program("bench/make-data"), path + ".partial", *map(str, arguments))
            os.rename(path + ".partial", path)
        return path

    def database(self, size):
        """Folder of an LMDB whose data.mdb has at least `size` bytes."""
        return self._make(os.path.join(self.folder, f"lmdb-{size}"), size)

    def files(self, count):
        """Folder of `count` files with the records that a database begins with."""
        return self._make(os.path.join(self.folder, f"files-{count}"), 1, count)


class SlowMount:
    """A folder behind the storage stand-in; its page cache ends with the mount.

    slowfs stands for machines elsewhere, so its work stays off the first processor, as far as
    there is a second. What it shows is in the page cache: its sleeping is the storage.
    """

    def __init__(self, bench, name, source, *options):
        self.source, self.options = source, options
        self.folder = os.path.join(bench.request.data, "mnt", name)

    def __enter__(self):
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            raise Skipped("there is no /dev/fuse that this user may open")
        unmount(self.folder)
        os.makedirs(self.folder, exist_ok=True)
        last = os.cpu_count() - 1
        command = ["taskset", "-c", str(last), program("bench/slowfs"), *self.options,
                   self.source, self.folder]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              start_new_session=True, check=False)
        if done.returncode:
            raise Failed(f"slowfs: {done.stderr.strip()}")
        return self

    def __exit__(self, *_):
        in_time = unmount(self.folder)
        with contextlib.suppress(OSError):
            os.rmdir(self.folder)
        if not in_time:
            raise Failed(f"{self.folder} was still in use {UNMOUNT_LIMIT} s after the job's end")

    def stats(self):
        """What was asked of it so far: see `slowfs --help`."""
        with open(os.path.join(self.folder, ".slowfs-stats"), encoding="utf-8") as text:
            return json.load(text)

    def drop_cached(self):
        """Nothing of this mount is cached; other mounts keep what is cached of them."""
        with open(os.path.join(self.folder, ".slowfs-drop"), "rb"):
            pass


class LoopDisk:
    """An ext4 of its own in a file on a loop device, which a cgroup limits to so many MB/s.

    cold() unmounts and mounts it. Jobs join `cgroup` to be limited: a list of `cgroup.procs`.
    """

    def __init__(self, bench, limit):
        self.limit = limit
        self.size = bench.request.disk_size
        self.image = os.path.join(bench.request.data, f"disk-{self.size}.img")
        self.folder = os.path.join(bench.request.data, "mnt", "disk")
        self.group = f"/sys/fs/cgroup/blkio/sluice-bench-{os.getpid()}"
        self.device = None

    def __enter__(self):
        if not is_root():
            raise Skipped("a throttled loop device needs root")
        if not os.path.exists("/sys/fs/cgroup/blkio/blkio.throttle.read_bps_device"):
            raise Skipped("there is no blkio.throttle here (cgroup v1)")
        unmount(self.folder)
        os.makedirs(self.folder, exist_ok=True)
        self._make_image()
        try:
            self.device = call("losetup", "--find", "--show", self.image)
            name = os.path.basename(self.device)
            with open(f"/sys/block/{name}/queue/read_ahead_kb", "w", encoding="ascii") as setting:
                setting.write(str(READ_AHEAD_KB))
            number = os.stat(self.device).st_rdev
            os.mkdir(self.group)
            for name, value in self.throttles().items():
                with open(os.path.join(self.group, f"blkio.throttle.{name}"), "w", encoding="ascii") as setting:
                    setting.write(f"{os.major(number)}:{os.minor(number)} {value}")
            call("mount", self.device, self.folder)
        except BaseException:
            self.__exit__()
            raise
        return self

    def throttles(self):
        return {"read_bps_device": self.limit * 1_000_000}

    def fill(self):
        """Makes what an image of the disk holds, below its folder."""
        call(program("bench/make-data"), os.path.join(self.folder, "lmdb"), str(self.size))

    def _make_image(self):
        if os.path.exists(self.image):
            return
        partial = self.image + ".partial"
        with open(partial, "wb") as image:
            image.truncate(self.size + self.size // 8 + (64 << 20))
        call("mkfs.ext4", "-q", "-F", "-O", "^has_journal", partial)
        call("mount", "-o", "loop", partial, self.folder)
        try:
            self.fill()
        finally:
            unmount(self.folder)
        os.rename(partial, self.image)

    def __exit__(self, *_):
        unmount(self.folder)
        if self.device:
            subprocess.run(["losetup", "-d", self.device], check=False)
            self.device = None
        deadline = time.monotonic() + UNMOUNT_LIMIT
        while os.path.isdir(self.group):
            try:
                os.rmdir(self.group)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        with contextlib.suppress(OSError):
            os.rmdir(self.folder)

    def cold(self):
        """None of it is cached above the device; the image below is, all of it."""
        unmount(self.folder)
        read_through(self.image)
        call("mount", self.device, self.folder)

    @property
    def cgroup(self):
        return os.path.join(self.group, "cgroup.procs")

    def measured_limit(self):
        """MB/s that a plain reader in the group gets: the throttle must hold it."""
        self.cold()
        path = os.path.join(self.folder, "lmdb", "data.mdb")
        size = os.path.getsize(path)
        join_and_read = 'echo $$ >"$0" && exec dd if="$1" of=/dev/null bs=1M'
        started = time.monotonic()
        call("sh", "-c", join_and_read, self.cgroup, path)
        return size / (time.monotonic() - started) / 1e6


def remove_leftovers(folder):
    """Mounts and loop devices that a killed run left in the data folder."""
    mounts = os.path.join(folder, "mnt")
    if os.path.isdir(mounts):
        for name in os.listdir(mounts):
            unmount(os.path.join(mounts, name))
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(mounts, name))
    if is_root() and shutil.which("losetup"):
        listed = call("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE")
        for line in listed.splitlines():
            device, _, image = line.partition(" ")
            if image.strip().startswith(os.path.join(folder, "")):
                subprocess.run(["losetup", "-d", device], check=False)
