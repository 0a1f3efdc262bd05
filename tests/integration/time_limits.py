#!/usr/bin/python3
"""Time limits grow on a busy machine and still end what hangs; which tests make check runs."""
import collections
import functools
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "scripts"))
import machine_time  # noqa: E402
import waiting  # noqa: E402


def seconds_until_expired(limit_seconds, share, stolen=0.0):
    now = [0.0]
    limit = machine_time.Limit(limit_seconds, share=lambda: share, clock=lambda: now[0], stolen=lambda: stolen)
    while not limit.expired():
        now[0] += 1
    return now[0]


def listed(*words):
    done = subprocess.run([os.path.join(TOP, "scripts", "run-tests"), "--list", *words],
                          capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split("\n")[:-1]


class Limits(unittest.TestCase):
    def test_an_idle_machine_has_the_limit_itself(self):
        self.assertEqual(seconds_until_expired(30, 1.0), 30)

    def test_a_load_of_six_on_two_processors_triples_it(self):
        self.assertAlmostEqual(seconds_until_expired(30, 1 / 3), 90, delta=1)

    def test_what_a_hypervisor_takes_does_not_count(self):
        self.assertAlmostEqual(seconds_until_expired(30, 1.0, stolen=0.5), 60, delta=1)

    def test_the_stolen_part_is_that_since_the_last_look(self):
        with tempfile.NamedTemporaryFile("w+") as stat:
            for times, part in (("100 0 50 1000 0 0 0 1000 0 0", 0.0), ("110 0 60 1000 0 0 0 1020 0 0", 0.5),
                                ("110 0 60 1020 0 0 0 1020 0 0", 0.0)):
                stat.seek(0)
                print("cpu ", times, file=stat, flush=True)
                if times.startswith("100"):
                    stolen = machine_time.Stolen(stat.name)
                self.assertAlmostEqual(stolen(), part)
        self.assertEqual(machine_time.Stolen("/nowhere")(), 0.0)

    def test_what_hangs_ends_on_any_machine(self):
        self.assertEqual(seconds_until_expired(30, 0.0), 30 * machine_time.MOST_TIMES)

    def test_a_job_that_a_busy_machine_slows_is_waited_for(self):
        for share, ends in ((0.01, True), (1.0, False)):
            with mock.patch("machine_time.Limit", functools.partial(machine_time.Limit, share=lambda s=share: s)):
                with subprocess.Popen(["sleep", "2.5" if ends else "1000"]) as job:
                    try:
                        waiting.communicate(job, 1)
                        self.assertTrue(ends)
                    except subprocess.TimeoutExpired:
                        self.assertFalse(ends)
                    finally:
                        job.kill()

    def test_the_share_is_one_of_a_processor(self):
        self.assertTrue(0 < machine_time.share_of_processor() <= 1)


class Sets(unittest.TestCase):
    def test_check_and_long_are_all_tests_and_lint(self):
        check, rest = listed("--seed", "3"), listed("--long", "--seed", "3")
        every = [name for name in listed("*") if not name.startswith("lint/")]
        self.assertEqual(sorted(check + rest), sorted(every))
        self.assertFalse([n for n in check if n.startswith(("lint/", "differential/"))])

    def test_each_victim_is_in_check_and_each_configuration_with_some_seed(self):
        every = set(listed("victims/*"))
        seen = collections.Counter()
        for seed in range(10):
            chosen = [n for n in listed("--seed", str(seed)) if n.startswith("victims/")]
            self.assertEqual({n.split("@")[0] for n in chosen}, {n.split("@")[0] for n in every})
            seen.update(chosen)
        self.assertEqual(set(seen), every)

    def test_the_long_set_has_another_order_with_each_seed(self):
        self.assertNotEqual(listed("--long", "--seed", "1"), listed("--long", "--seed", "2"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
