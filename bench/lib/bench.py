"""One invocation of scripts/bench: what it holds open, what it has found, and its options."""
import contextlib
import os
import time

from bench.lib import conditions, figures, jobs
from bench.lib.place import FAST_PACE, PACE, Failed
from bench.lib.storage import Data, SlowMount, read_folder, touch_memory


# Share of the file that a warm run may read anew. Some kernels page out, of their own accord, what
# was touched once in a while; at this share the run takes at most 0.1 % longer.
WARM_MAY_MISS = 0.0005


class Bench:
    """Storage and calibration that the groups share. Used as a context manager."""

    def __init__(self, request, wanted):
        self.request, self.wanted = request, wanted
        self.data = Data(request.data)
        self.stack = contextlib.ExitStack()
        self.json = os.path.join(request.out, "bench.json")
        self.found, self.touch = {}, {}
        self._warm = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def say(self, text):
        print(f"bench: {text}", flush=True)

    def wants(self, *names):
        return bool(self.wanted & set(names))

    def record(self, name, values):
        """A figure's values of all paired runs; only the requested ones are written to bench.json."""
        if name not in self.wanted or not values:
            return
        entry = figures.summary(name, values)
        self.found[name] = entry
        figures.merge(self.json, {name: entry})
        conditions.note(self.request, name)
        self.say(figures.describe(name, entry))

    def save(self, name, content):
        """Raw figures, for pictures and for whoever doubts."""
        figures.store(os.path.join(self.request.raw, name + ".json"), content)

    @property
    def database(self):
        return self.data.database(self.request.size)

    def slow(self, name, *options):
        """A slowfs mount, freshly made: nothing of it is cached. Its folder holds the database."""
        read_folder(self.database)
        touch_memory(self.request.size)
        return SlowMount(self, name, self.database, *options)

    def warm(self):
        """The folder of the database on a pfs mount which is wholly cached."""
        if self._warm is None:
            self._warm = self.stack.enter_context(self.slow("warm", "--profile", "pfs"))
            read_folder(self._warm.folder)
        return self._warm

    def drop_warm(self):
        """Ends the warm mount, and with it its memory."""
        self.stack.close()
        self._warm = None

    def run_warm(self, *commands, **options):
        """A run on the warm mount; again if something had pushed pages out of the cache."""
        for attempt in range(5):
            mount = self.warm()
            read_folder(mount.folder)
            before = mount.stats()["totals"]["read_bytes"]
            result = jobs.run(commands, **options)
            missed = mount.stats()["totals"]["read_bytes"] - before
            if missed <= self.request.size * WARM_MAY_MISS:
                return result
            if attempt:
                self.say(f"the warm run read {missed} bytes anew: not counted, taken again")
        raise Failed("the file does not stay in the page cache: give a smaller --size")

    def pace(self, rate, number=0):
        """Computing rate in MB/s at which a warm reader as a whole consumes `rate` MB/s.

        Touching warm bytes takes time too; measured here, in pass `number` over the mapping.
        """
        if number not in self.touch:
            measured = []
            for _ in range(3):
                result = self.run_warm(jobs.reader("lmdb", self.warm().folder, "--passes", 2))
                one = result.reader["passes"][number]
                measured.append(one["touch_s"] / one["bytes"] * 1e6)
            self.touch[number] = sorted(measured)[1]
        left = 1 / rate - self.touch[number]
        if left <= 0:
            raise Failed(f"{rate} MB/s is more than this machine touches")
        return 1 / left

    @property
    def train_pace(self):
        return self.pace(PACE)

    @property
    def fast_pace(self):
        return self.pace(FAST_PACE, 1)

    def rounds(self, variants, count):
        """Runs every variant once a round, in alternating order, so that drift cancels.

        `variants` maps names to functions that give a Run. Returns name -> list of Runs.
        """
        runs = {name: [] for name in variants}
        for number in range(count):
            order = list(variants)
            for name in order if number % 2 == 0 else reversed(order):
                started = time.monotonic()
                one = variants[name]()
                runs[name].append(one)
                self.say(f"round {number + 1} of {count}: {name} {one.wall:.2f} s{waited(one)}"
                         f" ({time.monotonic() - started:.1f} s in all)")
        return runs


def waited(one):
    """How long a paced reader took to get and touch its records, which warm is nearly nothing."""
    passes = one.ranks[0].get("passes") if hasattr(one, "ranks") else None
    return f", of it getting records {sum(p['touch_s'] for p in passes):.2f} s" if passes else ""


def ratios(over, under, measure=lambda one: one.wall):
    return [measure(a) / measure(b) for a, b in zip(over, under)]


def must_agree(*groups):
    """Every run saw the same bytes."""
    must_agree_on([one.digest for runs in groups for one in runs])


def must_agree_on(digests):
    different = sorted({str(digest) for digest in digests})
    if len(different) > 1:
        raise Failed(f"the runs saw different bytes: {different}")
