"""What each figure was taken with: machine and settings, for the document."""
import glob
import os

from bench.lib import figures

GIB = 1 << 30


def _path(folder):
    return os.path.join(folder, "conditions.json")


def _reclaims():
    """Whether the kernel takes pages that lie idle although memory is free (DAMON)."""
    for context in glob.glob("/sys/kernel/mm/damon/admin/kdamonds/*/"):
        for action in glob.glob(context + "contexts/*/schemes/*/action"):
            with open(context + "state", encoding="ascii") as state, \
                    open(action, encoding="ascii") as what:
                if state.read().strip() == "on" and what.read().strip() == "pageout":
                    return True
    return False


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


def note_as(raw, name, settings):
    """The same with settings that the caller has put in words; `raw` is the folder of raw figures."""
    figures.store(_path(raw), {**figures.load(_path(raw)), name: [machine(), settings]})


def sentences(folder, names):
    """One sentence for all of the figures, or one for each group that was taken alike."""
    alike = {}
    for name, (where, settings) in figures.load(_path(folder)).items():
        if name in names:
            alike.setdefault((where, settings), []).append(name)
    sentences_of = []
    for (where, settings), some in alike.items():
        which = "All" if len(alike) == 1 else ", ".join(f"`{name}`" for name in some)
        sentences_of.append(f"{which}: {settings}; on {where}.")
    return sentences_of
