#!/usr/bin/python3
"""The optimizer starts by itself, one for all jobs, ends SLUICE_LINGER seconds after its last job
and leaves nothing behind."""
import contextlib
import os
import signal
import subprocess

import harness
from harness import claim, until


def test(place):
    argv = harness.victim("steady", 5)
    jobs = [place.start(argv, SLUICE_LINGER="60") for _ in range(6)]
    seen = until(place.optimizers, 10, "an optimizer runs")
    for job in jobs:
        out, err = harness.communicate(job, 60)
        claim(job.returncode == 0, err)
    # Those that lost the race for the lock may still be on their way out.
    until(lambda: len(place.optimizers()) == 1, 5, f"one optimizer for six jobs (first {seen})")
    running = place.optimizers()
    pid = running[0]
    # It has nothing of the job: its own session, folder /, no descriptor of the job's.
    claim(os.getsid(pid) != os.getsid(0), "it is in the job's session")
    claim(os.readlink(f"/proc/{pid}/cwd") == "/", "its folder is not /")
    for fd in range(3):
        claim(os.readlink(f"/proc/{pid}/fd/{fd}") == "/dev/null", f"its descriptor {fd}")
    with open(f"/proc/{pid}/environ", "rb") as text:
        claim(b"LD_PRELOAD=" not in text.read(), "it inherited LD_PRELOAD")
    # A second job does not need a second one.
    done = place.run(argv, SLUICE_LINGER="60")
    claim(done.returncode == 0 and place.optimizers() == [pid], f"then {place.optimizers()}")
    until(lambda: not any(f"{harness.DATA}/" in name for name in open_files(pid)), 5,
          f"the data is released after the last job: {open_files(pid)}")
    claim(drive_alive(pid), "it has ended")
    harness.drive.end_optimizer(place.sockets)
    job = place.start(argv, SLUICE_LINGER="2")
    pid = until(place.optimizers, 10, "an optimizer runs again")[0]
    claim(harness.communicate(job, 60) and job.returncode == 0, "its job")
    until(lambda: not drive_alive(pid), 10, "it ends after two seconds")
    claim(os.listdir(place.sockets) == [] or os.listdir(place.sockets) == ["s.lock"],
          f"it left {os.listdir(place.sockets)}")
    # A stale socket of one that died without a chance to tidy up does not stop the next.
    claim(place.run(argv, SLUICE_LINGER="30").returncode == 0, "a job after its end")
    pid = until(place.optimizers, 10, "a new optimizer")[0]
    os.kill(pid, signal.SIGKILL)
    until(lambda: not drive_alive(pid), 5, "it dies")
    claim(place.run(argv, SLUICE_LINGER="30").returncode == 0, "a job after its death")
    pid = until(place.optimizers, 10, "a new optimizer after a stale socket")[0]
    stop = subprocess.run([os.path.join(harness.BUILD, "sluice"), "stop"], capture_output=True,
                          text=True, check=False,
                          env={**os.environ, "SLUICE_SOCKET": place.sockets + "/s.sock"})
    claim(stop.returncode == 0, f"sluice stop: {stop.stderr}")
    until(lambda: not drive_alive(pid), 5, "it ends on request")


def open_files(pid):
    names = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            names.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return names


def drive_alive(pid):
    return harness.drive.alive(pid)


if __name__ == "__main__":
    harness.main(test)
