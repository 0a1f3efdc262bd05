#!/usr/bin/python3
"""sluice simulate: its figures against closed forms, traces, outputs and complaints."""
# test: timeout=120
import csv
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SLUICE = os.path.join(TOP, os.environ.get("B", "build"), "sluice")
WORK = os.environ.get("TEST_DIR") or tempfile.mkdtemp(prefix="sluice-simulate-test-")
ALL = ["auto", "lru", "lfu", "fifo", "minio", "quiver", "shade", "belady", "needed"]
HEADER = struct.pack("<4sIII", b"SLTR", 1, 24, 0)


def simulate(*words, **changes):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_") and k != "LD_PRELOAD"}
    return subprocess.run([SLUICE, "simulate", *map(str, words)], capture_output=True, text=True,
                          timeout=60, env=clean | changes, check=False)


def path(name):
    return os.path.join(WORK, name)


def figures(*words):
    """Rows of --csv: {(policy, memory in bytes): [each epoch's row]}."""
    done = simulate(*words, "--csv", path("figures.csv"))
    assert done.returncode == 0, done.stderr
    rows = {}
    with open(path("figures.csv"), encoding="utf-8") as text:
        for row in csv.DictReader(text):
            values = {k: float(v) for k, v in row.items() if k != "policy"}
            rows.setdefault((row["policy"], int(row["memory_bytes"])), []).append(values)
    return rows


def record(number, sample, job=0, size=1000):
    """`number` is the epoch."""
    return struct.pack("<QIIII", size, number, job, sample, 0)


def trace(name, *records, header=HEADER):
    with open(path(name), "wb") as out:
        out.write(header + b"".join(records))
    return path(name)


class Case(unittest.TestCase):
    def complains(self, done, status, *parts):
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertRegex(done.stderr, r"\Asluice: [^\n]+\n\Z")
        for part in parts:
            self.assertIn(part, done.stderr)


