"""What iCache's decisions are worth, played by `sluice simulate --system`: the code that decides, over
epochs of a made-up job. Hit ratios; nothing is read."""
import csv
import math
import os
import subprocess

from bench.lib.place import Failed, program

SHARES = (20, 40, 60, 80)  # percent of the dataset in memory
PROVIDES = ([f"lru_hit_{share}" for share in SHARES] + ["lru_hit_error"]
            + [f"icache_hit_{share}" for share in SHARES]
            + ["icache_substituted_20", "icache_hc_hit_20", "icache_iis_fetched"])
# CIFAR-10's size, and the paper's number of epochs.
SAMPLES, SAMPLE_BYTES, EPOCHS = 50000, 4096, 90
SEEDS = 3


def play(bench, seed):
    """{(system, percent): its epochs' rows}"""
    samples, epochs = (5000, 12) if bench.request.small else (SAMPLES, EPOCHS)
    out = os.path.join(bench.request.out, "icache.csv")
    command = [program("sluice"), "simulate", "--system", "default,hc,icache", "--samples",
               str(samples), "--size-distribution", f"fixed:{SAMPLE_BYTES}", "--epochs", str(epochs),
               "--memory", ",".join(f"{share}%" for share in SHARES), "--seed", str(seed), "--csv", out]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: status {done.returncode}")
    rows = {}
    with open(out, encoding="utf-8") as text:
        for row in csv.DictReader(text):
            share = round(100 * int(row["memory_bytes"]) / int(row["dataset_bytes"]))
            values = {k: float(v) for k, v in row.items() if k != "system"}
            rows.setdefault((row["system"], share), []).append(values)
    os.unlink(out)
    return rows


def share_of(epochs, *kinds):
    """Of the requests of all epochs but the first, in which the memory fills."""
    asked = sum(epoch["requests"] for epoch in epochs[1:])
    return sum(epoch[kind] for epoch in epochs[1:] for kind in kinds) / asked


HITS = ("h_hits", "l_exact", "substituted")


def run(bench):
    all_seeds = [play(bench, seed) for seed in range(1, SEEDS + 1)]
    bench.save("icache", [{f"{system} {share}": epochs for (system, share), epochs in rows.items()}
                          for rows in all_seeds])
    errors = []
    for share in SHARES:
        lru = [share_of(rows["default", share], *HITS) for rows in all_seeds]
        expected = share / 100 + (1 - share / 100) * math.log(1 - share / 100)
        errors += [abs(value - expected) for value in lru]
        bench.record(f"lru_hit_{share}", lru)
        bench.record(f"icache_hit_{share}",
                     [share_of(rows["icache", share], *HITS) for rows in all_seeds])
    bench.record("lru_hit_error", [max(errors)])
    bench.record("icache_substituted_20",
                 [share_of(rows["icache", 20], "substituted") for rows in all_seeds])
    bench.record("icache_hc_hit_20", [share_of(rows["hc", 20], *HITS) for rows in all_seeds])
    bench.record("icache_iis_fetched",
                 [sum(epoch["requests"] / epoch["dataset_samples"] for epoch in rows["icache", 20])
                  / len(rows["icache", 20]) for rows in all_seeds])
