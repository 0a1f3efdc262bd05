"""What each figure was taken with: machine, commit and settings, for the document."""
import errno
import functools
import glob
import os
import subprocess
import time

from bench.lib import figures
from bench.lib.place import TOP

GIB = 1 << 30


def _path(folder):
    return os.path.join(folder, "conditions.json")


def kernel_setting(path, seconds=10):
    """Empty if there is none any more. The kernel refuses (EBUSY) while it is at work on its settings itself."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with open(path, encoding="ascii") as setting:
                return setting.read().strip()
        except FileNotFoundError:
            return ""
        except OSError as why:
            if why.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def _reclaims():
    """Whether the kernel takes pages that lie idle although memory is free (DAMON)."""
    for context in glob.glob("/sys/kernel/mm/damon/admin/kdamonds/*/"):
        actions = glob.glob(context + "contexts/*/schemes/*/action")
        if kernel_setting(context + "state") == "on" and "pageout" in map(kernel_setting, actions):
            return True
    return False


@functools.cache
def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as text:
        models = [li.split(":", 1)[1].strip() for li in text if li.startswith("model name")]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB
    return (f"{os.cpu_count()} x {models[0] if models else os.uname().machine}, {memory:.0f} GiB, "
            f"Linux {os.uname().release}, "
            f"{'as root' if os.geteuid() == 0 else 'as an ordinary user'}"
            f"{', whose kernel takes file pages that lie idle for seconds' if _reclaims() else ''}")


def _settings(request):
    return (f"{'smoke test, ' if request.small else ''}file of {request.size / GIB:.2f} GiB"
            f" ({request.disk_size / GIB:.2f} GiB on the disk), {request.rounds} rounds"
            f" ({request.overhead_rounds} for the cost of detection),"
            f" {request.random_reads:,} random reads, {request.start_pairs:,} pairs of starts")


def note(request, name):
    """Remembers with what the figure `name` was taken just now."""
    note_as(request.raw, name, _settings(request))


def commit():
    """Of the tree that figures are taken of, and whether it was changed since."""
    def git(*words):
        done = subprocess.run(["git", "-C", TOP, *words], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""
    head = git("rev-parse", "--short=10", "HEAD")
    if not head:
        return "no commit"
    return f"commit {head}{', changed since' if git('status', '--porcelain', '-uno') else ''}"


def note_as(raw, name, settings):
    """The same with settings that the caller has put in words; `raw` is the folder of raw figures."""
    figures.store(_path(raw), {**figures.load(_path(raw)), name: [machine(), settings, commit()]})


def sentences(folder, names, others=False):
    """One sentence for all of the figures, or one for each group that was taken alike. `others`: these are not
    all that there are."""
    alike = {}
    for name, (where, settings, *rest) in figures.load(_path(folder)).items():
        if name in names:
            of = rest[0] if rest else "an earlier commit, which was not noted"
            alike.setdefault((where, settings, of), []).append(name)
    sentences_of = []
    for (where, settings, of), some in alike.items():
        which = "All" if len(alike) == 1 and not others else ", ".join(f"`{name}`" for name in some)
        sentences_of.append(f"{which}: {settings}; on {where}; of {of}.")
    return sentences_of
