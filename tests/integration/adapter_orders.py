#!/usr/bin/python3
# test: timeout=240
"""Every sampler, plain and under the adapter: the same job, and its order published before it reads."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "adapters"))
import recorded  # noqa: E402
from recorded import claim  # noqa: E402

JOB = os.path.join(recorded.TOP, "tests", "adapters", "job.py")
FILES = 50
# What is published as it is drawn; all others are known before the first sample is read.
UNKNOWN = ("unknown", "unknown_batches", "spawned-unknown")
# Of these the order changes in mid-epoch.
REPUBLISHED = ("interleaved_shared", "drawn_within")
# Epochs published one ahead. From the second epoch on the step to the next is known, except that after
# an early break, in epoch 1, a generator is not where it was expected: epoch 2 is published again, and
# epoch 3 is not published ahead.
OWN, BY_EPOCH = (2, 4), (2, 3, 4)
# From the process's generator the job draws a number an epoch, and one a sample where it has no workers: then
# the step after the early break has fewer, the one after that more, and no further epoch is published ahead.
SHARED = ("random", "random_fewer", "replacement", "subset", "weighted", "batch_sampler", "one_by_one")
SHARED_ALONE, SHARED_WORKERS = (2,), (2, 3, 4)
AHEAD = {"random_own": OWN, "random_sampler_own": OWN, "replacement_own": OWN,
         "random_more": OWN, "one_by_one_own": OWN, "random_drop": OWN,
         # All is drawn at once:
         "subset_own": BY_EPOCH, "subset_tensor": BY_EPOCH, "weighted_once": BY_EPOCH,
         "rank0": BY_EPOCH, "rank1": BY_EPOCH, "ranks_in_order": BY_EPOCH, "sequential": BY_EPOCH}


def run_both(folder, files, mode):
    done, results = {}, {}
    record = os.path.join(folder, mode + ".record")
    for name in ("plain", "under"):
        result = os.path.join(folder, name + "." + mode)
        argv = ["-W", "ignore", JOB, files, result, mode]
        done[name] = recorded.run(argv, record if name == "under" else None)
        claim(done[name].returncode == 0, f"{mode} {name}: {done[name].stderr}")
        with open(result, encoding="ascii") as text:
            results[name] = json.load(text)
    own, rest = recorded.notes(done["under"])
    claim(not own, f"the adapter has something to say: {own}")
    claim(rest == done["plain"].stderr, f"standard error differs: {rest}")
    claim(done["under"].stdout == done["plain"].stdout, "standard output differs")
    for case, plain in results["plain"].items():
        claim(results["under"][case] == plain, f"{case} differs under the adapter")
    return results["plain"], recorded.Record(record)


def check_case(case, result, data):
    claim(data is not None, f"{case}: nothing was published")
    kind = case.split("-")[1 if case.startswith("spawned") else 0]
    known = case not in UNKNOWN and kind not in UNKNOWN
    taken = 0
    for number, one in enumerate(result["passes"]):
        order, indices = data.order[number], one["indices"]
        claim(order[:len(indices)] == indices, f"{case}, epoch {number}: {order} for {indices}")
        claim(one["whole"] <= (number in data.whole and len(order) == len(indices)),
              f"{case}, epoch {number}: the end was not published")
        calls = data.published[number]
        if known and case not in REPUBLISHED:
            claim(all(first == 0 for first, _, _ in calls), f"{case}: republished, {calls}")
            claim(number in data.whole, f"{case}, epoch {number}: not whole")
            # Numbers drawn between iter() and the first sample, or an early break, change it.
            again = kind in ("drawn_between", "interleaved") or (number == 2 and kind in (*AHEAD, *SHARED))
            claim(len(calls) <= 1 + again, f"{case}, epoch {number}: {calls}")
        if known and "interleaved" not in case:
            claim(calls[-1][2] <= taken or case in REPUBLISHED,
                  f"{case}, epoch {number}: published after the first sample was read")
        # Workers had more of an epoch that was left early than the job took.
        taken += len(indices) if one["whole"] else len(order)
    claim(not any(data.open.values()), f"{case}: begun and not ended")
    read = [i for one in result["passes"] for i in one["indices"]]
    claim(not [i for i in set(read) if data.begun.count(i) < read.count(i)],
          f"{case}: not all reads are bracketed")
    if "-0" in case or case in ("drawn_within",):  # nothing is read ahead of the job
        claim(data.begun == read, f"{case}: other samples are bracketed than were read")
    claim(sorted(data.files) == list(range(FILES)), f"{case}: not located")


def check_ahead(results, record):
    """The next epoch is published where the step to it is known, and only there."""
    for case, result in results.items():
        kind, *how = case.split("-")
        data = record.of_case(case)
        if kind in SHARED:
            epochs = SHARED_WORKERS if how[0] != "0" else SHARED_ALONE
        elif kind in AHEAD and how == ["0"]:
            epochs = AHEAD[kind]
        else:
            continue
        begun = 0
        for number, one in enumerate(result["passes"]):
            first_published = data.published[number][0][2]
            claim((first_published < begun) == (number in epochs),
                  f"{case}, epoch {number}: published at {first_published}, begun at {begun}")
            begun += len(one["indices"])
        passes = len(result["passes"])
        claim(sorted(data.published) == list(range(passes + (passes in epochs))),
              f"{case}: published are the epochs {sorted(data.published)}")
    claim(len(results["unknown-0"]["passes"]) not in record.of_case("unknown-0").published,
          "unknown-0: an epoch of an unknown sampler was published ahead")


def check_tentative(folder, files, plain):
    """Where that is of use, the second epoch's order is known from the start of the first, of a generator of the
    loader's own; it is only tentative, and what is published for sure is as without it."""
    result, record = os.path.join(folder, "tentative"), os.path.join(folder, "tentative.record")
    done = recorded.run(["-W", "ignore", JOB, files, result, "fork"], record, RECORDER_TENTATIVE="1")
    claim(done.returncode == 0, done.stderr)
    with open(result, encoding="ascii") as text:
        claim(json.load(text) == plain, "a job differs where tentative orders are of use")
    record = recorded.Record(record)
    check_ahead(plain, record)
    for case, one in plain.items():
        if not case.startswith("stream"):
            check_case(case, one, record.of_case(case))
    right = 0
    for case in plain:
        kind, *how = case.split("-")
        if kind in AHEAD and how:
            data = record.of_case(case)
            claim(data.tentative.get(1) == data.order[1],
                  f"{case}: expected was {data.tentative.get(1)}, and came {data.order[1]}")
            claim(set(data.tentative) == {1}, f"{case}: {set(data.tentative)}")
            right += 1
        elif kind in SHARED and how:
            claim(set(record.of_case(case).tentative) == {1}, f"{case}: no order was expected")
    claim(right > len(AHEAD), f"only {right} cases were looked at")
    claim(record.of_case("unknown-0").tentative == {}, "the order of an unknown sampler was expected")


