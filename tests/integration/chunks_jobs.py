#!/usr/bin/python3
# test: timeout=300
"""Every sampler and loader under policy pool: as many batches of as many samples as plain, no sample twice in an epoch
that draws none twice, and the same states of all generators after it; the same samples in the same order where the
order is not for chunks to decide."""
import json
import os
import subprocess

import harness
import stage_testing
from harness import claim
from stage_testing import Ground

JOB = os.path.join(harness.TOP, "tests", "adapters", "job.py")
SLUICE = os.path.join(harness.BUILD, "sluice")
FILES = 50
# A random order of all samples, or of a rank's part, each once.
RANKS = ("rank0", "rank1")
DECIDED = RANKS + ("random", "random_own", "random_drop", "random_sampler_own", "batch_sampler", "one_by_one", "drawn_between",
           "interleaved", "resumed")


def results(place, folder, name, library, **settings):
    out = os.path.join(place.work, name)
    argv = ["/usr/bin/python3", "-W", "ignore", JOB, folder, out, "fork"]
    done = place.run(argv, library, timeout=200, **settings)
    claim(done.returncode == 0, f"{name}: {done.stderr}")
    with open(out, encoding="ascii") as text:
        return json.load(text)


def check_parts(under):
    """Both ranks together have all samples in each epoch that is not left."""
    pairs = [(case, "rank1" + case[5:]) for case in under if case.startswith("rank0") and "rank1" + case[5:] in under]
    whole = [[part["indices"] for part in both] for one, other in pairs
             for both in zip(under[one]["passes"], under[other]["passes"])]
    whole = [both for both in whole if all(len(part) == FILES // 2 for part in both)]
    claim(whole and all(set().union(*both) == set(range(FILES)) for both in whole), f"not all samples: {whole}")


def check_case(case, plain, under):
    kind = case.split("-")[0]
    claim(under["states"] == plain["states"], f"{case}: generators are in another state")
    claim(len(under["passes"]) == len(plain["passes"]), f"{case}: not as many epochs")
    moved = 0
    for number, (one, other) in enumerate(zip(plain["passes"], under["passes"])):
        claim(one["whole"] == other["whole"] and len(one["indices"]) == len(other["indices"]),
              f"{case}, epoch {number}: not as many samples")
        if kind not in DECIDED:
            claim(one == other, f"{case}, epoch {number}: other samples: {one['indices']} {other['indices']}")
            continue
        indices = other["indices"]
        claim(len(set(indices)) == len(indices) and set(indices) <= set(range(FILES)), f"{case}, epoch {number}: {indices}")
        claim(len(indices) < FILES or sorted(indices) == list(range(FILES)), f"{case}, epoch {number}: {indices}")
        moved += indices != one["indices"]
    return moved


def test(place):
    harness.need_modules("torch", python="/usr/bin/python3")
    with Ground(place, "disk") as ground:
        folder = ground.folder("set")
        os.mkdir(folder)
        for number in range(FILES):
            with open(os.path.join(folder, f"{number:02}"), "wb") as file:
                file.write(b"%d" % number * (1 + number))
        cache = os.path.join(place.work, "cache")
        os.mkdir(cache)
        subprocess.run([SLUICE, "chunks", "make", "--cache-dir", cache, "--samples", "5", folder], check=True,
                       capture_output=True, timeout=60)
        settings = {**stage_testing.SETTINGS, "SLUICE_CACHE_DIR": cache, "SLUICE_MEMORY": "1M", "SLUICE_LINGER": "60",
                    "SLUICE_SUBSTITUTE": "any", "SLUICE_PLACES": "off"}
        plain = results(place, folder, "plain", None)
        for policy in "pool", "brand":
            under = results(place, folder, policy, harness.LIBRARY, SLUICE_POLICY=policy, **settings)
            claim(plain.keys() == under.keys(), "other cases")
            moved = {case: check_case(case, plain[case], under[case]) for case in plain}
            check_parts(under)
            decided = [case for case in plain if case.split("-")[0] in DECIDED]
            print(f"{policy}: {len(plain)} cases, {len(decided)} of them in another order; {moved}")
            # All files fit into memory, where Brand has no need to.
            claim(policy == "brand" or sum(moved[case] > 0 for case in decided) > len(decided) / 2,
                  f"nothing was substituted: {moved}")
            for rank in RANKS:
                claim(sum(moved[case] for case in decided if case.startswith(rank)) > 0, f"{policy}, {rank}: {moved}")
            harness.drive.end_optimizer(place.sockets)


if __name__ == "__main__":
    harness.main(test)
