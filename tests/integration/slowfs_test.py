#!/usr/bin/python3
# test: timeout=150 alone
"""Holds what slowfs promises about time and about its figures against measurement: every figure of
the project is taken on it.

  slowfs_test [NAME...]    only the checks whose name contains one of these
"""
import ctypes
import json
import mmap
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time

import slowfs_harness
from slowfs_harness import (KIB, MIB, ROOT, Direct, at_once, claim, done, fork, missing, near,
                            settle, timed, until)

sys.dont_write_bytecode = True


def quickest_tenth(seconds):
    """The time that a tenth of the calls stay below: that others have the processor delays the rest at most."""
    return statistics.quantiles(seconds, n=10)[0]


class Timing(slowfs_harness.Checks):
    # Times

    def check_latency(self):
        """What a caller sees is the latency of the settings, of metadata and of reads."""
        for wanted in (0.5, 3):
            count = 200 if wanted < 1 else 60
            with self.mount("--meta-latency", wanted, "--read-latency", wanted) as mount:
                calls = [timed(lambda n=n: missing(mount.path(f"no{n}"))) for n in range(count)]
                near(quickest_tenth(calls) * 1e3, wanted, 0.9, 1.08, "ms for a lookup")
                file = Direct(mount.path("data"), 4096)
                reads = [timed(lambda n=n: file.read(n * 4096)) for n in range(count)]
                file.close()
                near(quickest_tenth(reads) * 1e3, wanted, 0.9, 1.08, "ms for a read")
        with self.mount("--read-latency", 20) as mount:
            near(timed(lambda: missing(mount.path("no"))) * 1e3, 1, 0, 10, "ms for a lookup at 0")
        with self.mount("--meta-latency", 20) as mount:
            file = Direct(mount.path("data"), 4096)
            near(timed(lambda: file.read(0)) * 1e3, 1, 0, 10, "ms for a read at 0")
            file.close()

    def check_metadata_kinds(self):
        """Each kind of metadata call waits; what is cached and the virtual file do not."""
        with self.mount("--meta-latency", 30, "--attr-timeout", 60, "--entry-timeout", 60) as mount:
            def takes(calls, call, what):
                before = mount.stats()["totals"]["metadata"]
                took = timed(call) * 1e3
                counted = mount.stats()["totals"]["metadata"] - before
                claim(counted == calls, f"{what}: {counted} requests, not {calls}")
                if calls:
                    near(took, 30 * calls, 0.9, 1.3, f"ms for {what}")
                else:
                    near(took, 1, 0, 15, f"ms for {what}")
            settle(mount)
            takes(1, lambda: os.lstat(mount.path("link")), "lookup")
            takes(0, lambda: os.lstat(mount.path("link")), "a cached lookup")
            takes(1, lambda: os.readlink(mount.path("link")), "readlink")
            takes(1, lambda: os.statvfs(mount.point), "statfs")
            os.stat(mount.path("data"))
            takes(1, lambda: os.close(os.open(mount.path("data"), os.O_RDONLY)), "open and close")
            folder = os.open(mount.point, os.O_RDONLY | os.O_DIRECTORY)
            os.close(folder)
            takes(1, lambda: os.close(os.open(mount.point, os.O_RDONLY | os.O_DIRECTORY)), "opendir")
            takes(0, mount.stats, "the virtual file")
        with self.mount("--meta-latency", 30, "--attr-timeout", 0, "--entry-timeout", 60) as mount:
            with open(mount.path("data"), "rb", buffering=0) as file:
                before = mount.account()["getattr"]
                near(timed(lambda: os.fstat(file.fileno())) * 1e3, 30, 0.9, 1.3, "ms for getattr")
                # Opening the virtual file asks for the root's attributes once.
                claim(mount.account()["getattr"] - before <= 2, "getattr is asked more than once")

    def check_attr_timeout(self):
        """Attributes and names are cached as long as the settings say, and no longer."""
        path = os.path.join(self.source, "folder", "7")
        with self.mount("--attr-timeout", 0, "--entry-timeout", 0) as mount:
            before = os.stat(mount.path("folder", "7")).st_mtime_ns
            os.utime(path, ns=(1, before + 5))
            claim(os.stat(mount.path("folder", "7")).st_mtime_ns == before + 5, "stale at timeout 0")
        with self.mount("--attr-timeout", 60, "--entry-timeout", 60) as mount:
            before = os.stat(mount.path("folder", "7")).st_mtime_ns
            os.utime(path, ns=(1, before + 5))
            claim(os.stat(mount.path("folder", "7")).st_mtime_ns == before, "not cached at 60 s")

    def check_bandwidth(self):
        """One link, shared by four readers, exact in the long run, and shared evenly."""
        rate, each, size = 100e6, 90, MIB // 2
        with self.mount("--bandwidth", rate / 1e6, "--read-latency", 1) as mount:
            gate_read, gate_write = os.pipe()
            ends_read, ends_write = os.pipe()

            def reader(number):
                os.close(gate_write)
                files = [Direct(mount.path("data"), size) for _ in range(3)]
                os.read(gate_read, 1)

                def part(k):
                    for turn in range(k, each, 3):
                        claim(files[k].read((number * 7 + turn) * size % (64 * MIB)) == size, "short")
                at_once(3, part)
                os.write(ends_write, b"%.6f\n" % time.monotonic())

            children = [fork(lambda n=n: reader(n)) for n in range(4)]
            os.close(ends_write)
            os.close(gate_read)
            until(lambda: mount.stats()["totals"]["open"] >= 12, "readers are there")
            begun = time.monotonic()
            os.close(gate_write)
            for child in children:
                done(child)
            with os.fdopen(ends_read) as lines:
                ends = sorted(float(line) - begun for line in lines)
            near(4 * each * size / ends[-1] / 1e6, rate / 1e6, 0.97, 1.03, "MB/s of four readers")
            near(ends[0], ends[-1], 0.85, 1, "s until the first of them had its share")

    def check_sequential(self):
        """Ordinary reading of a file gets the link too, when read-ahead covers the latency."""
        with self.mount("--bandwidth", 50, "--read-latency", 0.2, "--read-ahead", 128) as mount:
            with open(mount.path("data"), "rb", buffering=0) as file:
                took = timed(lambda: claim(len(file.read(48 * MIB)) == 48 * MIB, "short"))
            near(48 * MIB / took / 1e6, 50, 0.4, 1.03, "MB/s of a plain reader")

    def check_parallel(self):
        """No more than --parallel requests are answered at once, and no fewer."""
        for limit, count, wanted in ((4, 40, 0.3), (0, 100, 0.03)):
            options = ["--meta-latency", 30, "--attr-timeout", 60]
            with self.mount(*options, *(["--parallel", limit] if limit else [])) as mount:
                settle(mount)
                took = at_once(count, lambda n, m=mount: missing(m.path(f"no{n}")))
                near(took, wanted, 0.93, 1.15 if limit else 8, f"s for {count} lookups, {limit} at once")

    def check_requests(self):
        """A file's lookup, open and first read are one request of --requests; what is asked beside it counts by itself."""
        with self.mount("--requests", 50, "--attr-timeout", 60, "--entry-timeout", 60) as mount:
            settle(mount)
            os.stat(mount.path("folder"))

            def counted(call):
                before = mount.stats()["counted"]
                call()
                return mount.stats()["counted"] - before

            def read_files(first):
                for number in range(first, first + 20):
                    with open(mount.path("folder", str(number)), "rb", buffering=0) as file:
                        file.read(1)
            took = timed(lambda: claim(counted(lambda: read_files(0)) == 20, "not one request a file"))
            near(took, 0.38, 0.9, 4, "s for 20 requests, 50 of them a second")
            claim(counted(lambda: os.stat(mount.path("folder", "50"))) == 1, "a lookup alone is not one request")
            claim(counted(lambda: read_files(0)) == 20, "names that are known: not one request an open")

    def check_parallel_folder(self):
        """Two hundred lookups in one folder, and listings of it, do not wait for each other."""
        with self.mount("--meta-latency", 50, "--attr-timeout", 60, "--entry-timeout", 60) as mount:
            settle(mount)
            os.stat(mount.path("folder"))
            took = at_once(200, lambda n: os.stat(mount.path("folder", str(n))))
            near(took, 0.05, 0.9, 12, "s for 200 lookups of 50 ms in one folder")
            claim(mount.account()["lookup"] >= 200, "lookups were not requested")
            took = at_once(40, lambda n: claim(len(os.listdir(mount.path("folder"))) == 300, "lost"))
            near(took, 0.25, 0, 3, "s for 40 listings of one folder")

    # Counts

    def check_read_ahead(self):
        """Requests are as large as the read-ahead of the settings; 128 KiB by default."""
        wanted = [(None, 128), (32, 32), (0, 0)] + ([(4096, 4096)] if ROOT else [])
        for option, kib in wanted:
            options = [] if option is None else ["--read-ahead", option]
            with self.mount(*options) as mount:
                device = os.stat(mount.point).st_dev
                name = f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb"
                with open(name, encoding="ascii") as file:
                    claim(int(file.read()) == kib, f"{name} is not {kib}")
                length = 32 * MIB if kib >= 128 else MIB
                # Small reads, so that only read-ahead makes requests large.
                with open(mount.path("data"), "rb", buffering=0) as file:
                    for offset in range(0, length, 16 * KIB):
                        claim(file.read(16 * KIB) == self.data[offset:offset + 16 * KIB], "bytes")
                sizes = {int(k): v for k, v in mount.account()["read_sizes"].items()}
                if kib in (128, 32):
                    claim(max(sizes) == kib * KIB, f"at {kib} KiB: requests of {sizes}")
                    large = sizes[kib * KIB] * kib * KIB
                    claim(large >= 0.9 * length, f"at {kib} KiB: few large requests: {sizes}")
                elif kib == 0:
                    claim(max(sizes) <= 16 * KIB, f"without read-ahead: requests of {sizes}")
                else:
                    claim(max(sizes) == MIB, f"at {kib} KiB: requests of {sizes}, none of 1 MiB")

    def check_keep_cache(self):
        """A file's page cache survives open() by default."""
        for keep_cache in (True, False):
            with self.mount(*([] if keep_cache else ["--no-keep-cache"])) as mount:
                for turn in range(3):
                    with open(mount.path("data"), "rb", buffering=0) as file:
                        claim(file.read(4 * MIB) == self.data[:4 * MIB], "bytes")
                    seen = mount.account()["read_bytes"] // (4 * MIB)
                    claim(seen == (1 if keep_cache else turn + 1),
                          f"keep_cache {keep_cache}: {seen} times 4 MiB after {turn + 1} readings")
                with open(mount.path("data"), "rb") as file:
                    cached = resident(file.fileno(), 4 * MIB)
                claim((cached == 1024) == keep_cache, f"keep_cache {keep_cache}: {cached} pages after open()")

    def check_counts(self):
        """Every request and byte is charged to the process that asked, threads to their process."""
        with self.mount("--read-latency", 1, "--meta-latency", 0.1) as mount:
            os.stat(mount.point)

            def job(number):
                file = Direct(mount.path("data"), 8 * KIB * number)
                for turn in range(10 * number):
                    file.read(turn * 128 * KIB)
                # Threads of their own, four reads each, that are gone when the figures are read.
                files = [Direct(mount.path("data"), 4 * KIB) for _ in range(5)]
                at_once(5, lambda n: [files[n].read(k * 4 * KIB) for k in range(4)])
                for turn in range(number):
                    missing(mount.path(f"no-{number}-{turn}"))

            children = {fork(lambda n=n: job(n)): n for n in (1, 2, 3)}
            for child in children:
                done(child)
            for child, number in children.items():
                account = mount.account(child)
                wanted = {"read": 10 * number + 20,
                          "read_bytes": 10 * number * 8 * KIB * number + 20 * 4 * KIB,
                          "open": 6, "readdir": 0}
                seen = {key: account[key] for key in wanted}
                claim(seen == wanted, f"process {number}: counted {seen}, did {wanted}")
                # "data" may have been found by another child already.
                claim(number <= account["lookup"] <= number + 1, f"lookups: {account['lookup']}")
            stats = mount.stats()
            known = {str(pid) for pid in children} | {str(os.getpid()), "0"}
            claim(set(stats["processes"]) <= known, f"strangers: {set(stats['processes']) - known}")
            for key in ("read", "read_bytes", "requests", "lookup"):
                claim(sum(p[key] for p in stats["processes"].values()) == stats["totals"][key],
                      f"{key}: the sum of the processes is not the total")

    def check_io_workers(self):
        """The kernel's io_uring workers are charged to the process that owns the ring."""
        if not shutil.which("fio"):
            return "no fio"
        with self.mount("--read-latency", 1) as mount:
            done_ = subprocess.run(
                ["fio", "--name=x", f"--filename={mount.path('data')}", "--readonly", "--rw=read",
                 "--bs=64k", "--size=16m", "--ioengine=io_uring", "--force_async=1",
                 "--iodepth=8", "--direct=1"], capture_output=True, text=True, cwd=self.work,
                check=False)
            if done_.returncode != 0:
                return f"fio: {done_.stderr.strip().splitlines()[-1:]}"
            readers = {pid: account for pid, account in mount.stats()["processes"].items()
                       if account["read_bytes"]}
            claim(len(readers) == 1, f"16 MiB of one job are charged to {sorted(readers)}")
            account = next(iter(readers.values()))
            claim(account["read_bytes"] == 16 * MIB and account["command"] == "fio", f"{account}")
        return None

    def check_stats_file(self):
        """SIGHUP writes the figures as a whole, unmounting too; the virtual file is hidden."""
        target = os.path.join(self.work, "stats.json")
        with self.mount("--stats", target) as mount:
            def written():
                with open(target, "rb") as file:
                    return json.load(file)["totals"]["read_bytes"]
            claim(written() == 0, "no figures at the start")
            with open(mount.path("data"), "rb", buffering=0) as file:
                file.read(MIB)
            claim(written() == 0, "figures written unasked")
            live = mount.stats()["totals"]["read_bytes"]
            claim(live >= MIB, f"live figures say {live}")
            os.kill(mount.pid, signal.SIGHUP)
            until(lambda: written() == live, "figures after SIGHUP", 2)
            claim(".slowfs-stats" not in os.listdir(mount.point), "the virtual file is listed")
            with open(mount.path("data"), "rb", buffering=0) as file:
                file.seek(32 * MIB)
                file.read(MIB)
            final = mount.stats()["totals"]["read_bytes"]
            claim(final > live, "nothing more was read")
        claim(written() == final, "figures after unmounting")

    def check_profiles(self):
        """The profiles are what the help says, and options override them."""
        for name, latency, bandwidth in (("pfs", 0.5, 400), ("far", 3, 400), ("busy", 10, 100)):
            with self.mount("--profile", name, "--read-latency", 7) as mount:
                got = mount.stats()["settings"]
                seen = got["meta_latency_ms"], got["read_latency_ms"], got["bandwidth_mb"]
                claim(seen == (latency, 7, bandwidth), f"{name}: {seen}")
                rest = (got["read_ahead_kib"], got["attr_timeout_s"], got["entry_timeout_s"],
                        got["keep_cache"], got["parallel"])
                claim(rest == (128, 1, 1, True, 0) and got["threads"] >= 256, f"defaults: {got}")


def resident(fd, length):
    """How many pages of a file's first `length` bytes are in the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    address = libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
    claim(address != ctypes.c_void_p(-1).value, "mmap")
    pages = (ctypes.c_ubyte * (length // 4096))()
    got = libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(length), pages)
    libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(length))
    claim(got == 0, "mincore")
    return sum(page & 1 for page in pages)


if __name__ == "__main__":
    sys.exit(slowfs_harness.main(Timing))