def check_republished(record):
    calls = record.of_case("drawn_within").published[0]
    claim([c[:2] for c in calls][0] == (0, 100), f"not predicted: {calls}")
    claim(len(calls) == 2 and calls[1][0] in range(40, 100) and sum(calls[1][:2]) == 100,
          f"what remains is not published once, as a whole: {calls}")
    shared = record.of_case("interleaved_shared").published
    claim(all(len(calls) > 1 for calls in (shared[0], shared[1])), f"not republished: {shared}")


def main():
    recorded.skip_without_torch()
    with tempfile.TemporaryDirectory(prefix="sv-") as folder:
        files = os.path.join(folder, "files")
        os.mkdir(files)
        for number in range(FILES):
            with open(os.path.join(files, f"{number:02}"), "wb") as file:
                file.write(b"%d" % number * number)
        results, record = run_both(folder, files, "fork")
        claim(len(results) > 60, f"only {len(results)} cases were run")
        for case, result in results.items():
            if case.startswith("stream"):
                claim(record.of_case(case) is None, "an IterableDataset is not left alone")
            else:
                check_case(case, result, record.of_case(case))
        claim(len(record.datasets) == len(results) - 2, "more datasets than cases")
        check_ahead(results, record)
        check_republished(record)
        check_tentative(folder, files, results)
        count = len(results)
        results, record = run_both(folder, files, "spawn")
        for case, result in results.items():
            check_case(case, result, record.of_case(case))
        claim(len(record.pids) >= 5, "spawned workers published nothing")
        print(f"{count + len(results)} cases are the same")


if __name__ == "__main__":
    try:
        main()
    except recorded.Failure as failure:
        sys.exit(f"adapter_orders: {failure}")
