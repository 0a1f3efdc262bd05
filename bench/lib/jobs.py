"""Runs jobs without and with Sluice; with it, each has a fresh optimizer of its own."""
import contextlib
import dataclasses
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

from bench.lib.place import LIBRARY, Failed, program

JOB_LIMIT = 600  # seconds
OPTIMIZER_LIMIT = 20  # seconds to start, and to end
TICKS = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass
class Run:
    """One job, or ranks of one. Times in seconds, of the wall clock unless named otherwise."""
    wall: float  # from before the start of the first process to the end of the last
    ranks: list  # what each reader printed
    optimizer: dict = dataclasses.field(default_factory=dict)  # cpu_s, rss_bytes, pid
    report: dict = dataclasses.field(default_factory=dict)  # the library's own end-of-run figures
    asked: dict = dataclasses.field(default_factory=dict)  # slowfs's figures after the run

    @property
    def reader(self):
        return self.ranks[0]

    @property
    def digest(self):
        total = sum(int(rank["passes"][0]["digest"], 16) for rank in self.ranks)
        return f"{total % (1 << 64):016x}"

    @property
    def span(self):
        """From the first reader's main() to the end of the last one's last pass."""
        first = min(rank["started_ns"] for rank in self.ranks)
        return (max(rank["ended_ns"] for rank in self.ranks) - first) / 1e9

    def asked_by_readers(self):
        """Bytes that the readers' own processes demanded from slowfs."""
        return sum(self.asked["processes"].get(str(rank["pid"]), {}).get("read_bytes", 0)
                   for rank in self.ranks)

    def raw(self):
        raw = {"wall": self.wall, "ranks": self.ranks, "optimizer": self.optimizer}
        if self.report:
            raw["report"] = {k: v for k, v in self.report.items()
                              if v and not isinstance(v, dict)}
        if self.asked:
            raw["read_bytes"] = {pid: [p["command"], p["read"], p["read_bytes"]]
                                  for pid, p in self.asked["processes"].items() if p["read"]}
        return raw


class Sluice:
    """A socket folder and what jobs under it need in their environment."""

    def __init__(self, **settings):
        self.settings = {f"SLUICE_{name.upper()}": str(v) for name, v in settings.items()}
        self.folder = None
        self.by_hand = None  # an optimizer that no job started

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="sb-", dir="/tmp")
        return self

    def __exit__(self, *_):
        try:
            self.stop()
        finally:
            if self.by_hand:
                self.by_hand.kill()
                self.by_hand.wait()
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def socket(self):
        return os.path.join(self.folder, "s.sock")

    @property
    def report_path(self):
        return os.path.join(self.folder, "report")

    def environment(self):
        return {"LD_PRELOAD": LIBRARY, "SLUICE_SOCKET": self.socket, "SLUICE_LINGER": "600",
                "SLUICE_LOG": "error", "SLUICE_REPORT": self.report_path,
                "SLUICE_PLACES": "off",  # each run is the first that saw its data
                **self.settings}

    def status(self):
        """What the optimizer says of itself; None if there is none."""
        done = subprocess.run([program("sluice"), "status", "--json", "--socket", self.socket],
                              capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def start_by_hand(self):
        """The optimizer runs before the job comes, which it has never met."""
        self.by_hand = subprocess.Popen(
            [program("sluice-optimizer"), "--socket", self.socket, "--linger", "600"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not self.answer():
            raise Failed("the optimizer did not start")

    def answer(self):
        """status(), once the optimizer comes to that, which a busy machine may keep waiting; None if it never does."""
        deadline = time.monotonic() + OPTIMIZER_LIMIT
        while True:
            status = self.status()
            if status or time.monotonic() > deadline:
                return status
            time.sleep(0.01)

    def usage(self):
        """Processor seconds and peak memory of the optimizer so far; its I/O workers count."""
        status = self.answer()
        if not status:
            return {}
        pid = status["pid"]
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as text:
            fields = text.read().rsplit(")", 1)[1].split()
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as text:
            peak = next(int(li.split()[1]) * 1024 for li in text if li.startswith("VmHWM:"))
        return {"pid": pid, "cpu_s": (int(fields[11]) + int(fields[12])) / TICKS,
                "rss_bytes": peak}

    def stop(self):
        status = self.status()
        if not status:
            return
        subprocess.run([program("sluice"), "stop", "--socket", self.socket], capture_output=True,
                       check=False)
        deadline = time.monotonic() + OPTIMIZER_LIMIT
        while is_running(status["pid"]):
            if time.monotonic() > deadline:
                os.kill(status["pid"], signal.SIGKILL)
                raise Failed(f"the optimizer did not end within {OPTIMIZER_LIMIT} s")
            time.sleep(0.01)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as text:
            return text.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def joins(cgroup, cpu=None):
    """What a child does before it becomes the job; None: nothing. `cgroup`: the path of its cgroup.procs."""
    def prepare():
        if cgroup:
            with open(cgroup, "w", encoding="ascii") as members:
                members.write(str(os.getpid()))
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
    return prepare if cgroup or cpu is not None else None


def run(commands, sluice=None, cpu=None, cgroup=None, settings=None):
    """Runs the commands at the same time, to the end; each prints one JSON object.

    With `sluice` (entered), under the library; its optimizer stays, to be queried and stopped. `settings` are
    added to the jobs' environment, with Sluice or without.
    """
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **(settings or {})}
    if sluice:
        environment.update(sluice.environment())
    with contextlib.ExitStack() as stack:
        jobs = []
        started = time.monotonic()
        for command in commands:
            job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=environment,
                                   preexec_fn=joins(cgroup, cpu))
            stack.callback(end, job)
            jobs.append(job)
        for job in jobs:
            await_end(job)
        wall = time.monotonic() - started
        printed, said = [], []
        for job in jobs:
            out, err = job.communicate()
            if job.returncode:
                raise Failed(f"{' '.join(job.args)}: status {job.returncode}: {err.strip()}")
            printed.append(json.loads(out))
            said.append(err.strip())
    result = Run(wall=wall, ranks=printed)
    if sluice:
        result.optimizer = sluice.usage()
        if not result.optimizer:
            raise Failed("the job ran without an optimizer" + "".join(f"\n{err}" for err in said if err))
        with contextlib.suppress(OSError, ValueError):
            with open(sluice.report_path, encoding="utf-8") as text:
                result.report = json.load(text)
    return result


def await_end(job):
    """Without Popen.wait's polling, which would round the time up by as much as 50 ms."""
    handle = os.pidfd_open(job.pid)
    try:
        ready = select.poll()
        ready.register(handle, select.POLLIN)
        if not ready.poll(JOB_LIMIT * 1000):
            raise Failed(f"{' '.join(job.args)}: not done after {JOB_LIMIT} s")
    finally:
        os.close(handle)


def end(job):
    if job.poll() is None:
        job.kill()
        job.wait()
    job.stdout.close()
    job.stderr.close()


def reader(mode, path, *options, pace=None):
    """The argument vector of the benchmark reader; `pace` in MB/s of its computing."""
    command = [program("bench/reader"), mode, path, *map(str, options)]
    return command + (["--pace", f"{pace:.3f}"] if pace else [])
