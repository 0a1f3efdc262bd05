#!/usr/bin/python3
"""What `sluice doctor` finds of a machine and of paths."""
# test: timeout=120
import json
import os
import subprocess
import sys
import unittest

from cli_test import BUILD, LIBRARY, WORK, sluice, write, Case, set_up


class Doctor(Case):
    def test_build_folder(self):
        program = os.path.join(BUILD, "sluice")
        done = sluice("doctor", "--json", BUILD, program=program)
        report = json.loads(done.stdout)
        broken = [f for f in report["machine"] if f["level"] == "broken"]
        self.assertEqual((done.returncode, broken), (0, []))
        names = {finding["name"] for finding in report["machine"]}
        self.assertLessEqual({"kernel", "guard_regions", "cachestat", "pagemap_scan", "io_uring",
                              "max_map_count", "memlock", "cgroup_memory", "budget", "dev_shm",
                              "fuse", "library", "optimizer"}, names)
        path = {f["name"]: f for f in report["paths"][0]["findings"]}
        self.assertEqual(path["page_cache"]["level"], "ok", path["page_cache"])
        self.assertIn("local", path["mount"]["value"])
        text = sluice("doctor", BUILD, program=program).stdout
        for name in names | set(path):
            self.assertIn(name, text)

    def test_a_line_for_each_check_and_a_verdict(self):
        program = os.path.join(BUILD, "sluice")
        lines = sluice("doctor", program=program).stdout.splitlines()
        self.assertRegex(lines[-1], r"\ASluice works here[^.]*\.\Z")
        self.assertEqual(lines[-2], "")
        for line in lines[:-2]:
            self.assertRegex(line, r"\A(ok|note|warn|broken) +[a-z_]+ ")
        every = sluice("doctor", "--verbose", program=program).stdout
        self.assertGreater(len(every.splitlines()), 2 * len(lines))

    def test_a_socket_folder_of_a_wrong_mode_is_named_with_the_remedy(self):
        folder = os.path.join(WORK, "open-folder")
        os.mkdir(folder, 0o755)
        os.chmod(folder, 0o755)
        socket = os.path.join(folder, "s.sock")
        done = sluice("doctor", SLUICE_SOCKET=socket)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout.splitlines()[-1],
                         f"Sluice cannot work here: optimizer: .*0755.*chmod 700 {folder}")
        self.assertNotIn("emove", sluice("doctor", "--verbose", SLUICE_SOCKET=socket).stdout)
        self.fails(sluice("status", SLUICE_SOCKET=socket), 1, folder, f"chmod 700 {folder}")

    def test_what_is_broken_is_said(self):
        def level(finding, *words, **changes):
            done = sluice("doctor", "--json", *words, **changes)
            report = json.loads(done.stdout)
            found = report["machine"] + [f for p in report["paths"] for f in p["findings"]]
            self.assertEqual(done.returncode, int(report["broken"]))
            return next(f["level"] for f in found if f["name"] == finding)
        self.assertEqual(level("library"), "ok")
        os.rename(LIBRARY, LIBRARY + ".away")
        try:
            self.assertEqual(level("library"), "broken")
        finally:
            os.rename(LIBRARY + ".away", LIBRARY)
        self.assertEqual(level("path", "/nonexistent"), "broken")
        self.assertEqual(level("optimizer", SLUICE_SOCKET="/tmp/x.sock"), "broken")
        self.assertEqual(level("page_cache", "/dev/null"), "note")


    def test_mounts(self):
        slowfs = os.path.join(BUILD, "bench", "slowfs")
        source, point = os.path.join(WORK, "source"), os.path.join(WORK, "mount")
        for folder in (source, point):
            os.makedirs(folder, exist_ok=True)
        write("source/data", os.urandom(1 << 20))

        def page_cache(path):
            findings = json.loads(sluice("doctor", "--json", path).stdout)["paths"][0]["findings"]
            return next((f["level"] for f in findings if f["name"] == "page_cache"), None)
        self.assertEqual(page_cache(source), "ok")
        self.assertIsNone(page_cache("/dev/shm") if os.path.ismount("/dev/shm") else None)
        if not (os.path.exists(slowfs) and os.access("/dev/fuse", os.R_OK | os.W_OK)):
            self.skipTest("no slowfs or no FUSE here")
        for flag, level in (([], "ok"), (["--no-keep-cache"], "warn")):
            if subprocess.run([slowfs, *flag, source, point], check=False).returncode != 0:
                self.skipTest("slowfs does not mount here")
            try:
                self.assertEqual(page_cache(point), level, flag)
            finally:
                subprocess.run(["fusermount3", "-u", point], check=True)


if __name__ == "__main__":
    set_up()
    outcome = unittest.main(exit=False, verbosity=0)
    sys.exit(0 if outcome.result.wasSuccessful() else 1)
