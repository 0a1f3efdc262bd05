#!/usr/bin/python3
# test: timeout=240 alone
"""`sluice warm` and `sluice bench` on slow storage: what is read, what is printed, limits, interruption."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

import slowfs_harness
from slowfs_harness import Mount, claim, until
from waiting import communicate

SLUICE = os.path.join(slowfs_harness.TOP, os.environ.get("B", "build"), "sluice")
BIG, SMALL, COUNT = 40 << 20, 20_000, 200


def sluice(*words):
    return subprocess.run([SLUICE, *map(str, words)], capture_output=True, text=True, timeout=60, check=False)


def make_source(work):
    source = os.path.join(work, "source")
    os.makedirs(os.path.join(source, "small/deep"))
    with open(os.path.join(source, "big"), "wb") as file:
        file.write(os.urandom(BIG))
    for number in range(COUNT):
        with open(os.path.join(source, f"small/deep/{number}"), "wb") as file:
            file.write(os.urandom(SMALL))
    os.link(os.path.join(source, "big"), os.path.join(source, "small/same"))
    os.symlink("..", os.path.join(source, "small/cycle"))
    os.mkfifo(os.path.join(source, "small/pipe"))
    open(os.path.join(source, "empty"), "w", encoding="ascii").close()
    return source


def cached_share(path):
    """Percent, as `warm --check` prints it; None: unknown."""
    done = sluice("warm", "--check", path)
    claim(done.returncode == 0, done.stderr)
    found = re.search(r" (\d+) %", done.stdout)
    return int(found.group(1)) if found else None


def reads_all_once(mount):
    claim(cached_share(mount.point) == 0, "something was cached on a new mount")
    before = mount.stats()["totals"]["read_bytes"]
    done = sluice("warm", mount.point)
    claim(done.returncode == 0 and not done.stderr, f"{done.returncode}: {done.stderr}")
    read = mount.stats()["totals"]["read_bytes"] - before
    whole = BIG + COUNT * SMALL
    claim(whole <= read <= 1.02 * whole + COUNT * 4096, f"{read} bytes were read of {whole}")
    claim(f"{COUNT + 2} files" in done.stdout, f"a link was read twice, or a pipe: {done.stdout}")
    claim(cached_share(mount.point) == 100, "not all is cached")
    before = mount.stats()["totals"]["read_bytes"]
    claim(sluice("warm", mount.point).returncode == 0, "all is cached already")
    claim(mount.stats()["totals"]["read_bytes"] == before, "what was cached was read again")
    done = sluice("bench", mount.point)
    claim(done.returncode == 1 and "is in memory" in done.stderr, f"{done.returncode}: {done.stderr}")


def stops_at_limit(mount):
    done = sluice("warm", "--memory", "8M", mount.point)
    claim(done.returncode == 1 and done.stderr.count("\n") == 1, f"{done.returncode}: {done.stderr}")
    claim("more than 8.0 MiB, the limit" in done.stderr, done.stderr)
    claim(mount.stats()["totals"]["read_bytes"] <= 9 << 20, "more was read than the limit allows")


def names_what_it_cannot_read(work, mount):
    done = sluice("warm", os.path.join(work, "nothing"), os.path.join(mount.point, "empty"))
    claim(done.returncode == 1 and "No such file" in done.stderr, done.stderr)
    done = sluice("warm", "/dev/null")
    claim(done.returncode == 1 and "neither a regular file nor a folder" in done.stderr, done.stderr)
    for words in ((), ("--memory", "much", mount.point), ("--depth", "0", mount.point)):
        claim(sluice("warm", *words).returncode == 2, f"warm {words} was accepted")
    done = sluice("bench", os.path.join(work, "nothing"))
    claim(done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr)
    done = sluice("bench", os.path.join(mount.point, "empty"))
    claim(done.returncode == 1 and "no file with anything in it" in done.stderr, done.stderr)


def ends_when_interrupted(source, work):
    # A read that FUSE has requested is waited for even by a process that was killed: not for long at this rate.
    with Mount(work, source, "--bandwidth", "4") as mount:
        # A shell's background job ignores the signal, and so would what it starts.
        job = subprocess.Popen([SLUICE, "warm", mount.point], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        until(lambda: mount.stats()["totals"]["read_bytes"] > 0, "warm reads")
        job.send_signal(signal.SIGINT)
        _, errors = communicate(job, 100)
        claim(job.returncode == -signal.SIGINT, f"status {job.returncode}")
        claim(errors == "sluice: interrupted; what was read stays cached\n", errors)


def mount_without_cache(source, work):
    with Mount(work, source, "--no-keep-cache") as mount:
        done = sluice("warm", mount.point)
        claim(done.returncode == 1 and "no longer cached after an open" in done.stderr, done.stderr)


def bench_finds_latency_and_depth(mount):
    """A hang is the only bound of time here: rates are compared with each other."""
    done = sluice("bench", "--json", mount.point)
    claim(done.returncode == 0, done.stderr)
    found = json.loads(done.stdout)
    claim(found["latency_ns"] >= 4e6, f"a latency of about 5 ms: {found['latency_ns']}")
    for kind in ("blocks", "whole_files"):
        rates = {one["depth"]: one["bytes_per_second"] for one in found[kind]}
        claim(rates[8] > 2 * rates[1], f"{kind}: eight at a time are no faster: {rates}")
    claim(cached_share(mount.point) <= 5, "what bench read stays cached")
    done = sluice("bench", mount.point)
    claim(done.returncode == 0 and "small files" in done.stdout and "times" in done.stdout, done.stdout)


def bench_gives_up_on_hang(source, work):
    with Mount(work, source, "--hang-after", str(2 << 20)) as mount:
        done = sluice("bench", os.path.join(mount.point, "big"))
        os.kill(mount.pid, signal.SIGUSR2)
        claim(done.returncode == 1 and "no answer within 10 seconds" in done.stderr, done.stderr)


def test(work):
    source = make_source(work)
    with Mount(work, source, "--latency", "1") as mount:
        stops_at_limit(mount)
    with Mount(work, source, "--latency", "1") as mount:
        reads_all_once(mount)
        names_what_it_cannot_read(work, mount)
    os.truncate(os.path.join(source, "big"), 400 << 20)
    for number in range(COUNT, 6 * COUNT):
        shutil.copy(os.path.join(source, "small/deep/0"), os.path.join(source, f"small/deep/{number}"))
    with Mount(work, source, "--latency", "5") as mount:
        bench_finds_latency_and_depth(mount)
    ends_when_interrupted(source, work)
    mount_without_cache(source, work)
    bench_gives_up_on_hang(source, work)


def main():
    if not os.path.exists("/dev/fuse") or not shutil.which("fusermount3") or os.geteuid() != 0:
        print("FUSE and root are needed")
        raise SystemExit(77)
    work = tempfile.mkdtemp(prefix="warm-", dir=os.environ.get("TEST_DIR"))
    try:
        test(work)
    except slowfs_harness.Failure as failure:
        print(f"failed: {failure}")
        raise SystemExit(1) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
