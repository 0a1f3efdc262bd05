"""Where things are, what a run was requested to do, and what it leaves on disk."""
import dataclasses
import os

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get("B", "build"))
LIBRARY = os.path.join(BUILD, "libsluice.so")
MIB = 1 << 20
PACE = 300  # MB/s: 75 % of the link of slowfs's profiles pfs and far
DISK_LIMIT = 300  # MB/s that the throttled disk gives
FAST_PACE = 1000  # MB/s at which the cost of detection is measured


class Failed(Exception):
    """A run that cannot be a measurement: something broke, or was not as it had to be."""


class Skipped(Exception):
    """This machine, or this user, cannot take the figure."""


@dataclasses.dataclass(frozen=True)
class Request:
    """What the command line requests. Sizes in bytes."""
    size: int
    disk_size: int
    rounds: int  # paired runs of each figure
    overhead_rounds: int  # the same where one percent must be distinguished from noise
    sweep_rounds: int
    random_reads: int
    start_pairs: int
    small: bool  # a smoke test: fewest points everywhere
    data: str  # folder of what is made once for all runs
    out: str  # folder of bench.json; pictures and raw figures go to out/bench

    @property
    def raw(self):
        return os.path.join(self.out, "bench")


def program(name):
    path = os.path.join(BUILD, name)
    if not os.path.exists(path):
        raise Failed(f"{os.path.relpath(path, TOP)} is not built")
    return path


def bytes_of(text):
    """'4G' and the like; ValueError if it is none."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
    unit = units.get(text[-1:].upper(), 1)
    value = int(float(text[:-1] if unit > 1 else text) * unit)
    if value <= 0:
        raise ValueError(text)
    return value


def available_memory():
    """Bytes, from the kernel's own estimate."""
    with open("/proc/meminfo", encoding="ascii") as text:
        for line in text:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def is_root():
    return os.geteuid() == 0
