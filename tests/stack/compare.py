"""Runs the jobs of this folder plain and under Sluice, and compares all that they saw, case by case: indices, bytes,
losses, generators' states, exceptions, what they printed, and how they ended. A plain run must print every case and end
with 0: cases that fail in both runs are no agreement. compare.py [JOB[=PATTERN,...]...]"""
import collections
import contextlib
import dataclasses
import fnmatch
import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "integration"))
import harness  # noqa: E402
import stage_testing  # noqa: E402

HERE = os.path.join(TOP, "tests", "stack")
SLUICE = os.path.join(harness.BUILD, "sluice")
LATENCY = "0.5"  # ms of the mount that the data is on
LIMIT, PART_LIMIT = 600, 250  # seconds of a job with all of its cases, and with some: a test has up to three of these
OFF = ("sluice: pytorch: adapter off", "sluice: pytorch: losses are not observed any more")  # an exception of its own
VARIANTS = {"on": [], "loss": ["--importance", "loss"]}


@dataclasses.dataclass(frozen=True)
class Job:
    """script: in this folder. needs: modules, beside PyTorch 2. ranks: processes that torchrun starts; 0: without it.
    restarts: of these. says: whether standard error is compared too. loads: whether it reads by PyTorch's loader:
    then Sluice must have seen samples. ahead: whether it requests a batch before it trains on the previous one: then losses
    cannot be attributed to samples, and else Sluice must have observed some."""
    name: str
    script: str
    needs: tuple = ()
    ranks: int = 0
    restarts: int = 0
    says: bool = True
    loads: bool = True
    ahead: bool = False

    def printed(self, cases):
        """The names under which these are printed: by each rank."""
        return {f"{case} rank {rank}" for case in cases for rank in range(self.ranks or 1)} if self.by_rank else set(cases)

    @property
    def observed(self):
        return self.loads and not self.ahead

    @property
    def by_rank(self):
        return self.ranks > 0 or self.script == "accelerated.py"

    def command(self, python):
        script = os.path.join(HERE, self.script)
        if not self.ranks:
            return [python, script]
        return [python, "-m", "torch.distributed.run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0",
                "--nnodes", "1", "--nproc-per-node", str(self.ranks), "--max-restarts", str(self.restarts), script]


JOBS = [
    Job("loaders", "loaders.py"),
    Job("failures", "failures.py"),
    Job("compiled", "compiled.py"),
    Job("ranks-2", "ranks.py", ranks=2),
    Job("ranks-4", "ranks.py", ranks=4),
    Job("elastic", "elastic.py", ranks=2, restarts=2, says=False),
    Job("lmdb", "records.py", ("lmdb",)),
    Job("stateful", "stateful.py", ("torchdata",)),
    Job("nodes", "nodes.py", ("torchdata",), loads=False),
    Job("grain", "grained.py", ("grain",), loads=False),
    Job("webdataset", "tars.py", ("webdataset",), loads=False),
    Job("datasets", "hugging.py", ("datasets",)),
    Job("accelerate", "accelerated.py", ("accelerate", "torchdata"), ahead=True),
    Job("accelerate-2", "accelerated.py", ("accelerate", "torchdata"), ranks=2, ahead=True),
    Job("transformers", "trainers.py", ("transformers", "accelerate"), ahead=True),
    Job("lightning", "lightened.py", ("lightning",)),
]


@dataclasses.dataclass
class Outcome:
    """cases: how many were compared with a plain run's, each counted once, however many ranks and variants it has;
    differences: a line for each."""
    cases: int = 0
    differences: list = dataclasses.field(default_factory=list)


