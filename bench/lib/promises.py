"""Under `iis`, what is said to come from memory: whether it does, and how much it is. Samples that were promised
as hits are compared with the files that were opened on the storage in each epoch."""
import ctypes
import os
import shutil
import struct
import threading

from bench.lib import jobs
from bench.lib.place import TOP, Failed, program
from bench.lib.storage import SlowMount

LIVE = {"h": "h_hits", "exact": "l_exact", "substituted": "l_substituted"}
PROVIDES = ["bytes_told_over_bytes_read", *(f"importance_live_{name}" for name in LIVE)]
# Files, bytes of each, memory, epochs: where a file takes more memory than it holds bytes, and where not.
SETTINGS = [(15000, 800, "17M", 4), (1500, 20000, "8M", 6), (12000, 20000, "72M", 4)]
MOUNT = ["--latency", "0.2", "--bandwidth", "800", "--no-keep-cache"]
ASKED = dict(importance="iis:warmup=2,substitute=any", stage="always", places="off")
OPEN, OVERFLOW = 0x20, 0x4000  # IN_OPEN, IN_Q_OVERFLOW


class Opened(threading.Thread):
    """Files that were opened in `folder`, by epoch: each ends with a file whose name begins with "end-"."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_CLOEXEC)
        if libc.inotify_add_watch(self.fd, os.fsencode(folder), OPEN) <= 0:
            raise Failed("no inotify")
        self.folder, self.files, self.lost = folder, [set()], False
        self.start()

    def run(self):
        while True:
            data = os.read(self.fd, 1 << 20)
            while data:
                _, mask, _, length = struct.unpack_from("iIII", data)
                name, data = data[16:16 + length].rstrip(b"\0"), data[16 + length:]
                self.lost |= mask & OVERFLOW != 0
                if name == b"end-all":
                    return
                if name.startswith(b"end-"):
                    self.files.append(set())
                elif name:
                    self.files[-1].add(name.decode())

    def end(self):
        with open(os.path.join(self.folder, "end-all"), "w", encoding="ascii"):
            pass
        self.join(60)
        os.close(self.fd)
        if self.lost:
            raise Failed("inotify lost events")
        return self.files


def make(folder, count, size):
    os.makedirs(folder)
    for number in range(count):
        with open(os.path.join(folder, f"{number:06}"), "wb") as out:
            out.write(b"%d " % number)
            out.write(b"x" * (size - out.tell()))


def command(folder, epochs, source, workers=2):
    """`folder` is where the job sees the files of `source`."""
    return ["/usr/bin/python3", "-W", "ignore", os.path.join(TOP, "bench/reader/train_promises.py"), folder,
            str(epochs), str(workers), program("sluice"), os.path.join(source, "end-")]


class Promises:
    """What the job printed, against what was opened."""

    def __init__(self, printed, files):
        self.status, self.trained = printed["status"], printed["trained"]
        self.promised = sum(map(len, printed["promised"]))
        self.read_again = sum(len(read & set(said)) for read, said in zip(files, printed["promised"]))
        self.asked = sum(map(len, files))
        self.hits = sum(self.status[name] for name in LIVE.values())
        self.wall = 0  # not measured


def measured(bench, setting):
    count, size, memory, epochs = setting
    source = os.path.join(bench.request.data, "promises")
    shutil.rmtree(source, ignore_errors=True)
    make(source, count, size)
    try:
        with jobs.Sluice(memory=memory, **ASKED) as sluice, SlowMount(bench, "promises", source, *MOUNT) as mount:
            opened = Opened(source)
            result = jobs.run([command(mount.folder, epochs, source)], sluice)
            files = opened.end()
            sluice.stop()
        return Promises(result.reader, files)
    finally:
        shutil.rmtree(source, ignore_errors=True)


def run(bench):
    settings = SETTINGS[1:2] if bench.request.small else SETTINGS
    rounds = [[measured(bench, setting) for setting in settings] for _ in range(bench.request.rounds)]
    bench.record(PROVIDES[0], [one.read_again / one.promised for each in rounds for one in each])
    for name, kind in LIVE.items():
        bench.record(f"importance_live_{name}", [each[-1].status[kind] / each[-1].trained for each in rounds])
