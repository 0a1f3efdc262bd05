#!/usr/bin/python3
# test: timeout=120
"""sluice report as a program: what its pages say, what it refuses, what it leaves behind."""
import json
import os
import sys
import tempfile
import unittest

import report_data
from report_data import Page, report

sys.path.insert(0, report_data.TOP)
sys.dont_write_bytecode = True
from bench.lib import figures  # noqa: E402

WORK = os.environ.get("TEST_DIR") or tempfile.mkdtemp(prefix="sluice-report-")


def write(name, content):
    path = os.path.join(WORK, name)
    with open(path, "wb") as out:
        if isinstance(content, (dict, list)):
            content = json.dumps(content).encode()
        out.write(content)
    return path


def page_of(content, name="input.json"):
    out = os.path.join(WORK, "page.html")
    done = report(write(name, content), "--out", out)
    assert (done.returncode, done.stdout, done.stderr) == (0, out + "\n", ""), done
    return Page(out)


class Pages(unittest.TestCase):
    def good(self, page):
        self.assertEqual(page.bad, [])
        self.assertEqual(page.links, [])
        self.assertNotIn("<script", page.source)
        self.assertNotIn("http:", page.source)
        self.assertNotIn("https:", page.source)

    def test_of_a_run(self):
        page = page_of(report_data.run())
        self.good(page)
        for said in ("Reader against frontier", "Hit, late, miss", "Queue depth", "Bandwidth",
                     "Stall", "Memory budget", "All figures", "4 GiB", "3.84 GiB", "31.42 s",
                     "1.5 s", "98 %", "256 MiB", "3 mappings not handled: too few VMAs left"):
            self.assertIn(said, page.all)
        self.assertEqual(page.row("epoch 0")[2:], ["0", "0", "0", "1,000", "-", "9.75 s"])
        self.assertEqual(page.row("epoch 3")[2:], ["980", "15", "5", "0", "98 %", "9.75 s"])
        self.assertEqual(page.row("precached_bytes")[1], "4,123,456,789 bytes")
        self.assertEqual(page.source.count("<polyline"), 10)

    def test_of_a_run_without_samples(self):
        page = page_of(report_data.run(samples=False))
        self.good(page)
        self.assertEqual(page.row("epoch 1")[2:], ["1,000 MiB", "20 MiB", "4 MiB", "97.7 %", "9.75 s"])

    def test_of_many_epochs(self):
        run = report_data.run(epochs=64)
        run["epochs"]["seen"] = 90
        page = page_of(run)
        self.good(page)
        self.assertIn("48 more epochs", page.all)
        self.assertIsNotNone(page.row("epoch 63 and later"))

    def test_of_a_run_that_saw_nothing(self):
        empty = {"history": {"interval_ns": 0, "time_ns": []}, "epochs": {"seen": 0, "epoch": []}}
        for content in ({"stall_ns": 0}, {"stall_ns": 0, **empty}):
            page = page_of(content)
            self.good(page)
            self.assertEqual(page.all.count("Nothing was recorded."), 6)

    def test_of_a_single_point(self):
        page = page_of(report_data.run(epochs=1, points=1))
        self.good(page)
        self.assertNotIn("nan", page.source)

    def test_of_a_bench(self):
        page = page_of(report_data.bench())
        self.good(page)
        self.assertEqual(page.row("lmdb_link_share")[1:5],
                         ["0.9815 ratio", "≥ 0.97", "met", "0.975 – 0.985"])
        self.assertEqual(page.row("stream_link_share")[3], "missed")
        self.assertEqual(page.row("lmdb_cold_over_warm_pfs")[2:4], ["≤ 1.03", "met"])
        self.assertEqual(page.row("start_cost_us")[1:4], ["1,700.5 us", "≤ 500", "missed"])
        self.assertEqual(page.row("arm_1tib_ms")[1:4], ["-0.31 ms", "≤ 5", "met"])
        long_name = next(name for name in report_data.bench() if name.startswith("a_figure"))
        self.assertEqual(page.row(long_name)[1:4], ["123,456,789,012 count", "none", "reported"])
        self.assertIn("Goals met 4", page.all)
        self.assertIn("Goals missed 2", page.all)

    def test_verdicts_are_the_benchs_own(self):
        made = {}
        for name, figure in figures.FIGURES.items():
            value = 1.5 if figure.goal is None else figure.goal * 1.01
            made[name] = {"value": value, "unit": figure.unit, "goal": figure.goal, "least": figure.least,
                          "low": value, "high": value}
        page = page_of(made)
        words = {True: "met", False: "missed", None: "reported"}
        for name, entry in made.items():
            self.assertEqual(page.row(name)[3], words[figures.met(name, entry["value"])], name)

    def test_text_of_the_input_is_only_text(self):
        evil = "<script>alert('x')</script>\"><img src=http://x onerror=y>&amp;\u2028"
        page = page_of({evil: {"value": 1, "unit": evil, "goal": 2, "low": 1, "high": 1}})
        self.assertEqual(page.bad, [])
        self.assertEqual(page.links, [])
        self.assertNotIn("<script", page.source)
        self.assertIsNotNone(page.row(evil.replace("\u2028", "").strip()) or
                             page.row(" ".join(evil.split())))
        page = page_of(report_data.bench(), name="<b onclick='x'>&.json")
        self.assertEqual((page.bad, page.links), ([], []))
        self.assertIn("<b onclick='x'>&.json", page.all)


