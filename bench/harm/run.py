"""One run of one job, without or with Sluice: its epochs' wall times, and a digest of all that came of it."""
import dataclasses
import errno
import hashlib
import json
import os
import pwd
import resource
import shutil
import signal
import subprocess
import tempfile
import time

from bench.harm import data, plan
from bench.lib.jobs import OPTIMIZER_LIMIT, await_end, is_running
from bench.lib.place import LIBRARY, Failed, program

WHOLE = "all"  # the name of the whole run among a row's epochs


@dataclasses.dataclass
class Result:
    epochs: list  # seconds of each epoch or pass
    whole: float  # seconds from the first process's start to the last one's end
    cpu: float  # processor seconds of the job and the processes that it waited for; steadier than wall time
    digest: str
    said: list  # Sluice's own lines
    saved: float = 0.0  # seconds of waiting that its report says were avoided


class Runner:
    """Runs jobs on folders; `top` holds data between runs."""

    def __init__(self, top, epochs):
        self.top, self.epochs = top, epochs

    def source(self, job, ground):
        """The job's data, made if it is not there yet."""
        return data.make(self.top, job.data, job.count_on(ground))

    def commands(self, job, folder, scratch):
        """An argument vector; and whether it prints its epochs itself, or is run once for each."""
        if job.command:
            return [word.replace("{data}", folder).replace("{scratch}", scratch) for word in job.command], False
        path = os.path.join(plan.FOLDER, "jobs", job.script)
        own = [folder, scratch, str(self.epochs)]
        for word in job.arguments:
            own.append({"{reader}": lambda: program("bench/reader"),
                        "{cluster}": lambda: data.cluster(self.top, job.user)}.get(word, lambda w=word: w)())
        if path.endswith(".js"):
            return ["node", path, *own], True
        if path.endswith(".java"):
            return ["java", "-cp", data.java(self.top, path), "Read", *own], True
        return ["/usr/bin/python3", path, *own], True

    def run(self, job, folder, sluice, report=False):
        """`report`: Sluice makes one, of which `saved` is taken. Failed if the job ends with a status of its own
        or a signal."""
        scratch = tempfile.mkdtemp(prefix="sh-", dir="/tmp")
        sockets = tempfile.mkdtemp(prefix="sb-", dir="/tmp")
        try:
            for one in (scratch, sockets):
                if job.user:
                    shutil.chown(one, job.user)
            environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": scratch, "TMPDIR": scratch,
                           "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
                           "PYTHONHASHSEED": "0"}
            if sluice:
                environment.update(LD_PRELOAD=LIBRARY, SLUICE_SOCKET=os.path.join(sockets, "s.sock"))
            wanted = os.path.join(sockets, "report.json")
            if sluice and report:
                # A name for all of its passes: they make one report.
                environment.update(SLUICE_REPORT=wanted, SLUICE_JOB=os.path.basename(sockets))
            try:
                result = self._run(job, folder, scratch, environment)
                if os.path.exists(wanted):
                    result.saved = saved_by(wanted)
                return result
            finally:
                if sluice:
                    stop_optimizer(environment["SLUICE_SOCKET"], job.user)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            shutil.rmtree(sockets, ignore_errors=True)

    def _run(self, job, folder, scratch, environment):
        command, prints = self.commands(job, folder, scratch)
        whole, seconds, said, digest = 0.0, [], [], hashlib.sha256()
        cpu = processor_time()
        for number in range(1 if prints else self.epochs):
            if number:
                empty(scratch)
            took, out, err, status = timed(command, environment, scratch, job.user)
            own = [line for line in err.splitlines() if line.startswith("sluice")]
            rest = [line for line in err.splitlines() if not line.startswith("sluice")]
            if status:
                raise Failed(f"{job.name}: status {status}: {' '.join(rest[-3:])[-400:]}")
            said += own
            whole += took
            if prints:
                printed = json.loads(out)
                seconds = printed["epochs"]
                digest.update(printed["digest"].encode())
            else:
                seconds.append(took)
                digest.update(out.replace(scratch.encode(), b"{scratch}"))
                if job.output == "tree":
                    digest.update(digest_of_tree(scratch))
            digest.update("\n".join(rest).replace(scratch, "{scratch}").encode())
        return Result(seconds, whole, processor_time() - cpu, digest.hexdigest()[:16], said)


def saved_by(report):
    with open(report, encoding="utf-8") as text:
        return json.load(text)["stall_avoided_ns"] / 1e9


def processor_time():
    """Seconds, of all children that have been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(command, environment, folder, user):
    """Seconds, output, errors and status of a command; output is written to files, so that no pipe holds it up."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.monotonic()
        job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd="/",
                               env=environment, user=user or None, start_new_session=True,
                               group=pwd.getpwnam(user).pw_gid if user else None,
                               extra_groups=[] if user else None)
        try:
            await_end(job)
            took = time.monotonic() - started
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()
        out.seek(0)
        err.seek(0)
        return took, out.read(), err.read().decode(errors="backslashreplace"), job.returncode


def empty(folder):
    """What is in it may be removed meanwhile: an optimizer stores its lists below HOME after the job has ended."""
    while names := os.listdir(folder):
        for name in names:
            path = os.path.join(folder, name)
            try:
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
            except FileNotFoundError:
                pass
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:  # something was added
                    raise


def digest_of_tree(folder):
    whole = hashlib.sha256()
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))  # caches of HOME
        for name in sorted(names):
            path = os.path.join(above, name)
            whole.update(os.path.relpath(path, folder).encode())
            with open(path, "rb") as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.digest()


def stop_optimizer(socket, user):
    """Ends the optimizer that the job started, if it did, and waits for its end."""
    asked = subprocess.run([program("sluice"), "status", "--json", "--socket", socket], capture_output=True,
                           text=True, check=False, user=user or None)
    if asked.returncode:
        return
    pid = json.loads(asked.stdout)["pid"]
    subprocess.run([program("sluice"), "stop", "--socket", socket], capture_output=True, check=False,
                   user=user or None)
    deadline = time.monotonic() + OPTIMIZER_LIMIT
    while is_running(pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            raise Failed(f"the optimizer did not end within {OPTIMIZER_LIMIT} s")
        time.sleep(0.005)
