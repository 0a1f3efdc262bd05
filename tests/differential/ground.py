"""Where random programs run: a worker's folder, its optimizers, and one run of a program."""
import ctypes
import dataclasses
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "integration"))
sys.dont_write_bytecode = True
import harness  # noqa: E402
import tree  # noqa: E402

EXECUTOR = os.path.join(harness.BUILD, "victims", "differential")
DEADLINE = 90  # s for one run; a run takes milliseconds
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18


@dataclasses.dataclass
class Outcome:
    """What a run gave. All but `counts` and `note` must be the same with and without Sluice."""
    status: int = 0
    log: list = dataclasses.field(default_factory=list)
    state: list = dataclasses.field(default_factory=list)
    errors: str = ""
    counts: tuple = (0, 0, 0)  # opens for reading within samples, copies among them, files staged
    report: dict = dataclasses.field(default_factory=dict)

    def differences(self, other):
        """Pairs of lines (here, there) that are not the same, the first ones of each kind."""
        found = []
        if self.status != other.status:
            found.append((f"status {self.status}", f"status {other.status}"))
        if self.errors != other.errors:
            found.append((f"stderr {self.errors[:300]!r}", f"stderr {other.errors[:300]!r}"))
        for what in "log", "state":
            one, two = getattr(self, what), getattr(other, what)
            only = [line for line in one if line not in two]
            more = [line for line in two if line not in one]
            for index in range(max(len(only), len(more))):
                found.append((f"{what} {only[index] if index < len(only) else '-'}",
                              f"{what} {more[index] if index < len(more) else '-'}"))
            if not only and not more and one != two:
                found.append((f"{what}: order or repeats", f"{len(one)} and {len(two)} lines"))
        return found


