#!/usr/bin/python3
# test: timeout=30
"""What scripts/demo says of its runs: whose processors are whose, that the storage was read in the cold
ones and left alone in the warm ones, and that all trained the same. The runs themselves take too long."""
import importlib.machinery
import importlib.util
import os
import sys

import harness
from harness import claim

sys.dont_write_bytecode = True
_loader = importlib.machinery.SourceFileLoader("demo", os.path.join(harness.TOP, "scripts/demo"))
demo = importlib.util.module_from_spec(importlib.util.spec_from_loader("demo", _loader))
_loader.exec_module(demo)


def processors():
    for usable, divided in (({0, 1}, ([0], 1)), ({9, 4, 11}, ([4, 9], 11)), ({3}, ([], 3))):
        found = demo.divide_processors(usable)
        claim(found == divided, f"{usable}: {found}")
    several, one = demo.division_line([0, 2], 3), demo.division_line([], 0)
    claim("stays on processor 3" in several and "have 0, 2 without it" in several, several)
    claim("only one processor" in one, one)


class Storage:
    folder = "no such folder"

    def cold(self):
        pass


def trainings(*asked):
    """What train() returns from now on, of which only the bytes matter here."""
    left = [{"bytes": 1000, "read_from_storage": count} for count in asked]
    demo.train = lambda storage, environment: left.pop(0)
    return left


def failure(function, *arguments):
    try:
        function(*arguments)
    except demo.Failed as failed:
        return str(failed)
    return None


def cold_and_warm():
    trainings(1000)
    claim(failure(demo.train_cold, Storage(), {}) is None, "a cold run that read all was refused")
    trainings(999)
    claim("page cache" in str(failure(demo.train_cold, Storage(), {})), "a half warm run passed for cold")
    trainings(None)
    claim(failure(demo.train_cold, Storage(), {}) is None, "a disk that counts nothing was refused")
    left = trainings(6, 5, 0)
    warm = demo.train_warm(Storage())
    claim(warm["read_from_storage"] == 5 and len(left) == 1, f"{warm}, {left}")
    trainings(*[8, 7, 9][:demo.WARM_ATTEMPTS])
    said = []
    demo.say = said.append
    warm = demo.train_warm(Storage())
    claim(warm["read_from_storage"] == 7 and said, f"a run passed for warm: {warm}, {said}")


def several_runs():
    claim(demo.middle([{"seconds": 3}, {"seconds": 1}, {"seconds": 2}])["seconds"] == 2, "not the median")
    same = {"records": 1, "bytes": 2, "digest": "a", "loss": "0.5"}
    claim(failure(demo.check_identical, {"x": [same, same], "y": [same]}) is None, "the same differed")
    for odd in ({"x": [same, same | {"loss": "0.6"}], "y": [same]}, {"x": [same], "y": [same | {"digest": "b"}]}):
        claim("differ" in str(failure(demo.check_identical, odd)), f"not noticed: {odd}")


def bound_of_the_link():
    run = {"read_from_storage": 800}
    claim(demo.link_seconds(run, 400) == 2, "a link of 400 bytes a second delivers 800 in 2 s")
    claim(demo.link_seconds(run, None) is None, "a link without a limit had a bound")
    claim(demo.link_seconds({"read_from_storage": None}, 400) is None, "bytes that nothing counted had a bound")


def main():
    processors()
    bound_of_the_link()
    several_runs()
    cold_and_warm()


if __name__ == "__main__":
    main()