class Refusals(unittest.TestCase):
    def refused(self, path, out, *parts):
        with open(out, "wb") as old:
            old.write(b"the old page")
        done = report(path, "--out", out)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done)
        self.assertRegex(done.stderr, r"\Asluice: [^\n]+\n\Z")
        for part in parts:
            self.assertIn(part, done.stderr)
        with open(out, "rb") as old:
            self.assertEqual(old.read(), b"the old page")
        self.assertEqual([n for n in os.listdir(os.path.dirname(out)) if ".html." in n], [])

    def test_bad_input(self):
        out = os.path.join(WORK, "refused.html")
        whole = json.dumps(report_data.run()).encode()
        for content, part in ((b"", "not JSON"), (whole[:len(whole) // 2], "not JSON"),
                              (whole[:-1], "not JSON"), (b"\0" * 4096, "not JSON"),
                              (b"[" * 1000000, "nested"), (b"[1, 2]", "neither"),
                              (b'{"a": 1}', "neither"), (b'{"a": {"value": {}}}', "not a number"),
                              (b'{"stall_ns": 1e400}', "not JSON")):
            self.refused(write("bad.json", content), out, "bad.json", part)
        run = report_data.run()
        run["history"]["in_flight"] = ["many"] * len(run["history"]["time_ns"])
        self.refused(write("bad.json", run), out, "history.in_flight is not a number")
        run = report_data.run()
        run["history"]["depth"].pop()
        self.refused(write("bad.json", run), out, "history.depth")

    def test_files_that_are_none(self):
        out = os.path.join(WORK, "refused.html")
        self.refused("/nonexistent", out, "/nonexistent", "No such file")
        self.refused(WORK, out, "not a regular file")
        fifo = os.path.join(WORK, "fifo")
        os.mkfifo(fifo)
        self.refused(fifo, out, "not a regular file")
        with open(os.path.join(WORK, "large.json"), "wb") as large:
            large.truncate(1 << 30)
        self.refused(large.name, out, "too large")

    def test_pages_that_cannot_be_written(self):
        good = write("good.json", report_data.bench())
        for out, part in ((WORK, "folder"), ("/nonexistent/x.html", "No such"),
                          ("/dev/null", "regular"), (good, "is what is to be read")):
            done = report(good, "--out", out)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(part, done.stderr)
        with open(good, "rb") as written:
            self.assertEqual(json.load(written), report_data.bench())

    def test_default_name_and_mode(self):
        good = write("good.json", report_data.bench())
        done = report(good, cwd=WORK, preexec_fn=lambda: os.umask(0o027) and None)
        self.assertEqual((done.returncode, done.stdout), (0, "report.html\n"), done)
        self.assertEqual(os.stat(os.path.join(WORK, "report.html")).st_mode & 0o777, 0o640)


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=0)
    sys.exit(0 if outcome.result.wasSuccessful() else 1)