def python(*needs):
    """A Python with PyTorch 2 and the modules; None, and why not."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            return harness.torch2(*needs), None
    except SystemExit:
        return None, said.getvalue().strip()


class Comparison:
    """Runs of a job on a slow mount of its data, with an optimizer of its own."""

    def __init__(self, place, interpreter, job):
        self.place, self.interpreter, self.job = place, interpreter, job
        self.ground = stage_testing.Ground(place, "mount", LATENCY)
        self.work = os.path.join(place.work, "job")
        self.cases = []
        self.reports, self.losses = {}, {}  # by variant: the job's report, and of how many samples losses were observed

    def __enter__(self):
        self.ground.__enter__()
        self.script("make_data.py", self.ground.source)
        self.cases = self.script(self.job.script, self.ground.source, "--make").split()
        return self

    def __exit__(self, *error):
        self.ground.__exit__(*error)

    def script(self, name, *arguments):
        done = subprocess.run([self.interpreter, os.path.join(HERE, name), *arguments], capture_output=True, text=True,
                              check=False)
        harness.claim(done.returncode == 0, done.stderr)
        return done.stdout

    def run(self, cases, variant=None):
        """`cases`: [] for all of them. variant None: without Sluice."""
        shutil.rmtree(self.work, ignore_errors=True)
        os.mkdir(self.work)
        argv = [*self.job.command(self.interpreter), self.ground.path, self.work, *cases]
        settings = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1",
                    "HF_HOME": os.path.join(self.work, "hf"), "TORCHINDUCTOR_CACHE_DIR": os.path.join(self.work, "ti"),
                    "TORCHINDUCTOR_COMPILE_THREADS": "1",
                    # Else a restarted rank may connect to another's address from before.
                    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        if variant is not None:
            report = os.path.join(self.place.work, f"report-{self.job.name}-{variant}")
            settings.update(SLUICE_SOCKET=os.path.join(self.place.sockets, "s.sock"), SLUICE_LINGER="5",
                            SLUICE_PATIENCE=self.place.patience, SLUICE_LOG="debug")
            argv = [SLUICE, "run", "--dataset", self.ground.path, "--report", report, *VARIANTS[variant], "--", *argv]
        observing = variant == "loss" and self.job.observed
        with losses_of(lambda: harness.status(self.place)) if observing else contextlib.nullcontext([]) as seen:
            done = self.place.run(argv, library=None, timeout=PART_LIMIT if cases else LIMIT, **settings)
        self.losses[variant] = sum(seen)
        if variant is not None and os.path.exists(report):
            with open(report, encoding="utf-8") as text:
                self.reports[variant] = json.load(text)
        return done

    def compare(self, cases=(), variants=tuple(VARIANTS)):
        """`cases`: () for all of them. A plain run that does not end says nothing of Sluice: there is a second one then."""
        job, listed = self.job, cases or self.cases
        try:
            plain = self.run(cases)
        except harness.Failure as failure:
            print(f"{job.name}: without Sluice, {failure}")
            plain = self.run(cases)
        known = quantities(plain)
        harness.claim(plain.returncode == 0, f"{job.name}: status {plain.returncode} without Sluice: {plain.stderr}")
        wrong = job.printed(listed) ^ set(known)
        harness.claim(not wrong, f"{job.name}: without Sluice, not printed or not listed: {sorted(wrong)}")
        outcome = Outcome(len(listed))
        for variant in variants:
            under = self.run(cases, variant)
            found = quantities(under)
            for name in [*known, *[other for other in found if other not in known]]:
                outcome.differences += [f"{job.name} ({variant}), {name}: {line}"
                                        for line in different(known.get(name), found.get(name))]
            ends = different(ending(job, plain), ending(job, under))
            ends += [line for line in under.stderr.splitlines() if any(words in line for words in OFF)]
            ends += self.unseen(variant, set(listed) == set(self.cases))
            outcome.differences += [f"{job.name} ({variant}): {line}" for line in ends]
        return outcome

    def unseen(self, variant, whole):
        """What Sluice has not done: a job that it left alone is the same, which says nothing. It may leave alone some cases
        of a job, which is then not run as a `whole`, small files that PyTorch's loader does not read, and ranks: the
        optimizer may not answer in time all those that begin at once on a busy machine."""
        if not self.job.loads or self.job.ranks or not whole:
            return []
        report = self.reports.get(variant, {})
        lines = [] if report.get("events_seen") else ["Sluice has seen nothing of the job"]
        if not sum(report.get(f"sample_{end}", 0) for end in ("hits", "late", "misses")):
            lines.append("Sluice has seen no samples")
        if self.job.observed and variant == "loss" and not self.losses.get(variant):
            lines.append("Sluice has observed no losses")
        return lines


@contextlib.contextmanager
def losses_of(status):
    """Asks the optimizer by `status`, until it knows losses, for how many samples of the block's job it knows some: it
    discards them with the job. Yields a list of these."""
    seen, ended = [], threading.Event()

    def watch():
        while not sum(seen) and not ended.wait(0.5):
            seen.extend(one["reported"] for one in (status() or {}).get("importance", []))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


def quantities(done):
    """What each case printed."""
    found = {}
    for line in done.stdout.splitlines():
        if line.startswith('{"case": '):
            values = json.loads(line)
            name = values.pop("case")
            harness.claim(name not in found, f"two cases are called {name}")
            found[name] = values
    return found


def ending(job, done):
    """How a job ended, and what it printed beside its cases. Processes that write to standard error at once have no
    order."""
    rest = [line for line in done.stdout.splitlines() if not line.startswith('{"case": ')]
    # The job may have written a part of a line before.
    said = re.sub(r"^sluice:.*\n?|sluice: .*", "", done.stderr, flags=re.M).splitlines() if job.says else []
    return {"status": done.returncode, "printed": [untimed(line) for line in rest], "said": sorted(map(unnumbered, said))}


def untimed(line):
    """Without the durations and rates that transformers' Trainer prints."""
    return re.sub(r"('\w*(?:_runtime|_per_second)': )'[^']*'", r"\1#", line)


