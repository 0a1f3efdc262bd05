"""PyTorch 2.13 and what stands on it: whether jobs see what they see without Sluice, and what observing losses costs where
steps are compiled."""
import contextlib
import os
import statistics
import sys

from bench.lib import jobs
from bench.lib.bench import must_agree_on
from bench.lib.place import BUILD, TOP, Failed, Skipped

sys.path.insert(0, os.path.join(TOP, "tests", "stack"))
import compare  # noqa: E402
import stage_testing  # noqa: E402

EXACTNESS = ["torch2_exactness", "torch2_exactness_cases"]
STEPS = {"step": "compile_step_overhead", "network": "compile_step_overhead_observed"}
PYTHON = os.path.join(BUILD, "venv", "bin", "python3")
EPOCHS, BATCHES, FEW = 4, 60, 5
ROUNDS = 7  # at least: three percent are to be distinguished from noise


def exactness(bench):
    """All jobs of tests/stack that can be run here."""
    if not stage_testing.slow_mounts():
        raise Skipped("no FUSE here")
    outcome, skipped = compare.compare_all(["nodes"] if bench.request.small else ())
    if not outcome.cases:
        raise Skipped("; ".join(skipped))
    bench.save("torch2_exactness", {"cases": outcome.cases, "differences": outcome.differences, "skipped": skipped})
    for line in outcome.differences:
        bench.say(line)
    bench.record("torch2_exactness", [len(outcome.differences)])
    bench.record("torch2_exactness_cases", [outcome.cases])


def steps(bench):
    if not os.path.exists(PYTHON):
        raise Skipped("there is no build/venv (scripts/setup torch2)")
    kinds = [kind for kind, figure in STEPS.items() if bench.wants(figure)]
    batches = FEW if bench.request.small else BATCHES
    found = {kind: {"loss": [], "off": []} for kind in kinds}
    settings = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": os.path.join(bench.request.data, "inductor")}
    for number in range(1 if bench.request.small else max(ROUNDS, bench.request.rounds)):
        for kind in kinds:
            command = [PYTHON, "-W", "ignore", os.path.join(TOP, "bench/reader/compiled_step.py"), kind, str(EPOCHS),
                       str(batches)]
            for level in ("loss", "off") if number % 2 else ("off", "loss"):
                with jobs.Sluice(importance=level) as sluice:
                    observed = kind == "network" and level == "loss" and not bench.request.small
                    with compare.losses_of(sluice.status) if observed else contextlib.nullcontext([1]) as seen:
                        found[kind][level].append(jobs.run([command], sluice, settings=settings).reader)
                if not sum(seen):
                    raise Failed("no losses were observed, which costs nothing")
            bench.say(f"round {number + 1}: {kind}: " + ", ".join(
                f"{level} {seconds(one[-1]) * 1e3:.3f} ms" for level, one in found[kind].items()))
    for kind, levels in found.items():
        runs = levels["loss"] + levels["off"]
        must_agree_on([one["digest"] for one in runs])
        if any(one["dynamo"] != runs[0]["dynamo"] for one in runs):
            raise Failed(f"other graphs where losses are observed: {[one['dynamo'] for one in runs]}")
        bench.record(STEPS[kind], [seconds(a) / seconds(b) for a, b in zip(levels["loss"], levels["off"])])
    bench.save("compile_step", found)


def seconds(one):
    """Of a step, in the epochs after the one that compiles."""
    return statistics.median(one["passes"][1:])
