"""What detection costs a warm reader that consumes 1 GB/s: no prefetch, everything cached."""
import os

from bench.lib import jobs
from bench.lib.bench import must_agree, ratios
from bench.lib.place import Failed

PROVIDES = ["checkpoint_overhead", "checkpoint_overhead_first_pass", "observe_overhead",
            "observe_overhead_first_pass"]
PASSES = 2
PROCESSOR = 0  # of the reader, in every run


def pair(bench, mode, checkpoint):
    path = bench.warm().folder
    settings = {"prefetch": "off", "checkpoint": checkpoint}
    if mode == "map":
        path = os.path.join(path, "data.mdb")
        settings["dataset"] = path
    command = jobs.reader(mode, path, "--passes", PASSES, pace=bench.fast_pace)

    def with_sluice():
        with jobs.Sluice(**settings) as sluice:
            # Started by the pinned job it would be pinned beside it.
            sluice.start_by_hand()
            result = bench.run_warm(command, sluice=sluice, cpu=PROCESSOR)
        seen = "mappings_observed" if mode == "map" else "checkpoints_hit"
        if result.report.get(seen, 0) == 0:
            raise Failed(f"nothing was detected ({seen} is 0): this is no measurement")
        return result

    return {"plain": lambda: bench.run_warm(command, cpu=PROCESSOR), checkpoint: with_sluice}


def run(bench):
    for name, mode, checkpoint in (("checkpoint_overhead", "lmdb", "cell"),
                                   ("observe_overhead", "map", "observe")):
        if not bench.wants(name, name + "_first_pass"):
            continue
        runs = bench.rounds(pair(bench, mode, checkpoint), bench.request.overhead_rounds)
        must_agree(*runs.values())
        bench.save(name, {key: [one.raw() for one in some] for key, some in runs.items()})
        for number, figure in enumerate((name + "_first_pass", name)):
            bench.record(figure, ratios(runs[checkpoint], runs["plain"],
                                        lambda one, n=number: one.reader["passes"][n]["seconds"]))