def unnumbered(line):
    """Without process numbers, ports, addresses in memory, times and durations, but with the line of a program that a
    warning names."""
    return re.sub(r"(\.py(?::|\", line )\d+)|0x[0-9a-f]+|\d+", lambda found: found[1] or "#", line)


def different(plain, under):
    if plain is None or under is None:
        return ["only " + ("under Sluice" if plain is None else "without Sluice")]
    lines = []
    for name in {**plain, **under}:
        one, other = plain.get(name), under.get(name)
        if one != other:
            if isinstance(one, list) and isinstance(other, list):
                extra, lost = minus(other, one), minus(one, other)
                one, other = lost or one, extra or other
            lines.append(f"{name}: {str(one)[:1500]} plain, {str(other)[:1500]} under Sluice")
    return lines


def minus(one, other):
    return list((collections.Counter(map(str, one)) - collections.Counter(map(str, other))).elements())


def job_named(name):
    return next(job for job in JOBS if job.name == name)


def test(*names, count=10):
    """An integration test of these jobs: all cases of all that can be run here in all variants, or, in its turn, `count`
    cases of one in one."""
    def run(place):
        compared, skipped = 0, []
        runs = harness.in_turn([(name, variant) for name in names for variant in VARIANTS], 1)
        for job in map(job_named, dict.fromkeys(name for name, _ in runs)):
            interpreter, why = python(*job.needs)
            if interpreter is None:
                skipped.append(why)
                continue
            with Comparison(place, interpreter, job) as comparison:
                outcome = comparison.compare(harness.in_turn(comparison.cases, count),
                                             [variant for name, variant in runs if name == job.name])
            harness.claim(not outcome.differences, "\n".join(outcome.differences))
            compared += outcome.cases
        if not compared:
            harness.skip("; ".join(sorted(set(skipped))))
        print(f"{compared} cases are the same" + "".join(f"; {why}" for why in sorted(set(skipped))))

    if not stage_testing.slow_mounts():
        harness.skip("no FUSE here")
    harness.main(run)


def compare_all(names=()):
    """Compares the jobs of these names, or all that can be run here, and prints what differs. NAME=PATTERN,...: some of
    its cases. Returns the outcome, and what was skipped and why."""
    total, skipped = Outcome(), []
    with harness.Place() as place:
        for name in names or [job.name for job in JOBS]:
            name, _, patterns = name.partition("=")
            job = job_named(name)
            interpreter, why = python(*job.needs)
            if interpreter is None:
                skipped.append(f"{job.name}: {why}")
                print(f"{job.name}: skipped: {why}")
                continue
            with Comparison(place, interpreter, job) as comparison:
                cases = [case for case in comparison.cases if patterns and any(
                    fnmatch.fnmatchcase(case, pattern) for pattern in patterns.split(","))]
                outcome = comparison.compare(cases)
            print(f"{job.name}: {outcome.cases} cases compared, {len(outcome.differences)} differences")
            for line in outcome.differences:
                print("  " + line)
            sys.stdout.flush()
            total.cases += outcome.cases
            total.differences += outcome.differences
    print(f"{total.cases} cases compared, {len(total.differences)} differences")
    return total, skipped


def main(names):
    total, _ = compare_all(names)
    return 1 if total.differences or not total.cases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