class Systems(Case):
    WORDS = ("--samples", 5000, "--size-distribution", "fixed:4K", "--epochs", 12)

    def rows(self, *words):
        done = simulate(*self.WORDS, *words, "--csv", path("systems.csv"))
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {}
        with open(path("systems.csv"), encoding="utf-8") as text:
            for row in csv.DictReader(text):
                name = row.pop("system")
                rows.setdefault(name, []).append({k: float(v) for k, v in row.items()})
        return rows, done.stdout

    def test_every_request_is_one_of_its_kinds(self):
        rows, _ = self.rows("--system", "all", "--memory", "20%")
        self.assertEqual(len(rows), 13)
        kinds = ("h_hits", "l_exact", "substituted", "h_for_l", "misses", "misses_other")
        for name, epochs in rows.items():
            self.assertEqual(len(epochs), 12)
            for epoch in epochs:
                self.assertEqual(sum(epoch[kind] for kind in kinds), epoch["requests"], name)
                missed = epoch["misses"] + epoch["misses_other"]
                self.assertEqual(epoch["missed_bytes"], (missed - epoch["misses_in_packages"]) * 4096, name)
                self.assertEqual(epoch["misses_in_packages"] != 0, name in ("brand", "pool") and missed != 0, name)
                self.assertAlmostEqual(epoch["hit_ratio"], 1 - missed / epoch["requests"], places=5)
                self.assertEqual(epoch["asked_bytes"], epoch["requests"] * 4096)
                self.assertLessEqual(epoch["package_useful_bytes"], epoch["package_bytes"])
                self.assertLessEqual(epoch["substituted"], 0.12 * epoch["requests"]
                                     if name == "icache" else epoch["requests"])

    def test_decisions_are_what_was_counted(self):
        rows, _ = self.rows("--system", "all", "--memory", "20%", "--decisions", path("decisions.csv"))
        kinds = {"h": "h_hits", "l": "l_exact", "substituted": "substituted", "h-for-l": "h_for_l",
                 "miss": "misses", "miss-other": "misses_other"}
        counted = {name: [dict.fromkeys(kinds.values(), 0) for _ in epochs]
                   for name, epochs in rows.items()}
        packages = dict.fromkeys(rows, 0)
        with open(path("decisions.csv"), encoding="utf-8") as text:
            for one in csv.DictReader(text):
                counted[one["system"]][int(one["epoch"])][kinds[one["how"]]] += 1
                packages[one["system"]] += int(one["packages"])
                self.assertEqual(one["requested"] == one["served"],
                                 one["how"] in ("h", "l", "miss"), one)
        for name, epochs in rows.items():
            for epoch, counts in zip(epochs, counted[name]):
                self.assertEqual({kind: epoch[kind] for kind in counts}, counts, name)
            self.assertEqual(packages[name], sum(epoch["packages"] for epoch in epochs))

    def test_only_those_that_select_ask_for_less(self):
        rows, _ = self.rows("--system", "default,base,quiver,coordl,iis,hc,icache,oracle")
        for name, epochs in rows.items():
            asked = [epoch["requests"] for epoch in epochs]
            self.assertEqual(asked[:5], [5000] * 5, name)
            selects = name in ("iis", "hc", "icache", "oracle")
            self.assertEqual(min(asked) < 3000, selects, name)
            self.assertEqual(asked[7], 5000, "every third epoch asks for all")

    def test_losses_that_change_are_worth_less(self):
        still, _ = self.rows("--system", "hc", "--memory", "20%")
        drifting, _ = self.rows("--system", "hc", "--memory", "20%", "--drift", 0.5)
        self.assertGreater(still["hc"][-1]["hit_ratio"], drifting["hc"][-1]["hit_ratio"] + 0.01)

    def test_the_table_says_the_same(self):
        rows, text = self.rows("--system", "coordl", "--memory", "20%")
        self.assertRegex(text, r"\ncoordl +3\.9 MiB \(20 %\) +1\.000 +0\.2000 ")
        self.assertEqual(rows["coordl"][-1]["l_exact"], 1000)

    def test_what_does_not_go_together(self):
        for words in (("--system", "icache", "--policy", "lru"), ("--system", "icache", "--jobs", 2),
                      ("--system", "icache", "--trace", "x"), ("--system", "icache", "--advise"),
                      ("--drift", 0.5), ("--system", "icache", "--drift", 2),
                      ("--system", "nothing")):
            done = simulate(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertEqual(done.stdout, "")


class MadeUp(Case):
    def test_hit_ratios_are_those_of_theory(self):
        samples, size = 20000, 1000
        rows = figures("--samples", samples, "--size-distribution", f"fixed:{size}", "--epochs", 4,
                       "--policy", "all", "--memory", "20%,40%,60%,80%")
        for share in (0.2, 0.4, 0.6, 0.8):
            memory = int(share * samples * size)
            for policy in ALL:
                epochs = rows[policy, memory]
                self.assertEqual(len(epochs), 4)
                self.assertEqual(epochs[0]["hits"], 0)
                for epoch in epochs[1:]:
                    if policy == "lru":
                        expected = share + (1 - share) * math.log(1 - share)
                        self.assertAlmostEqual(epoch["hit_ratio"], expected, delta=0.012)
                    elif policy not in ("lfu", "fifo"):  # nothing more is possible
                        self.assertEqual(epoch["hits"], share * samples, policy)
                    self.assertLessEqual(epoch["hits"], share * samples)
                    self.assertEqual(epoch["requests"], samples - epoch["hits"])
                    self.assertEqual(epoch["storage_bytes"], epoch["requests"] * size)
                    self.assertEqual(epoch["asked_bytes"], samples * size)

    def test_a_seed_is_a_result(self):
        words = ("--samples", 5000, "--epochs", 3, "--policy", "all", "--jobs", 2)
        first = simulate(*words, "--seed", 7)
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertEqual(first.stdout, simulate(*words, "--seed", 7).stdout)
        other = simulate(*words, "--seed", 8).stdout.replace("seed 8", "seed 7")
        self.assertNotEqual(first.stdout, other)

    def test_the_table_has_a_line_for_each_policy_and_memory(self):
        done = simulate("--samples", 1000, "--epochs", 2, "--policy", "lru,minio", "--memory",
                        "10%,1M", "--size-distribution", "fixed:4K")
        lines = done.stdout.splitlines()
        self.assertIn("1000 samples", lines[0])
        head = [i for i, line in enumerate(lines) if line.startswith("policy")][0]
        self.assertEqual([line.split()[0] for line in lines[head + 1:]],
                         ["lru", "minio", "lru", "minio"])
        # 1 MiB holds 256 of the 1000.
        self.assertRegex(lines[head + 4], r"minio +1\.0 MiB \(25\.6 %\) +0\.2560 +2\.9 MiB +744 ")

    def test_sizes_are_distributed_as_asked(self):
        rows = figures("--samples", 50000, "--epochs", 1, "--policy", "lru")
        [(epoch,)] = rows.values()
        self.assertAlmostEqual(epoch["asked_bytes"] / 50000, 107.8e3, delta=1000)
        rows = figures("--samples", 50000, "--epochs", 1, "--policy", "lru",
                       "--size-distribution", "lognormal:64K,1")
        [(epoch,)] = rows.values()
        self.assertAlmostEqual(epoch["asked_bytes"] / 50000 / 65536, math.exp(0.5), delta=0.05)

    def test_the_stall_is_what_the_manual_says(self):
        words = ("--samples", 1000, "--size-distribution", "fixed:1M", "--epochs", 2, "--policy",
                 "minio", "--memory", "50%")
        def stall(*storage):
            [(_, epoch)] = figures(*words, *storage).values()
            return epoch["stall_s"]
        # 500 requests: by latency, by bandwidth, half covered by computing, covered.
        self.assertAlmostEqual(stall("--latency", "8ms", "--depth", 4, "--bandwidth", "10G"), 1)
        self.assertAlmostEqual(stall("--latency", "1us", "--depth", 4, "--bandwidth", "100M"), 5)
        self.assertAlmostEqual(stall("--latency", "8ms", "--depth", 4, "--bandwidth", "10G",
                                     "--compute", "500us"), 0.5)
        self.assertEqual(stall("--latency", "8ms", "--depth", 4, "--bandwidth", "10G",
                               "--compute", "0.1s"), 0)

    def test_jobs_share_what_is_in_memory(self):
        words = ("--samples", 5000, "--epochs", 4, "--size-distribution", "fixed:1000",
                 "--memory", "30%", "--policy", "quiver,minio", "--jobs", 2)
        rows = figures(*words)
        last = {policy: epochs[-1] for (policy, _), epochs in rows.items()}
        self.assertEqual(last["minio"]["accesses"], 10000)
        self.assertEqual(last["minio"]["hits"], 3000)
        self.assertGreater(last["quiver"]["hits"], 1.1 * last["minio"]["hits"])

    def test_advice_names_where_the_stall_ends(self):
        # 10,000 requests of 1 ms, one at a time, against 7 s of computing: 30 % must be hits.
        done = simulate("--samples", 10000, "--epochs", 3, "--size-distribution", "fixed:1000",
                        "--latency", "1ms", "--depth", 1, "--compute", "700us", "--advise")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"No stall from [^(]+\(30 %\) on, with minio; .*5 %")
        self.assertRegex(done.stdout, r"Advice: --memory \d+M --policy minio\n\Z")
        again = simulate("--samples", 200000, "--epochs", 5, "--compute", "1s", "--advise")
        self.assertIn("No stall with", again.stdout)

    def test_bad_values_are_named_and_end_with_2(self):
        for option, value, reason in (
                ("--samples", "0", "from 1 to"), ("--samples", "-3", "from 1 to"),
                ("--samples", "1e6", "from 1 to"), ("--samples", "5000000000", "from 1 to"),
                ("--epochs", "0", "from 1"), ("--jobs", "33", "from 1 to 32"),
                ("--seed", "x", "not a number"), ("--memory", "0%", "above 0 %"),
                ("--memory", "120%", "up to 100 %"), ("--memory", "nan%", "share"),
                ("--memory", "many", "such as 50M"), ("--memory", "20%,", "such as 50M"),
                ("--policy", "lru,mru", "'mru' is none of"), ("--policy", "lru,", "''"),
                ("--size-distribution", "pareto:1", "imagenet"),
                ("--size-distribution", "fixed:0", "from 1"),
                ("--size-distribution", "lognormal:64K", "MEDIAN,SIGMA"),
                ("--size-distribution", "lognormal:64K,-1", "MEDIAN,SIGMA"),
                ("--latency", "2", "such as 2ms"), ("--latency", "-1ms", "such as 2ms"),
                ("--latency", "infs", "such as 2ms"), ("--depth", "0", "from 1"),
                ("--bandwidth", "0", "from 1"), ("--picture", "a.jpg", ".png")):
            done = simulate(option, value)
            self.complains(done, 2, option, reason)
            self.assertEqual(done.stdout, "")
        self.complains(simulate("--samples", 100000000, "--jobs", 2), 2, "--jobs", "more than")
        self.complains(simulate("--trace", "x", "--samples", 5), 2, "--trace")
        self.complains(simulate("--colour"), 2, "--colour")

    def test_what_cannot_be_written_is_said(self):
        self.complains(simulate("--samples", 10, "--csv", "/nonexistent/a.csv"), 1,
                       "/nonexistent/a.csv", "No such file")
        self.complains(simulate("--samples", 10, "--csv", "/dev/full"), 1, "/dev/full", "No space")
        for file, reason in (("/nonexistent/d", "No such file"), ("/dev/full", "No space")):
            self.complains(simulate("--samples", 1000, "--epochs", 2, "--system", "all", "--decisions",
                                    file), 1, file, reason)


