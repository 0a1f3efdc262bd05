#!/usr/bin/python3
"""`sluice status --prometheus`: what a scrape or node_exporter's textfile collector reads."""
# test: timeout=120
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
import unittest

import harness
import status_test
from status_test import OPTIMIZER, SLUICE, VERSION, Place, pieces, send_all, sluice, until_it_leaves
from waiting import wait_for

USER = 61234  # who has no optimizer on this machine
SAMPLE = re.compile(r'([a-z_][a-z0-9_]*)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)')


def parsed(text):
    """Families by name: (type, {labels: value}). Raises on what the format does not allow."""
    if not text.endswith("\n"):
        raise AssertionError("the last line has no end")
    families, name = {}, None
    for line in text[:-1].split("\n"):
        head = re.fullmatch(r"# (HELP|TYPE) (\S+) (.+)", line)
        if head and head.group(1) == "HELP":
            name = head.group(2)
            if name in families:
                raise AssertionError(f"{name} is in two places")
            families[name] = [None, {}]
        elif head:
            if head.group(2) != name or families[name] != [None, {}]:
                raise AssertionError(f"a type that is out of place: {line}")
            families[name][0] = head.group(3)
        else:
            sample = SAMPLE.fullmatch(line)
            if not sample or sample.group(1) != name or sample.group(2) in families[name][1]:
                raise AssertionError(f"{line!r} below {name}")
            families[name][1][sample.group(2) or ""] = float(sample.group(3))
    return families


def documented():
    """{metric: unit} of the manual's two tables of figures."""
    manual = subprocess.run([SLUICE, "docs"], capture_output=True, text=True, check=True).stdout
    tables = re.findall(r"\n## Figures counted[^\n]*\n\n(.*?)(?=\n\n)", manual + "\n", re.S)
    return dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", "\n".join(tables), re.M))


def job(session, command="python3 train.py", **metrics):
    return {"session": session, "pid": 40 + session, "command": command, "metrics": metrics}