def own_mounts():
    """Takes this process into a mount namespace of its own, so that whatever programs mount is
    seen by no other process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        return False
    return libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0


class Ground:
    """A private folder, with an optimizer for each identity that programs have."""

    def __init__(self):
        self.as_root = os.geteuid() == 0
        self.mounts = self.as_root and own_mounts()
        self.folder = tempfile.mkdtemp(prefix="sv-differential-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        self.memory = tempfile.mkdtemp(prefix="sv-differential-", dir="/dev/shm")
        os.chmod(self.memory, 0o755)
        self.build = harness.BUILD
        if self.as_root and not harness.drive.readable_by_nobody([EXECUTOR]):
            self.build = os.path.join(self.folder, "build")
            os.makedirs(os.path.join(self.build, "victims"))
            shutil.copy(EXECUTOR, os.path.join(self.build, "victims"))
            for name in "libsluice.so", "sluice-optimizer":
                shutil.copy(os.path.join(harness.BUILD, name), self.build)
        self.executor = os.path.join(self.build, "victims", "differential")
        self.library = os.environ.get("LIBRARY") or os.path.join(self.build, "libsluice.so")
        self.size, self.counts_at, self.log_at = map(int, subprocess.run(
            [self.executor, "--size"], capture_output=True, text=True, check=True).stdout.split())
        self.sockets = {}
        for member in (False, True)[:1 + self.as_root]:
            self.sockets[member] = os.path.join(self.folder, "member" if member else "own")
            os.mkdir(self.sockets[member], 0o700)
            if member:
                os.chown(self.sockets[member], tree.USER, tree.USER)
        self.log = os.path.join(self.memory, "log")
        with open(self.log, "wb"):
            os.chmod(self.log, 0o666)

    def end(self):
        try:
            for sockets in self.sockets.values():
                for pid in harness.drive.optimizers_of(sockets):
                    os.kill(pid, signal.SIGCONT)
                harness.drive.end_optimizer(sockets)
        finally:
            shutil.rmtree(self.memory, ignore_errors=True)
            shutil.rmtree(self.folder, ignore_errors=True)

    def environment(self, program, top, under):
        values = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": self.folder}
        if self.mounts:
            values["DIFFERENTIAL_MOUNTS"] = "1"
        if under:
            large = ":".join(os.path.join(top, name) for name in tree.LARGE)
            sockets = self.sockets[program.member]
            values.update(LD_PRELOAD=self.library, SLUICE_LINGER="60", SLUICE_STAGE="always",
                          SLUICE_SOCKET=os.path.join(sockets, "s.sock"), SLUICE_STALE="1000",
                          SLUICE_DATASET=large, SLUICE_CHECKPOINT=program.checkpoint,
                          SLUICE_DISTANCE="64K", SLUICE_MEMORY="64M",
                          SLUICE_REPORT=os.path.join(sockets, "report"))
        return values

    def command(self, program, top, text, values):
        argv = [self.executor, text, self.log, top]
        if not program.member:
            return argv, values
        # By way of env: setpriv itself runs without the library. The one capability is that to
        # leave the group; it is ambient, so that the loader still takes LD_PRELOAD.
        user = str(tree.USER)
        settings = [f"{name}={value}" for name, value in values.items()]
        return ["setpriv", "--reuid", user, "--regid", user, "--groups", str(tree.GROUP),
                "--inh-caps", "-all,+setgid", "--ambient-caps", "-all,+setgid", "env", "-i", *settings,
                *argv], {"PATH": values["PATH"]}

    def run(self, program, under):
        """One run on a fresh tree; the same path with and without Sluice."""
        top = os.path.join(self.folder, f"t{program.seed}")
        text = os.path.join(self.memory, "program")
        tree.make(top, tree.USER if program.member else 0, self.as_root)
        try:
            with open(text, "w", encoding="ascii") as out:
                out.write(program.text())
            os.truncate(self.log, 0)
            os.truncate(self.log, self.size)
            values = self.environment(program, top, under)
            argv, values = self.command(program, top, text, values)
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE, env=values, cwd="/")
            outcome = self.finish(child)
            if under:
                outcome.report = self.take_report(program)
            self.unmount(top)
            outcome.state = tree.state(top)
            return outcome
        finally:
            self.unmount(top)
            tree.remove(top)

    def finish(self, child):
        outcome = Outcome()
        try:
            outcome.errors = self.errors_of(child)
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
        outcome.status = child.returncode
        with open(self.log, "rb") as file:
            shared = file.read()
        pids = [p for p in struct.unpack_from("8i", shared, 36) if p > 0 and p != child.pid]
        late = set(pids) - harness.drive.ended(pids, DEADLINE)
        for pid in late:
            os.kill(pid, signal.SIGKILL)
        with open(self.log, "rb") as file:
            shared = file.read()
        *outcome.counts, used = struct.unpack_from("4I", shared, self.counts_at)
        lines = shared[self.log_at:self.log_at + used].decode(errors="backslashreplace").splitlines()
        outcome.log = sorted(lines, key=lambda line: int(line.split(" ", 1)[0]))
        if late:
            outcome.log.append(f"9999 {len(late)} processes did not end")
        return outcome

    @staticmethod
    def errors_of(child):
        """Standard error of the first process, until that has ended: others may hold it open."""
        text, pid = b"", os.pidfd_open(child.pid)
        try:
            waiting = [pid, child.stderr.fileno()]
            while pid in waiting:
                ready = select.select(waiting, [], [], DEADLINE)[0]
                if not ready:
                    child.kill()
                    return "the first process did not end"
                if child.stderr.fileno() in ready:
                    got = os.read(child.stderr.fileno(), 65536)
                    text += got
                    if not got:
                        waiting.remove(child.stderr.fileno())
                if pid in ready:
                    waiting.remove(pid)
        finally:
            os.close(pid)
            child.stderr.close()
            child.wait()
        lines = text.decode(errors="backslashreplace").splitlines()
        return "\n".join(line for line in lines if not line.startswith("sluice:"))

    def take_report(self, program):
        path = os.path.join(self.sockets[program.member], "report")
        try:
            with open(path, encoding="utf-8") as file:
                found = harness.json.load(file)
            os.unlink(path)
            return {k: v for k, v in found.items() if isinstance(v, (int, float))}
        except (OSError, ValueError):
            return {}

    def unmount(self, top):
        if not self.mounts:
            return
        with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
            points = [line.split()[4] for line in mounts]
        for point in reversed(points):
            if point.startswith(top + "/"):
                subprocess.run(["umount", "-l", point], check=False)
