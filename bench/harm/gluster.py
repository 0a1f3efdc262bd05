"""A real network file system on one machine: Debian's GlusterFS, its server in network and process namespaces
of its own at the end of a link of limited rate. Needs root. Whatever becomes of the benchmark, a guard
process takes everything down."""
import contextlib
import os
import shutil
import subprocess
import sys
import time

if __name__ == "__main__":  # the guard
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from bench.lib.place import Failed, Skipped, is_root  # noqa: E402
from bench.lib.storage import call, mounted, unmount  # noqa: E402

LINK, HERE, THERE = "sluice-harm", "10.213.77.1", "10.213.77.2"
PATIENCE = 60  # seconds until something comes up
SETTINGS = """volume management
  type mgmt/glusterd
  option working-directory {folder}/state
  option run-directory {folder}/run
  option glusterd-sockfile {folder}/s
  option transport-type socket
  option transport.address-family inet
end-volume
"""
SERVER = """set -e
ip link set lo up
read _
ip addr add {there}/24 dev server
ip link set server up
tc qdisc add dev server root tbf rate {rate} burst 1m latency 50ms
glusterd --no-daemon --volfile {folder}/glusterd.vol --pid-file {folder}/pid --log-file {folder}/server.log &
wait
"""


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise Failed(f"gluster: {what} did not come within {PATIENCE} s")
        time.sleep(0.02)
    return found


def children(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as text:
            return [int(word) for word in text.read().split()]
    return []


class Gluster:
    """A volume behind a link; used as a context manager. `top`: folder for its state."""

    def __init__(self, top, rate):
        self.folder = f"/tmp/sg-{os.getpid()}"  # a unix socket lies in it, whose path must be short
        self.mount, self.rate = os.path.join(top, "mnt", "gluster"), rate
        self.stack, self.present, self.trouble = contextlib.ExitStack(), set(), ""

    def __enter__(self):
        if not is_root() or not shutil.which("glusterd") or not shutil.which("tc"):
            raise Skipped("gluster: needs root, and `scripts/setup gluster`")
        os.makedirs(self.folder, mode=0o700)
        for name in ("state", "run", "brick"):
            os.mkdir(os.path.join(self.folder, name))
        os.makedirs(self.mount, exist_ok=True)
        with open(os.path.join(self.folder, "glusterd.vol"), "w", encoding="ascii") as file:
            file.write(SETTINGS.format(folder=self.folder))
        server = subprocess.Popen(
            ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
             SERVER.format(there=THERE, rate=self.rate, folder=self.folder)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        guard = subprocess.Popen([sys.executable, os.path.abspath(__file__), str(server.pid), self.folder, self.mount],
                                 stdin=subprocess.PIPE, start_new_session=True)
        self.stack.callback(self._end, guard, server)
        try:
            self._start(server)
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def _end(self, guard, server):
        guard.stdin.close()
        guard.wait()
        server.stdin.close()
        server.wait()

    def _start(self, server):
        inside = until(lambda: children(server.pid), "the namespace")[0]
        until(lambda: os.readlink(f"/proc/{inside}/ns/net") != os.readlink("/proc/self/ns/net"), "the network")
        call("ip", "link", "add", LINK, "type", "veth", "peer", "name", "server", "netns", str(inside))
        call("ip", "addr", "add", f"{HERE}/24", "dev", LINK)
        call("ip", "link", "set", LINK, "up")
        server.stdin.write(b"\n")
        server.stdin.flush()
        until(lambda: self._ask("volume", "list") is not None, "the server")
        if self._ask("volume", "create", "harm", f"{THERE}:{self.folder}/brick", "force") is None or \
                self._ask("volume", "start", "harm") is None:
            raise Failed(f"gluster: no volume: {self.trouble}")

    def _ask(self, *words):
        done = subprocess.run(["gluster", "--mode=script", f"--glusterd-sock={self.folder}/s",
                               f"--log-file={self.folder}/cli.log", *words], capture_output=True, text=True,
                              check=False)
        self.trouble = (done.stderr or done.stdout).strip()
        return done.stdout if done.returncode == 0 else None

    @contextlib.contextmanager
    def _mounted(self):
        client = subprocess.Popen(["glusterfs", "--no-daemon", f"--volfile-server={THERE}", "--volfile-id=harm",
                                   f"--log-file={self.folder}/client.log", self.mount])
        try:
            until(lambda: mounted(self.mount) or client.poll() is not None, "the mount")
            if client.poll() is not None:
                raise Failed("gluster: the client ended")
            yield
        finally:
            unmount(self.mount)
            client.terminate()
            client.wait()

    @contextlib.contextmanager
    def fresh(self, source):
        """The folder with what `source` holds, on a mount of which nothing is cached."""
        name = os.path.basename(source)
        if name not in self.present:
            with self._mounted():
                call("cp", "-r", source, os.path.join(self.mount, name))
            self.present.add(name)
        with self._mounted():
            yield os.path.join(self.mount, name)


def guard(server, folder, mount):
    """Waits until the benchmark ends, in whatever way, and takes all of it down."""
    sys.stdin.buffer.read()
    with contextlib.suppress(Failed):
        unmount(mount)
    inside = children(server)
    for pid in inside:  # the first process of its namespace takes all others with it
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
    subprocess.run(["ip", "link", "del", LINK], capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    guard(int(sys.argv[1]), sys.argv[2], sys.argv[3])
