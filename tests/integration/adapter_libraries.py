#!/usr/bin/python3
# test: timeout=240
"""Loaders of torchdata and accelerate, plain and under the adapter: the same samples, whose order is published whole before
the first is read, also where an epoch is resumed in its middle."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "adapters"))
import harness  # noqa: E402
import recorded  # noqa: E402
from recorded import claim  # noqa: E402

JOB = os.path.join(recorded.TOP, "tests", "adapters", "libraries_job.py")
FILES = 50


def check(case, passes, data):
    claim(data is not None, f"{case}: nothing was published")
    taken = 0
    for number, indices in enumerate(passes):
        claim(data.order[number][:len(indices)] == indices, f"{case}, epoch {number}: {data.order[number]} for {indices}")
        claim(number in data.whole, f"{case}, epoch {number}: the end was not published")
        calls = data.published[number]
        claim(all(first == 0 and count >= len(indices) for first, count, _ in calls),
              f"{case}, epoch {number}: not known as a whole, {calls}")
        claim(calls[-1][2] <= taken, f"{case}, epoch {number}: published after the first sample was read")
        claim(len(calls) == 1, f"{case}, epoch {number}: published {len(calls)} times")
        # Workers have more of an epoch that was left early than the job took.
        taken += len(data.order[number])


def main():
    python = harness.torch2("torchdata", "accelerate")
    with tempfile.TemporaryDirectory(prefix="sv-") as folder:
        files, record, results = os.path.join(folder, "files"), os.path.join(folder, "record"), {}
        os.mkdir(files)
        for number in range(FILES):
            with open(os.path.join(files, f"{number:02}"), "wb") as file:
                file.write(b"%d" % number * number)
        for name in ("plain", "under"):
            result = os.path.join(folder, name)
            done = recorded.run(["-W", "ignore", JOB, files, result], record if name == "under" else None, python=python,
                                timeout=200)
            claim(done.returncode == 0, f"{name}: {done.stderr}")
            with open(result, encoding="ascii") as text:
                results[name] = json.load(text)
        own, _ = recorded.notes(done)
        claim(not own, f"the adapter has something to say: {own}")
        claim(results["plain"] == results["under"], "other samples under the adapter")
        seen = recorded.Record(record)
        for case, passes in results["plain"].items():
            check(case, passes, seen.of_case(case))
        print(f"{len(results['plain'])} cases are known")


if __name__ == "__main__":
    try:
        main()
    except recorded.Failure as failure:
        sys.exit(f"adapter_libraries: {failure}")
