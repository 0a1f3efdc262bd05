"""How long a Python whose packages lie on a network mount takes to start: `import torch, transformers`, from the virtual
environment of the tests behind 3 ms, cold. A run before the first round is the start that Sluice remembers."""
import contextlib
import os
import tempfile
import time

from bench.lib import jobs
from bench.lib.place import BUILD, Skipped
from bench.lib.storage import SlowMount, call

PROVIDES = ["import_speedup_far", "import_speedup_far_bound", "import_speedup_far_uncached"]
MODULES = ("torch", "transformers")
LATENCY = "3"
# NFS caches listings, and names and attributes of folders that do not change for a minute; FUSE by default names and
# attributes for a second, and no listings.
GROUNDS = {"import_speedup_far": ("--cache-folders", "--attr-timeout", "60", "--entry-timeout", "60"),
           "import_speedup_far_uncached": ()}


class Environment:
    def __init__(self, bench, modules, options):
        self.bench, self.options = bench, options
        self.source = os.path.join(BUILD, "venv")
        self.modules = modules
        self.places = None

    def mount(self):
        return SlowMount(self.bench, "venv", self.source, "--latency", LATENCY, "--bandwidth", "400", *self.options)

    def start(self, mount, sluice=None):
        """Seconds from the command to its end."""
        python = os.path.join(mount.folder, "bin", "python3")
        begun = time.monotonic()
        jobs.run([[python, "-B", "-c", f"import {', '.join(self.modules)}; print('{{}}')"]], sluice)
        return time.monotonic() - begun

    def pair(self, number):
        seconds = {}
        for side in ("plain", "under") if number % 2 == 0 else ("under", "plain"):
            with contextlib.ExitStack() as stack:
                mount = stack.enter_context(self.mount())
                sluice = stack.enter_context(jobs.Sluice(places=self.places)) if side == "under" else None
                seconds[side] = self.start(mount, sluice)
                if side == "plain":
                    seconds["again"] = self.start(mount)
        return seconds


def run(bench):
    modules = ("json", "lmdb") if bench.request.small else MODULES
    python = os.path.join(BUILD, "venv", "bin", "python3")
    if not os.path.exists(python):
        raise Skipped("no build/venv (scripts/setup torch2 stack)")
    try:
        call(python, "-c", f"import {', '.join(modules)}")  # what it reads stays in memory: the mount is the storage
    except Exception as why:
        raise Skipped(f"build/venv cannot import {', '.join(modules)}") from why
    raw = {}
    for figure, options in GROUNDS.items():
        if not bench.wants(figure, "import_speedup_far_bound"):
            continue
        with tempfile.TemporaryDirectory(prefix="sluice-places-") as places:
            environment = Environment(bench, modules, options)
            environment.places = places
            with environment.mount() as mount, jobs.Sluice(places=places) as sluice:
                environment.start(mount, sluice)
                stored(places)
            raw[figure] = [environment.pair(number) for number in range(bench.request.rounds)]
        bench.record(figure, [one["plain"] / one["under"] for one in raw[figure]])
    if "import_speedup_far" in raw:
        bench.record("import_speedup_far_bound", [one["plain"] / one["again"] for one in raw["import_speedup_far"]])
    bench.save("imports", raw)


def stored(places):
    deadline = time.monotonic() + 30
    while not any(name.endswith(".places") for name in os.listdir(places)) and time.monotonic() < deadline:
        time.sleep(0.05)