class Pictures(Case):
    WORDS = ("--samples", 500, "--epochs", 2, "--policy", "all")

    def test_a_picture_is_drawn(self):
        probe = subprocess.run(["/usr/bin/python3", "-c", "import matplotlib"], check=False,
                               capture_output=True)
        if probe.returncode != 0:
            self.skipTest("no matplotlib")
        for memory in ("20%", "20%,60%"):
            picture = path("picture.png")
            done = simulate(*self.WORDS, "--memory", memory, "--picture", picture)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            with open(picture, "rb") as image:
                self.assertEqual(image.read(8), b"\x89PNG\r\n\x1a\n")
            self.assertGreater(os.path.getsize(picture), 5000)
            os.unlink(picture)
        done = simulate(*self.WORDS, "--picture", "/nonexistent/a.png")
        self.complains(done, 1, "/nonexistent/a.png")

    def test_without_matplotlib_one_line_says_so(self):
        os.makedirs(path("broken"), exist_ok=True)
        with open(path("broken/matplotlib.py"), "w", encoding="utf-8") as module:
            module.write("raise ImportError('not here')\n")
        done = simulate(*self.WORDS, "--picture", path("none.png"), PYTHONPATH=path("broken"))
        self.complains(done, 1, "matplotlib")
        self.assertFalse(os.path.exists(path("none.png")))


