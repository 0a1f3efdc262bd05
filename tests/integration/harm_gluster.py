#!/usr/bin/python3
# test: timeout=180 alone
"""The network file system of scripts/bench-harm shows a folder's files on each fresh mount, and nothing of it
stays: not after its end, and not after the benchmark was killed."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import harness
from harness import claim, until

sys.path.insert(0, harness.TOP)
from bench.harm import gluster  # noqa: E402
from bench.lib.storage import mounted  # noqa: E402

KILLED = """
import signal, sys
sys.path.insert(0, sys.argv[1])
from bench.harm.gluster import Gluster
with Gluster(sys.argv[2], "800mbit") as network:
    with network.fresh(sys.argv[3]) as folder:
        print(network.folder, flush=True)
        signal.pause()  # until it is killed
"""


def link():
    return subprocess.run(["ip", "link", "show", gluster.LINK], capture_output=True, check=False).returncode == 0


def processes(folder):
    """Of the server and its client: all have the state's folder among their arguments."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as text:
                words = text.read().split(b"\0")
        except OSError:
            continue
        if words[0].startswith(b"gluster") and any(folder.encode() in word for word in words):
            found.append(pid)
    return found


def check_gone(folder, mount):
    until(lambda: not (link() or mounted(mount) or os.path.exists(folder) or processes(folder)), 30,
          f"all of {folder} is gone: {link()} {mounted(mount)} {os.path.exists(folder)} {processes(folder)}")


def check_mounts(top, source):
    with gluster.Gluster(top, "800mbit") as network:
        for _ in range(2):
            with network.fresh(source) as folder:
                seen = {name: open(os.path.join(folder, name), "rb").read() for name in os.listdir(folder)}
                claim(seen == {"one": b"1" * 300000, "two": b""}, f"{ {n: len(v) for n, v in seen.items()} }")
        claim(link() and processes(network.folder), "the check sees no server")
    check_gone(network.folder, network.mount)


def check_killed(top, source):
    job = subprocess.Popen([sys.executable, "-c", KILLED, harness.TOP, top, source], stdout=subprocess.PIPE, text=True)
    try:
        folder = job.stdout.readline().strip()
        claim(folder and link(), "the job has no network")
    finally:
        job.send_signal(signal.SIGKILL)
        job.wait()
    check_gone(folder, os.path.join(top, "mnt", "gluster"))


def test(_):
    if os.geteuid() != 0 or not shutil.which("glusterd") or not shutil.which("tc"):
        harness.skip("needs root and GlusterFS (scripts/setup gluster)")
    if link():
        harness.skip("a benchmark has its network file system up")
    with tempfile.TemporaryDirectory(prefix="g-", dir=os.environ.get("TEST_DIR")) as top:
        source = os.path.join(top, "source")
        os.mkdir(source)
        for name, content in (("one", b"1" * 300000), ("two", b"")):
            with open(os.path.join(source, name), "wb") as file:
                file.write(content)
        check_mounts(top, source)
        check_killed(top, source)


if __name__ == "__main__":
    harness.main(test)
