"""What the integration tests share: jobs under the library, each with an optimizer of its own."""
import contextlib
import importlib.machinery
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib

import stuck
from waiting import communicate, wait_for

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get("B", "build"))
DATA = os.path.join(BUILD, "test-data")
LIBRARY = os.environ.get("LIBRARY") or os.path.join(BUILD, "libsluice.so")

_loader = importlib.machinery.SourceFileLoader("drive", os.path.join(TOP, "tests/victims/drive"))
_loader_spec = importlib.util.spec_from_loader("drive", _loader)
sys.dont_write_bytecode = True
drive = importlib.util.module_from_spec(_loader_spec)
_loader.exec_module(drive)


class Failure(Exception):
    """A test's claim that turned out not to hold."""


class TooLate(Failure):
    """The optimizer was late, which on a busy machine says little: repeated() checks it again."""


def skip(why):
    print(why)
    sys.exit(77)


def need_modules(modules, python=sys.executable):
    """Skips the test where `python` lacks one of them ("torch, numpy")."""
    if subprocess.run([python, "-c", f"import {modules}"], capture_output=True, check=False).returncode:
        skip(f"no {modules} here")


def torch2(*needs):
    """A Python that has PyTorch 2 and the modules `needs`; skips the test where there is none."""
    code = ("import importlib.util, sys, torch; assert int(torch.__version__.split('.')[0]) >= 2\n"
            "print(*[m for m in sys.argv[1:] if not importlib.util.find_spec(m)])")
    # scripts/setup torch2 makes the second.
    for path in (os.environ.get("SLUICE_TORCH2", ""), os.path.join(BUILD, "venv", "bin", "python3")):
        if os.path.isfile(path):
            asked = subprocess.run([path, "-c", code, *needs], capture_output=True, text=True, check=False)
            if asked.returncode == 0:
                lacks = asked.stdout.split()
                return skip(f"no {', '.join(lacks)} (scripts/setup stack)") if lacks else path
    return skip("no Python with PyTorch 2 (scripts/setup torch2)")


def claim(truth, what):
    if not truth:
        raise Failure(what)


def in_time(truth, what):
    """A claim that holds only if the optimizer was prompt."""
    if not truth:
        raise TooLate(what)


def repeated(place, check, *arguments):
    """check(*arguments), up to three times where it is TooLate, each with an optimizer that has learned nothing yet."""
    for last in (False, False, True):
        try:
            return check(*arguments)
        except TooLate as why:
            if last:
                raise
            print(f"again: {why}")
            drive.end_optimizer(place.sockets)


def in_turn(cases, count):
    """The cases of this run, in their order: `count` of them, others with each of run-tests' seeds;
    all without one, as in the test's long form and by hand. The test's first lines say `turns`."""
    cases = list(cases)
    if "TEST_SEED" not in os.environ:
        return cases
    first = zlib.crc32(os.path.basename(sys.argv[0]).encode()) + int(os.environ["TEST_SEED"])
    chosen = {(first + i) % len(cases) for i in range(count)}
    return [case for number, case in enumerate(cases) if number in chosen]


def until(condition, seconds, what):
    """Waits for a condition, not for a time; Failure if it has not come after `seconds`."""
    got = wait_for(condition, seconds)
    if not got:
        raise Failure(f"not within {seconds} s: {what}")
    return got


def ended_within(job, seconds):
    """Whether the job ends before a moment that a test drew at random is there."""
    try:
        job.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        return False


def victim(name, *own, data=None):
    """The argument vector of a C victim."""
    files = data or [os.path.join(DATA, f) for f in ("scan.bin", "big.bin", "lmdb")]
    return [os.path.join(BUILD, "victims", name), *files, *map(str, own)]