class Traces(Case):
    def test_a_recorded_job_is_played(self):
        # Room for two samples of three. Every epoch is 7, 4000000000, 9; numbers need not be dense.
        order = (7, 4000000000, 9)
        file = trace("three.trace", *(record(epoch, s) for epoch in range(4) for s in order))
        rows = figures("--trace", file, "--memory", "2000", "--policy", "lru,minio,belady")
        hits = {policy: [int(e["hits"]) for e in epochs] for (policy, _), epochs in rows.items()}
        self.assertEqual(hits["lru"], [0, 0, 0, 0])
        self.assertEqual(hits["minio"], [0, 2, 2, 2])
        # Each epoch retains what comes first in the next.
        self.assertEqual(hits["belady"], [0, 2, 2, 2])
        self.assertIn("3 samples, 2.9 KiB, 12 accesses in 4 epochs, 1 job",
                      simulate("--trace", file).stdout)

    def test_a_changed_sample_is_fetched_again(self):
        file = trace("changed.trace", record(0, 1), record(1, 1), record(2, 1, size=2000),
                     record(3, 1, size=2000))
        for epochs in figures("--trace", file, "--memory", "4K", "--policy", "all").values():
            self.assertEqual([e["hits"] for e in epochs], [0, 1, 0, 1])

    def test_a_trace_equals_the_made_up_job_that_it_was_made_from(self):
        rng = random.Random(5)
        records = []
        for epoch in range(4):
            records += [record(epoch, s) for s in rng.sample(range(3000), 3000)]
        rows = figures("--trace", trace("reshuffled.trace", *records), "--memory", "40%",
                       "--policy", "all")
        for (policy, _), epochs in rows.items():
            if policy in ("auto", "belady", "minio", "quiver", "shade"):
                self.assertEqual([e["hits"] for e in epochs], [0, 1200, 1200, 1200], policy)

    def test_a_last_record_that_is_cut_short_does_not_count(self):
        whole = [record(0, s) for s in range(5)]
        file = trace("cut.trace", *whole, whole[0][:11])
        done = simulate("--trace", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("5 accesses", done.stdout)
        self.assertIn("cut short", done.stdout)

    def test_bad_traces_are_refused_with_one_line(self):
        good = record(3, 1)
        for name, file, reason in (
                ("missing", path("missing"), "No such file"),
                ("folder", WORK, "not a regular file"),
                ("empty", trace("empty", header=b""), "not a trace"),
                ("short", trace("short", header=HEADER[:15]), "not a trace"),
                ("text", trace("text", header=b"#!/bin/sh\nexit 0\n"), "not a trace"),
                ("newer", trace("newer", good, header=struct.pack("<4sIII", b"SLTR", 2, 24, 0)),
                 "version 2"),
                ("wider", trace("wider", good, header=struct.pack("<4sIII", b"SLTR", 1, 32, 0)),
                 "version"),
                ("no records", trace("none"), "no records"),
                ("huge", trace("huge", good, record(3, 2, size=1 << 60)), "record 1: its sample"),
                ("job", trace("job", record(0, 1, job=5000)), "record 0: its job"),
                ("number", trace("number", record(0, 0xffffffff)), "record 0: its sample"),
                ("back", trace("back", good, record(2, 1)), "record 1: its epoch")):
            with self.subTest(name):
                done = simulate("--trace", file)
                self.complains(done, 2, "--trace", reason)
                self.assertEqual(done.stdout, "")
        fifo = path("fifo")
        os.mkfifo(fifo)
        self.complains(simulate("--trace", fifo), 2, "not a regular file")

    def test_random_bytes_do_no_harm(self):
        rng = random.Random(9)
        for attempt in range(60):
            noise = bytearray(b"".join(record(s // 10, s % 10) for s in range(30)))
            for _ in range(rng.randrange(1, 6)):
                noise[rng.randrange(len(noise))] = rng.randrange(256)
            done = simulate("--trace", trace("noise", bytes(noise)), "--policy", "all")
            self.assertIn(done.returncode, (0, 2), f"attempt {attempt}: {done.stderr}")
            if done.returncode == 2:
                self.complains(done, 2, "record")

    def test_jobs_of_a_trace_are_counted(self):
        records = [record(0, s, job=j) for s in range(10) for j in (3, 700)]
        done = simulate("--trace", trace("jobs", *records), "--policy", "all")
        self.assertIn("10 samples, 9.8 KiB, 20 accesses in 1 epoch, 2 jobs", done.stdout)
        self.assertTrue(re.search(r"^minio .* 0\.\d{4} ", done.stdout, re.M), done.stdout)


if __name__ == "__main__":
    sys.exit(unittest.main())
