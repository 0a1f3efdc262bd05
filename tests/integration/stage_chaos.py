#!/usr/bin/python3
# test: timeout=300 alone long
"""The optimizer is killed or stopped 100 times while jobs read files that it stages: every job gets
the right bytes and ends in time, and nothing stays behind in memory.   stage_chaos [SEED]"""
import json
import os
import random
import signal
import subprocess
import sys
import time

import harness
from harness import TOP, claim, until

MOMENTS = 100
FILES = 300
# Reads every file in shuffled order, epoch after epoch, published as PyTorch's adapter does. Two
# readers, forked, take turns.
JOB = """
import hashlib, os, random, sys
sys.path.insert(0, sys.argv[1])
import sluice
folder, epochs = sys.argv[2], 4
paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))] + [sys.argv[3]]
draw, read = random.Random(1), hashlib.sha256()
for epoch in range(epochs):
    with open(paths[-1], "wb") as file:  # an optimizer that does not answer knows nothing of this
        file.write(b"epoch %d" % epoch * 500)
    order = list(range(len(paths)))
    draw.shuffle(order)
    data = sluice.dataset("chaos", len(paths))
    if data > 0:
        sluice.locate_files(data, 0, paths)
        sluice.publish_order(data, epoch, order, whole=True)
    pipes = []
    for part in range(2):
        ours, theirs = os.pipe()
        if os.fork() == 0:
            digest = hashlib.sha256()
            for index in order[part::2]:
                with sluice.sample(data, index), open(paths[index], "rb") as file:
                    about = os.fstat(file.fileno())
                    modified = about.st_mtime_ns if index < len(paths) - 1 else 0
                    digest.update(b"%d %d %d" % (about.st_ino, modified, about.st_size))
                    digest.update(file.read())
                hashlib.sha256(bytes(1 << 19)).digest()  # what a job computes
            os.write(theirs, digest.digest())
            os._exit(0)
        os.close(theirs)
        pipes.append(ours)
    for pipe in pipes:
        read.update(os.read(pipe, 32))
        os.close(pipe)
    for _ in pipes:
        status = os.wait()[1]
        if status:
            sys.exit("a reader ended with %d" % status)
print(read.hexdigest())
"""


def staged_folders():
    """What optimizers that are no more left in memory."""
    base = f"/dev/shm/sluice-{os.geteuid()}"
    names = os.listdir(base) if os.path.isdir(base) else []
    return [name for name in names if not os.path.exists(f"/proc/{name.split('-')[0]}")]


def hurt(place, how):
    struck = []
    for pid in place.optimizers():
        try:
            os.kill(pid, signal.SIGKILL if how == "kill" else signal.SIGSTOP)
            struck.append(pid)
        except ProcessLookupError:
            pass
    return struck


def one_job(place, mount, draw, expected, most):
    """Runs a job; its optimizer is in trouble now and then. Returns how often, and copies seen."""
    job = place.start(["/usr/bin/python3", "-c", JOB, os.path.join(TOP, "adapters/python"), mount,
                       mount + "-changing"], SLUICE_MEMORY="64M", SLUICE_STAGE="always",
                      SLUICE_LINGER="1")
    struck, stopped = 0, []
    started = time.monotonic()
    while not harness.ended_within(job, draw.uniform(0.02, 0.25)):
        if time.monotonic() - started > 90:
            break
        if struck >= most:
            continue
        how = draw.choice(["kill", "kill", "stop"])
        pids = hurt(place, how)
        struck += len(pids)
        if how == "stop":
            stopped += pids
            # Now and then for longer than the library believes in one that is silent.
            harness.ended_within(job, draw.uniform(1.2, 2.5) if draw.random() < 0.2 else
                                 draw.uniform(0, 0.1))
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
    out, err = harness.communicate(job, 90)
    claim(job.returncode == 0 and out == expected,
          f"status {job.returncode}, {out!r} instead of {expected!r}; {err}")
    return struck


def test(place):
    place.patience = None
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        harness.skip("there is no /dev/fuse")
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed} (again: tests/integration/stage_chaos {seed})", flush=True)
    draw = random.Random(seed)
    source, mount = os.path.join(place.folder, "source"), os.path.join(place.folder, "mount")
    os.mkdir(source)
    os.mkdir(mount)
    for index in range(FILES):
        with open(os.path.join(source, f"{index:04d}"), "wb") as file:
            file.write(draw.randbytes(draw.randrange(30000)))
    subprocess.run([os.path.join(harness.BUILD, "bench/slowfs"), source, mount, "--latency", "0.5"],
                   check=True)
    try:
        plain = place.run(["/usr/bin/python3", "-c", JOB, os.path.join(TOP, "adapters/python"),
                           mount, mount + "-changing"], library=None)
        claim(plain.returncode == 0, plain.stderr)
        calm = os.path.join(place.folder, "calm")
        quiet = place.run(["/usr/bin/python3", "-c", JOB, os.path.join(TOP, "adapters/python"),
                           mount, mount + "-changing"], SLUICE_MEMORY="64M", SLUICE_STAGE="always",
                          SLUICE_REPORT=calm)
        claim(quiet.stdout == plain.stdout, quiet.stderr)
        with open(calm, encoding="utf-8") as text:
            hits = json.load(text)["sample_hits"]
        claim(hits > FILES, f"only {hits} of {4 * FILES} samples were staged")
        struck, jobs = 0, 0
        while struck < MOMENTS and jobs < MOMENTS:
            struck += one_job(place, mount, draw, plain.stdout, min(8, MOMENTS - struck))
            jobs += 1
        print(f"{struck} moments in {jobs} jobs")
        claim(struck >= MOMENTS, "optimizers were not found")
        until(lambda: not staged_folders(), 10, f"left behind: {staged_folders()}")
    finally:
        subprocess.run(["umount", "-l", mount], check=False)


if __name__ == "__main__":
    harness.main(test)