class Place:
    """A socket folder with its optimizer, and a working folder; all ended and removed on exit."""
    # Jobs wait for optimizers that a busy machine keeps waiting themselves. None: as users' do.
    patience = "8000"

    def __enter__(self):
        subprocess.run([os.path.join(TOP, "tests/victims/make-data"), DATA], check=True)
        self.folder = tempfile.mkdtemp(prefix="sv-", dir="/tmp")
        self.sockets = os.path.join(self.folder, "s")
        self.work = os.path.join(self.folder, "work")
        os.mkdir(self.sockets, 0o700)
        os.makedirs(os.path.join(self.work, "data"))
        return self

    def __exit__(self, kind, value, trace):
        # A stopped optimizer could not obey.
        for pid in self.optimizers():
            os.kill(pid, signal.SIGCONT)
        try:
            drive.end_optimizer(self.sockets)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def impatient(self):
        """For jobs whose optimizer does not answer: they wait for it as users' do."""
        self.patience = None
        try:
            yield
        finally:
            self.patience = Place.patience

    def environment(self, library=LIBRARY, **settings):
        values = {"PATH": os.environ["PATH"], "HOME": self.work, "LC_ALL": "C.UTF-8",
                  "TMPDIR": self.work}
        if library:
            values.update(LD_PRELOAD=library,
                          SLUICE_SOCKET=os.path.join(self.sockets, "s.sock"), SLUICE_LINGER="5",
                          SLUICE_PATIENCE=self.patience,
                          SLUICE_CHECKPOINT="cell", SLUICE_DISTANCE="64K",
                          SLUICE_DATASET=f"{DATA}/scan.bin:{DATA}/big.bin:{self.work}/data")
        values.update(settings)
        return {k: v for k, v in values.items() if v is not None}

    def start(self, argv, library=LIBRARY, preexec=None, stdin=subprocess.DEVNULL, **settings):
        return subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, cwd=self.work, text=True,
                                errors="backslashreplace", preexec_fn=preexec,
                                env=self.environment(library, **settings))

    def run(self, argv, library=LIBRARY, timeout=60, preexec=None, **settings):
        """Runs to the end; the result has args, returncode, stdout, stderr and seconds."""
        started = time.monotonic()
        job = self.start(argv, library, preexec, **settings)
        try:
            out, err = communicate(job, timeout)
        except subprocess.TimeoutExpired:
            raise Failure(f"still going after {timeout} s: {' '.join(argv)}\n{stuck.end(job)}") from None
        done = subprocess.CompletedProcess(argv, job.returncode, out, err)
        done.seconds = time.monotonic() - started
        return done

    def optimizers(self):
        found = set(drive.optimizers_of(self.sockets))
        owner = drive.lock_owner(self.sockets)
        return sorted(found | {owner} if owner else found)


def status(place):
    """What the optimizer says of itself, as `sluice status --json`, once it comes to that; None if there is none."""
    def ask():
        asked = subprocess.run([os.path.join(BUILD, "sluice"), "status", "--json", "--socket",
                                os.path.join(place.sockets, "s.sock")],
                               capture_output=True, text=True, check=False)
        return asked if asked.returncode == 0 or not place.optimizers() else None
    asked = wait_for(ask, 20)
    return json.loads(asked.stdout) if asked and asked.returncode == 0 else None


def processes_followed(place):
    """The processes of all jobs that the optimizer has sessions of."""
    found = status(place) or {"jobs": []}
    return [pid for job in found["jobs"] for pid in job["processes"]]


def staged(place):
    """How many files the optimizer has copied to its stage."""
    found = status(place)
    return found["stage"]["fetched_files"] if found and found.get("stage") else 0


def most_memory(pid):
    """Bytes: the most that the process ever had in memory."""
    with open(f"/proc/{pid}/status", encoding="ascii") as text:
        return next(int(line.split()[1]) << 10 for line in text if line.startswith("VmHWM"))


def make_samples(place, count, size=2000):
    """`count` small files in the job's folder of data, which is returned."""
    folder = os.path.join(place.work, "data")
    for number in range(count):
        with open(os.path.join(folder, f"{number:03}"), "wb") as file:
            file.write(os.urandom(size + number))
    return folder


PYTHON_ADAPTER = os.path.join(TOP, "adapters", "python")


def take_report(path):
    """What SLUICE_REPORT left there, which is removed; empty if it left none."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as text:
        found = json.load(text)
    os.unlink(path)
    return found


def of_threads(place, name, pids=None):
    """The text of /proc/PID/task/TID/`name` for each thread of the optimizer."""
    for pid in pids or place.optimizers():
        for thread in os.listdir(f"/proc/{pid}/task"):
            try:
                with open(f"/proc/{pid}/task/{thread}/{name}", encoding="ascii") as text:
                    yield text.read()
            except OSError:  # it has ended
                pass


def waits_for_fuse(place, pids=None):
    """How many threads of the optimizer, which are looked for unless given, wait for a FUSE server."""
    return sum(text == "request_wait_answer" for text in of_threads(place, "wchan", pids))


def sluice_lines(done):
    return [line for line in done.stderr.splitlines() if line.startswith("sluice:")]


def same(plain, under, what=""):
    """The job under the library ended as the plain one did."""
    claim(under.returncode == plain.returncode,
          f"{what}: status {under.returncode}, plain {plain.returncode}; stderr:\n{under.stderr}")
    claim(under.stdout == plain.stdout, f"{what}: standard output differs")
    other = [li for li in under.stderr.splitlines() if not li.startswith("sluice:")]
    claim(other == plain.stderr.splitlines(),
          f"{what}: standard error differs:\n{under.stderr}\nplain:\n{plain.stderr}")


def main(test):
    if not os.path.exists(LIBRARY):
        print(f"{LIBRARY} is not built")
        sys.exit(1)
    try:
        with Place() as place:
            test(place)
    except (Failure, drive.Fail) as why:
        print(f"failed: {why}")
        sys.exit(1)