class Case(status_test.Case):
    def exposed(self, status, *words):
        with Place() as place:
            place.answer_with(send_all(pieces(json.dumps(status).encode(), 4000)))
            done = sluice("status", "--prometheus", "--socket", place.path, *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return parsed(done.stdout)


class Format(Case):
    def test_every_metric_of_the_tables(self):
        figures = {name: number for number, name in enumerate(documented(), 1)}
        self.assertGreater(len(figures), 50)
        families = self.exposed({"pid": 9, "jobs": [job(1, **figures)]})
        for name, unit in documented().items():
            shown = {"ns": name[:-3] + "_seconds", "permille": name[:-9] + "_ratio"}.get(unit, name)
            falls = unit == "permille" or name == "stall_avoided_ns"
            family = families.pop("sluice_" + shown + ("" if falls else "_total"), None)
            if unit == "id":
                self.assertIsNone(family)
                continue
            self.assertEqual(family[0], "gauge" if falls else "counter", name)
            scale = {"ns": 1e9, "permille": 1e3}.get(unit, 1)
            labels = 'optimizer="9",session="1",pid="41",command="python3 train.py"'
            self.assertEqual(family[1], {labels: figures[name] / scale}, name)
        self.assertEqual({kind for kind, _ in families.values()}, {"gauge"})

    def test_prometheus_own_parser_reads_it(self):
        try:
            from prometheus_client.parser import text_string_to_metric_families
        except ImportError:
            self.skipTest("no prometheus_client")
        with Place() as place:
            status = {"pid": 9, "jobs": [job(1, 'a "\\', **dict.fromkeys(documented(), 5)), job(2, stall_ns=1)]}
            place.answer_with(send_all(pieces(json.dumps(status).encode(), 4000)))
            text = sluice("status", "--prometheus", "--socket", place.path).stdout
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        self.assertEqual(len(samples), len([li for li in text.splitlines() if not li.startswith("#")]))
        waited = [s for s in samples if s.name == "sluice_stall_seconds_total"]
        self.assertEqual([s.value for s in waited], [5e-9, 1e-9])
        self.assertEqual(waited[0].labels, {"optimizer": "9", "session": "1", "pid": "41", "command": 'a "\\'})

    def test_gauges(self):
        families = self.exposed({"pid": 9, "uptime_s": 12.5, "jobs": [job(1), job(2)],
                                 "budget": {"bytes": 1 << 30, "outstanding_bytes": 7},
                                 "stage": {"budget_bytes": 5, "used_bytes": 4, "copies": 3}})
        values = {name: samples.get('optimizer="9"') for name, (_, samples) in families.items()}
        for name, value in {"optimizer_uptime_seconds": 12.5, "jobs": 2, "jobs_omitted": 0, "stage_copies": 3,
                            "budget_bytes": 1 << 30, "budget_used_bytes": 7, "stage_used_bytes": 4}.items():
            self.assertEqual(values["sluice_" + name], value, name)
        self.assertEqual(families["sluice_optimizers"], ["gauge", {"": 1}])
        self.assertIn(f'protocol="{VERSION}"', next(iter(families["sluice_build_info"][1])))

    def test_large_counters_lose_no_digit(self):
        with Place() as place:
            status = {"jobs": [job(1, precached_bytes=2**63 + 1, stall_ns=10**18 + 1)]}
            place.answer_with(send_all(pieces(json.dumps(status).encode())))
            text = sluice("status", "--prometheus", "--socket", place.path).stdout
        self.assertIn(f"}} {2**63 + 1}\n", text)
        self.assertIn("} 1000000000.000000001\n", text)

    def test_labels_are_escaped_and_bounded(self):
        odd = 'sh -c "a\\b"\n\x1b' + "\u00e9" * 100
        families = self.exposed({"pid": 9, "jobs": [job(1, odd, read_errors=1)]})
        (labels, _), = families["sluice_read_errors_total"][1].items()
        command = re.search(r'command="(.*)"', labels).group(1)
        self.assertTrue(command.startswith('sh -c \\"a\\\\b\\"??\u00e9\u00e9'), command)
        self.assertLess(len(command.encode()), 90)

    def test_many_jobs(self):
        families = self.exposed({"pid": 9, "jobs": [job(n, read_errors=n) for n in range(150)]})
        self.assertEqual(len(families["sluice_read_errors_total"][1]), 100)
        self.assertEqual(families["sluice_jobs"][1], {'optimizer="9"': 150})
        self.assertEqual(families["sluice_jobs_omitted"][1], {'optimizer="9"': 50})

    def test_status_of_any_shape(self):
        for odd in ({}, {"jobs": None}, {"jobs": {}}, {"jobs": [1, None, [], {}]}, {"budget": [1, 2]},
                    {"jobs": [{"metrics": []}, {"metrics": {"stall_ns": -1, "read_errors": "x", "h_hits": 1.5}}]},
                    {"pid": "x", "budget": 3, "stage": None, "uptime_s": 1e300}, {"budget": {"bytes": {}}}):
            self.exposed(odd)


class Cron(Case):
    """A command that a timer runs: its exit status, what it prints, and the file it leaves."""

    def test_nothing_runs(self):
        with Place() as place:
            out = os.path.join(place.folder, "sluice.prom")
            for words in ((), ("--out", out)):
                done = sluice("status", "--prometheus", "--socket", place.path, *words)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(done.stdout, "")
            with open(out, encoding="ascii") as file:
                families = parsed(file.read())
        self.assertEqual(families["sluice_optimizers"][1], {"": 0})
        self.assertEqual(families["sluice_optimizers_silent"][1], {"": 0})
        self.assertNotIn("sluice_read_errors_total", families)

    def test_one_that_does_not_answer_is_counted(self):
        with Place() as place:
            place.answer_with(until_it_leaves)
            out = os.path.join(place.folder, "sluice.prom")
            self.complains(sluice("status", "--prometheus", "--out", out, "--socket", place.path), 1,
                           "does not answer")
            with open(out, encoding="ascii") as file:
                families = parsed(file.read())
        self.assertEqual(families["sluice_optimizers"][1], {"": 0})
        self.assertEqual(families["sluice_optimizers_silent"][1], {"": 1})

    def test_the_file_is_whole_at_every_moment(self):
        with Place() as place:
            out = os.path.join(place.folder, "sluice.prom")
            seen, written = [], threading.Event()

            def read():
                while not written.is_set():
                    if os.path.exists(out):
                        with open(out, encoding="ascii") as file:
                            seen.append(file.read())
            reader = threading.Thread(target=read)
            reader.start()
            try:
                inodes = set()
                for _ in range(20):
                    done = sluice("status", "--prometheus", "--out", out, "--socket", place.path)
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
                    inodes.add(os.stat(out).st_ino)
                self.assertTrue(wait_for(lambda: seen, 20))
            finally:
                written.set()
                reader.join()
            for text in set(seen):
                self.assertIn("sluice_optimizers_silent", parsed(text))
            self.assertGreater(len(inodes), 1, "it was written in place")
            self.assertEqual(os.listdir(place.folder), ["sluice.prom"])
            hidden = os.umask(0)
            os.umask(hidden)
            self.assertEqual(stat.S_IMODE(os.stat(out).st_mode), 0o666 & ~hidden, "another user reads it")

    def test_a_file_that_cannot_be_written(self):
        with Place() as place:
            for out, part in ((place.folder, "a folder"), (place.folder + "/none/x.prom", "No such file")):
                self.complains(sluice("status", "--prometheus", "--out", out, "--socket", place.path), 1, part)
        self.complains(sluice("status", "--prometheus", "--json"), 2)
        self.complains(sluice("status", "--prometheus", "--watch"), 2)
        self.complains(sluice("status", "--out", place.folder), 2)

    @unittest.skipUnless(os.geteuid() == 0, "only root can run programs as a user without optimizers")
    def test_optimizers_of_all_memory_cgroups(self):
        """A timer runs in a memory cgroup of its own, and so do jobs: each has another socket."""
        folder = f"/tmp/sluice-{USER}"
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder, 0o700)
        os.chown(folder, USER, USER)
        sockets = [f"{folder}/v{VERSION}-{number}-000000000000000{number}.sock" for number in (1, 2, 3)]
        children = []

        def become():
            os.setgroups([])
            os.setgid(USER)
            os.setuid(USER)

        def metrics():
            done = subprocess.run([SLUICE, "status", "--prometheus"], capture_output=True, text=True, check=False,
                                  timeout=60, preexec_fn=become, env={"PATH": os.environ["PATH"]})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return parsed(done.stdout)
        try:
            for socket in sockets:
                children.append(subprocess.Popen([OPTIMIZER, "--foreground", "--socket", socket], preexec_fn=become,
                                                 stderr=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]}))
                self.assertTrue(wait_for(lambda path=socket: os.path.exists(path), 20))
            children[2].kill()  # leaves its name behind
            children[2].wait()
            families = metrics()
            self.assertEqual(families["sluice_optimizers"][1], {"": 2})
            self.assertEqual(set(families["sluice_jobs"][1]), {f'optimizer="{c.pid}"' for c in children[:2]})
            os.chmod(folder, 0o755)
            done = subprocess.run([SLUICE, "status", "--prometheus"], capture_output=True, text=True, check=False,
                                  timeout=60, preexec_fn=become, env={"PATH": os.environ["PATH"]})
            self.complains(done, 1, "0755", "chmod 700")
            self.assertEqual(parsed(done.stdout)["sluice_optimizers_silent"][1], {"": 1})
        finally:
            for child in children:
                child.kill()
                child.wait()
            shutil.rmtree(folder, ignore_errors=True)
        self.assertEqual(metrics()["sluice_optimizers"][1], {"": 0})


class RealJob(Case):
    def test_a_job_has_its_series(self):
        with harness.Place() as place:
            path = os.path.join(place.work, "data", "file")
            with open(path, "wb") as file:
                file.write(os.urandom(8 << 20))
            waiting = "import sys; file = open(sys.argv[1], 'rb'); file.read(4 << 20); sys.stdin.read()"
            training = place.start(["/usr/bin/python3", "-c", waiting, path], stdin=subprocess.PIPE)
            try:
                self.assertTrue(wait_for(lambda: harness.processes_followed(place), 30))
                done = sluice("status", "--prometheus", "--socket", os.path.join(place.sockets, "s.sock"))
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                families = parsed(done.stdout)
                (labels, followed), = families["sluice_files_followed_total"][1].items()
                self.assertEqual(followed, 1)
                self.assertIn(f'pid="{training.pid}"', labels)
                self.assertIn('command="/usr/bin/python3 -c import sys', labels)
                for name, unit in documented().items():
                    if unit == "bytes":
                        self.assertEqual(len(families[f"sluice_{name}_total"][1]), 1)
            finally:
                training.communicate("")


if __name__ == "__main__":
    sys.exit(0 if unittest.main(exit=False, verbosity=0).result.wasSuccessful() else 1)
