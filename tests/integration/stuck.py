"""A job that does not end: what each of its processes waits for, and its end, with all that it started."""
import contextlib
import os
import signal
import subprocess
import time

ASKED = signal.SIGUSR2  # a process that catches it writes where its threads are (tests/stack/cases.py)
ANSWER_SECONDS, END_SECONDS = 5, 10


def read(pid, *names):
    try:
        with open(os.path.join("/proc", str(pid), *names), "rb") as text:
            return text.read().decode(errors="replace")
    except OSError:
        return ""


def tree(root):
    """The process, its children, theirs, and so on: as they are now, parents first."""
    children = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        words = read(pid, "stat").rpartition(")")[2].split()
        if len(words) > 1:
            children.setdefault(int(words[1]), []).append(int(pid))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def tasks(pid):
    try:
        return sorted(os.listdir(f"/proc/{pid}/task"), key=int)
    except OSError:
        return []


def catches(pid, number):
    masks = [line.split()[1] for line in read(pid, "status").splitlines() if line.startswith("SigCgt:")]
    return bool(masks) and bool(int(masks[0], 16) >> (number - 1) & 1)


def answers(pid):
    """Whether the signal is still to be delivered, or a thread is in its handler: there it is blocked."""
    masks = [line.split()[1] for task in tasks(pid) for line in read(pid, "task", task, "status").splitlines()
             if line.startswith(("SigPnd:", "ShdPnd:", "SigBlk:"))]
    return any(int(mask, 16) >> (ASKED - 1) & 1 for mask in masks)


def ask(job, pids):
    """One after the other, as their answers may go to the same file: each until it has answered, while it is read."""
    deadline = time.monotonic() + ANSWER_SECONDS
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, ASKED)
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                job.communicate(timeout=0.05)  # what it reads is returned by the next one, too
                return
            if not answers(pid) or time.monotonic() > deadline:
                break


def described(pid):
    """A line for the process, and one for each of its threads: state, what it waits for, and its system call."""
    lines = [f"{pid}: {read(pid, 'cmdline').replace(chr(0), ' ')[:200]}"]
    for task in tasks(pid):
        state = read(pid, "task", task, "stat").rpartition(")")[2].split()[:1]
        lines.append("  ".join([f"   {task}", read(pid, "task", task, "comm").strip(), *state,
                                read(pid, "task", task, "wchan"), read(pid, "task", task, "syscall").strip()[:60]]))
    return lines


def end(job):
    """Ends a Popen whose output is read by pipes, and returns what it and its children were at, and what they had said."""
    pids = tree(job.pid)
    lines = [line for pid in pids for line in described(pid)]
    ask(job, [pid for pid in pids if catches(pid, ASKED)])
    for pid in [*pids, *tree(job.pid)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    try:
        said = job.communicate(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        said = ["(its output is still open elsewhere)"]
    return "\n".join(lines + [text[-8000:] for text in said if text])
