#!/usr/bin/python3
# test: timeout=240
"""scripts/bench-harm: its rows, its bounds, one round of a job on each ordinary ground; and a job whose output
is not the same under Sluice, or is never the same, is a failure and no figure."""
import dataclasses
import math
import os
import sys
import tempfile

import harness
from harness import claim

sys.path.insert(0, harness.TOP)
from bench.harm import bounds, main, plan, table  # noqa: E402
from bench.harm.grounds import Grounds  # noqa: E402
from bench.harm.run import Runner  # noqa: E402
from bench.lib.place import Failed  # noqa: E402

GROUNDS = {"warm", "cold", "slow05", "slow10"}


def near(one, other):
    return math.isclose(one, other, rel_tol=1e-3)


def round_of(plain, sluice, again):
    return {side: {"epochs": values[:-1], "whole": values[-1], "cpu": 1.0}
            for side, values in (("plain", plain), ("sluice", sluice), ("again", again))}


def check_plan(the_plan):
    on = {}
    for row in the_plan.rows:
        on.setdefault(row.job.name, set()).add(row.ground.name)
    claim(sum(grounds >= GROUNDS for grounds in on.values()) >= 25, f"too few jobs on all grounds: {on}")
    names = {row.name for row in main.choose(the_plan.rows, main.parse([]))}
    claim(not any(name.endswith("@gluster") for name in names), "an optional ground is among the ordinary ones")
    only = main.choose(the_plan.rows, main.parse(["--only", "grep", "--ground", "gluster"]))
    claim([row.name for row in only] == ["grep@gluster"], f"{only}")
    try:
        main.choose(the_plan.rows, main.parse(["--only", "nothing"]))
        claim(False, "an unknown job is taken")
    except ValueError:
        pass


def check_bounds():
    low, mean, high = bounds.interval([1.1, 1.2, 1.3])
    logs = [math.log(one) for one in (1.1, 1.2, 1.3)]
    half = 4.303 * math.sqrt(sum((one - sum(logs) / 3) ** 2 for one in logs) / 2) / math.sqrt(3)
    claim(near(mean, (1.1 * 1.2 * 1.3) ** (1 / 3)) and near(low, mean / math.exp(half)) and
          near(high, mean * math.exp(half)), f"{low} {mean} {high}")
    claim(bounds.interval([2.0]) == (0.0, 2.0, math.inf), "one ratio has bounds")
    steady = [round_of([1, 1, 2], [1.0, 1.2, 2.2], [1, 1, 2])] * 2 + [round_of([1, 1, 2], [1, 1.21, 2.2], [1, 1, 2])]
    wild = [round_of([1, 2], [value, 2], [1, 2]) for value in (1.0, 9.0, 1.0)]
    fine = [round_of([1, 2], [1, 2], [1, 2])] * 3
    low, mean, _, epoch = bounds.worst_of(steady, "sluice")
    claim(epoch == 2 and 1.18 < low < mean < 1.21, f"{low} {mean} {epoch}")
    results = {"fine": fine, "steady": steady, "wild": wild}
    claim(bounds.worst_rows(results, 2) == ["steady", "wild"], f"{bounds.worst_rows(results, 2)}")
    found = table.figures_of(results)
    claim(near(found["harm_worst"][0], low) and near(found["harm_plain_worst"][0], 1), f"{found}")
    claim(len(table.lines(results)) == 5 and "| steady " in table.lines(results)[2], "\n".join(table.lines(results)))


def check_savings():
    def rounds(said, plain, sluice):
        one = round_of([plain], [sluice], [plain])
        one["sluice"]["saved"] = said
        return [one] * 3
    for said, plain, sluice, error in ((1.0, 5, 4, 0), (1.3, 5, 4, 1), (0.0, 5, 4.85, 0.5), (12, 15, 5, 1),
                                       (-0.3, 4, 4, 1), (8, 15, 5, 1)):
        claim(near(table.savings_error(rounds(said, plain, sluice))[0] + 1, error + 1), f"{said} {plain} {sluice}")
    found = table.figures_of({"a@slow10": rounds(1, 5, 4), "b@slow10": rounds(2, 5, 4), "c@slow05": rounds(9, 5, 4)})
    claim(near(found["savings_error"][0], 1 / 0.3) and "b@slow10" in found["savings_error"][3], f"{found}")


def check_differences(folder, row, runner, grounds):
    for command, why in ((("sh", "-c", "echo $LD_PRELOAD"), "DIFFERENT under Sluice"),
                         (("sh", "-c", "echo $LD_PRELOAD >&2"), "DIFFERENT under Sluice"),
                         (("sh", "-c", "echo $LD_PRELOAD > $0/x", "{scratch}"), "DIFFERENT under Sluice"),
                         (("sh", "-c", "[ -z $LD_PRELOAD ]"), "status 1"),
                         (("date", "+%s.%N"), "two plain runs differ")):
        job = dataclasses.replace(row.job, command=command, output="tree")
        book = main.Book(True)
        broken, _ = main.measure([plan.Row(job, row.ground)], 1, book, runner, grounds)
        claim(broken == [row.name] and not book.rows, f"{command}: {book.rows}")
        try:
            main.one_round(plan.Row(job, row.ground), 0, runner, grounds)
            claim(False, f"{command}: not seen")
        except Failed as failed:
            claim(why in str(failed), f"{command}: {failed}")


def check_rows(the_plan, runner, grounds):
    """A command that leaves files, and a job that prints its epochs, on every ordinary ground."""
    for row in the_plan.rows:
        if row.ground.optional or row.job.name not in ("cp", "files-4k-loop"):
            continue
        if row.ground.kind == "slowfs" and not os.path.exists("/dev/fuse"):
            continue
        small = plan.Row(dataclasses.replace(row.job, count=20, least=20), row.ground)
        for number in range(2):
            measured = main.one_round(small, number, runner, grounds)
            for side in ("plain", "sluice", "again"):
                epochs, whole = measured[side]["epochs"], measured[side]["whole"]
                claim(len(epochs) == the_plan.epochs and 0 < sum(epochs) <= whole, f"{row.name}: {measured}")


def test(_):
    the_plan = plan.load()
    check_plan(the_plan)
    check_bounds()
    check_savings()
    with tempfile.TemporaryDirectory(prefix="harm-", dir=os.environ.get("TEST_DIR")) as folder:
        main.ROWS = os.path.join(folder, "harm.json")  # not the benchmark's own
        runner = Runner(folder, the_plan.epochs)
        with Grounds(folder) as grounds:
            row = next(row for row in the_plan.rows if row.name == "cp@warm")
            check_differences(folder, row, runner, grounds)
            check_rows(the_plan, runner, grounds)
        claim(not os.listdir(os.path.join(folder, "mnt")), "a mount's folder is left")


if __name__ == "__main__":
    harness.main(test)
