"""What the PyTorch adapter costs where it has nothing to win: files that are all in the page cache."""
import contextlib
import dataclasses
import json
import os
import subprocess

from bench.lib import jobs
from bench.lib.bench import must_agree_on
from bench.lib.place import TOP, Failed, available_memory

PROVIDES = ["order_overhead", "order_overhead_4k"]
FEW_FILES = 200
PLAIN = "plain"  # without the library
TURNS = 4  # epochs of each in a round
ROUNDS = 7  # at least: two percent are to be distinguished from noise
SHARE = 4  # of the machine's free memory is what the files may take


@dataclasses.dataclass(frozen=True)
class Measure:
    """Files of so many bytes, and the two jobs that read them, each SLUICE_PYTHON or PLAIN: over / under."""
    figure: str
    files: int
    bytes: int
    over: str
    under: str


MEASURES = (Measure("order_overhead", 10_000, 100_000, "on", "off"),
            Measure("order_overhead_4k", 20_000, 4096, "on", PLAIN))


def folder_of(bench, measure):
    count = FEW_FILES if bench.request.small else measure.files
    count = min(count, available_memory() // SHARE // measure.bytes)
    folder = os.path.join(bench.request.data, f"warm-{count}-{measure.bytes}")
    if not os.path.isdir(folder):
        os.makedirs(folder + ".partial", exist_ok=True)
        content = os.urandom(measure.bytes * 2)
        for number in range(count):
            with open(os.path.join(folder + ".partial", f"{number:08}"), "wb") as out:
                at = number % measure.bytes
                out.write(content[at:at + measure.bytes])
        os.rename(folder + ".partial", folder)
    return folder


class Job:
    """The loader under Sluice, its adapter on or off, or without; reads an epoch on request."""

    def __init__(self, stack, folder, python):
        self.adapter = python == "on"
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1",
                       "PYTHONWARNINGS": "ignore"}
        if python != PLAIN:
            environment.update(stack.enter_context(jobs.Sluice(python=python)).environment())
        self.job = subprocess.Popen(
            ["/usr/bin/python3", os.path.join(TOP, "bench/reader/load_warm_files.py"), folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        stack.callback(self.end)

    def epoch(self):
        self.job.stdin.write("\n")
        self.job.stdin.flush()
        line = self.job.stdout.readline()
        if not line:
            raise Failed("the loader ended")
        one = json.loads(line)
        if one["adapter"] != self.adapter:
            raise Failed(f"the adapter is {'' if one['adapter'] else 'not '}there")
        return one

    def end(self):
        self.job.stdin.close()
        self.job.stdout.close()
        self.job.wait(jobs.OPTIMIZER_LIMIT)


def run(bench):
    for measure in MEASURES:
        run_measure(bench, measure)


def run_measure(bench, measure):
    """Both jobs stand ready, and read epochs in turns: so close to each other that what else the
    machine does, and how fast it is at the moment, is the same for both."""
    folder = folder_of(bench, measure)
    rounds = 1 if bench.request.small else max(bench.request.overhead_rounds, ROUNDS)
    found = {measure.under: [], measure.over: []}
    with contextlib.ExitStack() as stack:
        pair = {python: Job(stack, folder, python) for python in found}
        for job in [*pair.values()] * 2:
            job.epoch()  # workers begin, files come into the page cache, the second order is published
        for number in range(rounds):
            for turn in range(TURNS):
                order = [*found] if (number + turn) % 2 == 0 else [*reversed(found)]
                for python in order:
                    found[python].append(pair[python].epoch())
            bench.say(f"round {number + 1} of {rounds}: " + ", ".join(
                f"{python} {seconds(some, number):.2f} s" for python, some in found.items()))
    must_agree_on([[one["digest"] for one in some] for some in found.values()])
    bench.save(measure.figure, found)
    bench.record(measure.figure, [seconds(found[measure.over], number) / seconds(found[measure.under], number)
                                  for number in range(rounds)])


def seconds(epochs, number):
    """Of a round's epochs."""
    return sum(one["seconds"] for one in epochs[number * TURNS:(number + 1) * TURNS])
