#!/usr/bin/python3
# test: timeout=150
"""Mounts that misbehave: one drops a file's cache at every open, one hangs for a while, one begins
to fail. The job is right, or gets the same error as without us, and its mount comes off after it."""
import json
import os
import shutil
import signal
import subprocess

import harness
from harness import claim, until


class Mount:
    def __init__(self, place, *options):
        self.source = os.path.join(place.folder, "source")
        self.point = os.path.join(place.folder, "mount")
        os.makedirs(self.source, exist_ok=True)
        os.makedirs(self.point, exist_ok=True)
        for name in ("scan.bin", "big.bin"):
            if not os.path.exists(os.path.join(self.source, name)):
                subprocess.run(["cp", "--sparse=always", os.path.join(harness.DATA, name),
                                self.source], check=True)
        self.server = subprocess.Popen([os.path.join(harness.BUILD, "bench/slowfs"), "--foreground",
                                        *options, self.source, self.point],
                                       stderr=subprocess.PIPE, text=True)
        self.data = [os.path.join(self.point, n) for n in ("scan.bin", "big.bin", "none")]

    def delivered(self):
        """Bytes that were read from the mount."""
        with open(os.path.join(self.point, ".slowfs-stats"), encoding="utf-8") as text:
            return json.load(text)["totals"]["read_bytes"]

    def __enter__(self):
        until(lambda: self.server.poll() is not None or os.path.ismount(self.point), 20, "mounted")
        if self.server.poll() is not None:
            harness.skip(f"slowfs does not mount here: {self.server.stderr.read().strip()}")
        return self

    def __exit__(self, *_):
        self.server.send_signal(signal.SIGUSR2)
        # At once: if the optimizer held a file, this would be refused.
        self.busy = subprocess.run(["umount", self.point], capture_output=True, text=True,
                                   check=False)
        if self.busy.returncode:
            subprocess.run(["umount", "-l", self.point], check=False)
        self.server.wait(20)


def test(place):
    if not os.path.exists("/dev/fuse") or not shutil.which("fusermount3") or os.geteuid() != 0:
        harness.skip("FUSE and root are needed")
    for kind in ("map", "read"):
        with Mount(place, "--no-keep-cache", "--read-latency", "0.2") as mount:
            argv = harness.victim("streams", kind, data=mount.data)
            plain = place.run(argv, library=None)
            claim(plain.returncode == 0, plain.stderr)
            done = place.run(argv, SLUICE_DATASET=mount.point)
            harness.same(plain, done, f"a mount that drops its cache, {kind}")
        claim(not mount.busy.returncode, f"not unmounted after the job: {mount.busy.stderr}")
    # The mount hangs in the middle of the job; the job of another mount continues meanwhile.
    with Mount(place, "--read-latency", "1", "--bandwidth", "300") as mount:
        argv = harness.victim("streams", "read", data=mount.data)
        job = place.start(argv, SLUICE_DATASET=mount.point)
        until(lambda: mount.delivered() > 4 << 20, 20, "the job reads")
        mount.server.send_signal(signal.SIGUSR1)
        others = harness.victim("steady", 10)
        for _ in range(3):
            other_plain = place.run(others, library=None)
            other = place.run(others)
            harness.same(other_plain, other, "a job beside a hung mount")
            if other.seconds < other_plain.seconds + 1.5:
                break
        claim(other.seconds < other_plain.seconds + 1.5,
              f"jobs beside a hung mount took {other.seconds:.2f} s, not {other_plain.seconds:.2f}, three times")
        claim(job.poll() is None, "the job ended before its mount hung: it is too fast for this test")
        mount.server.send_signal(signal.SIGUSR2)
        out, err = harness.communicate(job, 60)
        claim(job.returncode == 0 and out == plain.stdout, f"after the hang: {job.returncode} {err}")
    claim(not mount.busy.returncode, f"not unmounted after the hang: {mount.busy.stderr}")
    # Reads begin to fail: the job sees EIO where it would have seen it.
    for attempt in ("plain", "under"):
        with Mount(place, "--fail-after", "20000000") as mount:
            argv = ["dd", f"if={mount.data[1]}", "of=/dev/null", "bs=64k", "status=none"]
            done = place.run(argv, library=harness.LIBRARY if attempt == "under" else None,
                             SLUICE_DATASET=mount.point)
            claim(done.returncode == 1 and "Input/output error" in done.stderr,
                  f"{attempt}: dd on a failing mount: {done.returncode} {done.stderr}")


if __name__ == "__main__":
    harness.main(test)
