"""What the PyTorch adapter costs where it has nothing to win: files that are all in the page cache."""
import json
import os
import subprocess

from bench.lib import jobs
from bench.lib.bench import must_agree_on
from bench.lib.place import TOP, Failed, available_memory

PROVIDES = ["order_overhead"]
FILES, FEW_FILES, BYTES = 10_000, 200, 100_000
EPOCHS = 5  # the first starts the workers
ROUNDS = 7  # at least: two percent are to be told from noise
SHARE = 4  # of the machine's free memory is what the files may take


def folder_of(bench):
    count = FEW_FILES if bench.request.small else FILES
    count = min(count, available_memory() // SHARE // BYTES)
    folder = os.path.join(bench.request.data, f"warm-{count}")
    if not os.path.isdir(folder):
        os.makedirs(folder + ".partial", exist_ok=True)
        content = os.urandom(BYTES * 2)
        for number in range(count):
            with open(os.path.join(folder + ".partial", f"{number:08}"), "wb") as out:
                out.write(content[number % BYTES:number % BYTES + BYTES])
        os.rename(folder + ".partial", folder)
    return folder


def load(folder, python):
    """One job under Sluice, its adapter on or off. Its passes."""
    with jobs.Sluice(python=python) as sluice:
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1",
                       **sluice.environment()}
        done = subprocess.run(
            ["/usr/bin/python3", os.path.join(TOP, "bench/reader/load_files.py"), folder,
             str(EPOCHS)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env=environment, timeout=jobs.JOB_LIMIT, check=False)
        if done.returncode:
            raise Failed(f"the loader: status {done.returncode}: {done.stderr.strip()}")
        printed = json.loads(done.stdout)
        if printed["adapter"] != (python == "on") or not sluice.status() and python == "on":
            raise Failed(f"SLUICE_PYTHON={python} is not what the job ran with")
    return printed["passes"]


def seconds(passes):
    """Of all epochs but the first."""
    return sum(one["seconds"] for one in passes[1:])


def run(bench):
    folder = folder_of(bench)
    rounds = 1 if bench.request.small else max(bench.request.overhead_rounds, ROUNDS)
    load(folder, "off")  # all of it is in the page cache from now on
    found = {"on": [], "off": []}
    for number in range(rounds):
        order = ["off", "on"]
        for python in order if number % 2 == 0 else reversed(order):
            found[python].append(load(folder, python))
        bench.say(f"round {number + 1} of {rounds}: " + ", ".join(
            f"{python} {seconds(passes[-1]):.2f} s" for python, passes in found.items()))
    must_agree_on([[one["digest"] for one in passes] for some in found.values() for passes in some])
    bench.keep("order", found)
    bench.record("order_overhead", [seconds(on) / seconds(off)
                                    for on, off in zip(found["on"], found["off"])])
