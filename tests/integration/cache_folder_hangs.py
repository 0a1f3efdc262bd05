#!/usr/bin/python3
# test: timeout=300
"""The disk of SLUICE_CACHE_DIR answers no read any more while a job runs whose files are elsewhere, in packs and in
lcache's log: fetches that wait for it are given up, files come from their own storage, and the job is supplied as it
would be without the folder. Once the disk answers again it is used again."""
import contextlib
import os
import subprocess
import sys

import harness
import stage_testing
from harness import claim, until
from stage_testing import Ground

COUNT, BYTES, EPOCHS, HANGS = 600, 30_000, 4, 2
GROUPS = "/sys/fs/cgroup/blkio"
NO_ANSWER = "the cache folder does not answer"
JOB = stage_testing.hashed_files(COUNT) + f"""
torch.manual_seed(3)
loader = DataLoader(Files(sys.argv[1]), batch_size=8, shuffle=True, num_workers=2, collate_fn=list,
                    generator=torch.Generator().manual_seed(5))
whole = hashlib.sha256()
for epoch in range({EPOCHS}):
    for batch in loader:
        whole.update(repr(batch).encode())
    print("end", epoch, file=sys.stderr, flush=True)
    sys.stdin.readline()
print(whole.hexdigest())
"""


class Disk:
    """An ext4 of its own, whose reads a cgroup's jobs can be made to wait for."""

    def __init__(self, place):
        self.image, self.folder = os.path.join(place.work, "image"), os.path.join(place.work, "disk")
        self.group = os.path.join(GROUPS, f"sluice-test-{os.getpid()}")
        self.undo = contextlib.ExitStack()

    def __enter__(self):
        with self.undo:
            with open(self.image, "wb") as file:
                file.truncate(256 << 20)
            os.mkdir(self.folder)
            subprocess.run(["mkfs.ext4", "-q", "-F", "-O", "^has_journal", self.image], check=True)
            subprocess.run(["mount", "-o", "loop", self.image, self.folder], check=True)
            self.undo.callback(subprocess.run, ["umount", self.folder], check=True)
            os.mkdir(self.group)
            self.undo.callback(lambda: until(self.is_removed, 60, "the cgroup is empty"))
            number = os.stat(self.folder).st_dev
            self.device = f"{os.major(number)}:{os.minor(number)}"
            self.undo = self.undo.pop_all()
        return self

    def __exit__(self, *error):
        self.undo.close()

    def is_removed(self):
        with contextlib.suppress(OSError):
            os.rmdir(self.group)
        return not os.path.exists(self.group)

    def join(self):
        with open(os.path.join(self.group, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(os.getpid()))

    def read_at(self, bytes_a_second):
        """0: at any rate."""
        with open(os.path.join(self.group, "blkio.throttle.read_bps_device"), "w", encoding="ascii") as file:
            file.write(f"{self.device} {bytes_a_second}")


def run(place, disk, folder, library=None, between=None, **settings):
    """The job in the disk's cgroup, and so is its optimizer: what it read. between(epoch) after each epoch."""
    job = place.start([sys.executable, "-W", "ignore", "-c", JOB, folder], library, disk.join, subprocess.PIPE, **settings)
    said = []
    for line in job.stderr:
        if not line.startswith("end "):
            said.append(line)
            continue
        if between:
            between(int(line.split()[1]))
        job.stdin.write("\n")
        job.stdin.flush()
    out, _ = harness.communicate(job, 100)
    claim(job.returncode == 0, "".join(said))
    return out


def drop_cached(folder):
    """What is in files of the folder is read from its disk the next time."""
    os.sync()
    for above, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(above, name), "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def check(place, disk, ground, plain, **settings):
    from_disk, elsewhere = [0], [0]

    def between(epoch):
        stage = harness.status(place)["stage"]
        from_disk.append(stage["packed_files"] + stage["logged_files"])
        elsewhere.append(stage["fetched_files"] - from_disk[-1])
        drop_cached(disk.folder)
        disk.read_at(1 if epoch + 1 == HANGS else 0)

    under = run(place, disk, ground.folder("set"), harness.LIBRARY, between, **settings)
    harness.drive.end_optimizer(place.sockets)
    what = f"{settings}: {from_disk} files from the disk, {elsewhere} from their own storage, after each epoch"
    print(what)
    claim(under == plain, f"other bytes; {what}")
    claim(from_disk[HANGS] > COUNT // 4, f"nothing came from the disk: the test tests nothing; {what}")
    harness.in_time(elsewhere[HANGS + 1] - elsewhere[HANGS] > COUNT // 3, f"not supplied beside the disk; {what}")
    harness.in_time(from_disk[HANGS + 2] - from_disk[HANGS + 1] > COUNT // 6, f"not used again; {what}")
    with open(os.path.join(place.sockets, "s.log"), encoding="utf-8") as log:
        claim(NO_ANSWER in log.read(), "no line says why")


def test(place):
    stage_testing.need_slow_mounts()
    harness.need_modules("torch")
    if os.geteuid() != 0 or not os.path.exists(os.path.join(GROUPS, "blkio.throttle.read_bps_device")):
        harness.skip("reads are held up by a cgroup of version 1, as root")
    with Disk(place) as disk, Ground(place, "mount", "1") as ground:
        os.mkdir(os.path.join(ground.source, "set"))
        for number in range(COUNT):
            with open(os.path.join(ground.source, "set", str(number)), "wb") as file:
                file.write(os.urandom(BYTES))
        plain = run(place, disk, ground.folder("set"))
        settings = {**stage_testing.SETTINGS, "SLUICE_CACHE_DIR": disk.folder, "SLUICE_MEMORY": "4M", "SLUICE_LINGER": "60"}
        for more in {}, {"SLUICE_POLICY": "lcache"}:
            harness.repeated(place, lambda more=more: check(place, disk, ground, plain, **settings, **more))


if __name__ == "__main__":
    harness.main(test)
