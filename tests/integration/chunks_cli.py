#!/usr/bin/python3
# test: timeout=120
"""sluice chunks: what `make` has made is listed, verified and removed; it goes on where it was killed, and one line says
what cannot be done."""
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import harness
from chunk_files import ENTRY, HEADER

SLUICE = os.path.join(harness.BUILD, "sluice")
WORK = os.environ.get("TEST_DIR") or tempfile.mkdtemp(prefix="sluice-chunks-")
COUNT, EACH = 300, 32
CHUNKS = -(-COUNT // EACH)


def chunks(*words, start=False, **changes):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_") and k != "LD_PRELOAD"}
    options = {"env": {**environment, **changes}, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if start:
        return subprocess.Popen([SLUICE, "chunks", *words], **options)
    return subprocess.run([SLUICE, "chunks", *words], timeout=60, check=False, **options)


def members(path):
    """The paths and bytes of a pack's samples, in their order."""
    with open(path, "rb") as file:
        data = file.read()
    header = HEADER.unpack_from(data)
    entries = [ENTRY.unpack_from(data, HEADER.size + at * ENTRY.size) for at in range(header[6])]
    names = data[HEADER.size + header[4]:][:header[5]]
    return [(names[one[10]:][:one[11]].decode(), data[one[0]:][:one[1]]) for one in entries]


class Chunks(unittest.TestCase):
    def setUp(self):
        self.base = tempfile.mkdtemp(dir=WORK)
        self.data = os.path.join(self.base, "data")
        self.cache = os.path.join(self.base, "cache")
        self.folder = os.path.join(self.cache, f"sluice-chunks-{os.geteuid()}")
        os.mkdir(self.cache)
        for number in range(COUNT):
            path = os.path.join(self.data, str(number % 3), f"{number}.bin")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(b"%d " % number * (100 + number))
            os.utime(path, (1, number + 1))
        self.wait_until_settled()

    def tearDown(self):
        shutil.rmtree(self.base)

    def wait_until_settled(self):
        newest = max(os.stat(os.path.join(above, name)).st_ctime
                     for above, _, names in os.walk(self.data) for name in names)
        harness.until(lambda: time.time() > newest + 5, 30, "the files are old enough")

    def make(self, *words):
        return chunks("make", "--cache-dir", self.cache, "--samples", str(EACH), *words, self.data)

    def all_members(self):
        return [members(os.path.join(self.folder, name)) for name in sorted(os.listdir(self.folder))]

    def test_each_file_is_in_one_chunk_in_an_order_of_the_seed(self):
        made = self.make()
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        self.assertIn(f"{COUNT} files in {CHUNKS} chunks; {CHUNKS} made", made.stdout)
        found = self.all_members()
        self.assertEqual([len(one) for one in found], [EACH] * (CHUNKS - 1) + [COUNT - EACH * (CHUNKS - 1)])
        paths = [path for one in found for path, _ in one]
        self.assertEqual(len(set(paths)), COUNT)
        self.assertNotEqual(paths, sorted(paths))
        for one in found:
            for path, data in one:
                with open(path, "rb") as file:
                    self.assertEqual(file.read(), data)
        self.assertEqual(self.make().stdout.rsplit("; ", 1)[1], f"{CHUNKS} were there\n")
        self.make("--seed", "2")
        other = [path for one in self.all_members() for path, _ in one]
        self.assertEqual(sorted(other), sorted(paths))
        self.assertNotEqual(other, paths)

    def test_only_what_changed_is_made_again(self):
        self.make()
        changed = os.path.join(self.data, "0", "0.bin")
        with open(changed, "wb") as file:
            file.write(b"other")
        made = self.make()
        self.assertIn("1 made, ", made.stdout)
        self.assertIn((changed, b"other"), [one for chunk in self.all_members() for one in chunk])
        os.unlink(changed)
        self.assertEqual(self.make().returncode, 0)
        self.assertEqual(sum(map(len, self.all_members())), COUNT - 1)

    def test_fewer_chunks_leave_none_of_before(self):
        self.make("--samples", "10")
        self.make()
        self.assertEqual(len(os.listdir(self.folder)), CHUNKS)

    def test_ls_verify_and_rm(self):
        self.make()
        listed = chunks("ls", self.cache)
        self.assertEqual(listed.returncode, 0)
        self.assertIn(f"all {CHUNKS}", listed.stdout)
        self.assertEqual(chunks("verify", SLUICE_CACHE_DIR=self.cache).returncode, 0)
        with open(os.path.join(self.folder, "00000002.pack"), "r+b") as file:
            file.seek(-10, os.SEEK_END)
            file.write(b"?")
        verified = chunks("verify", self.cache)
        self.assertEqual(verified.returncode, 1)
        self.assertIn("00000002.pack", verified.stdout)
        self.assertIn("bad chunks: 1", verified.stdout)
        self.assertEqual(chunks("verify", "--remove", self.cache).returncode, 1)
        self.assertEqual(chunks("verify", self.cache).returncode, 0)
        self.assertIn("1 made", self.make().stdout)
        self.assertEqual(chunks("rm", self.cache).stdout, f"{CHUNKS} chunks removed\n")
        self.assertEqual(os.listdir(self.cache), [])

    def test_one_line_for_what_cannot_be_done(self):
        os.symlink("nowhere", os.path.join(self.data, "dangling"))
        os.mkfifo(os.path.join(self.data, "pipe"))
        empty = os.path.join(self.base, "empty")
        os.mkdir(empty)
        for words, status, said in ((("make", self.data), 2, "SLUICE_CACHE_DIR"),
                                    (("make", "--cache-dir", self.cache, empty), 1, "no files"),
                                    (("make", "--cache-dir", self.cache, os.path.join(self.base, "none")), 1, "none: No such"),
                                    (("make", "--cache-dir", os.path.join(self.base, "none"), self.data), 1, "none"),
                                    (("verify",), 2, "SLUICE_CACHE_DIR"),
                                    (("tune", empty), 1, "no file with anything in it"),
                                    (("tune", os.path.join(self.base, "none")), 1, "none: No such"),
                                    (("rm", empty), 1, "No such file")):
            done = chunks(*words)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(said, done.stderr)
        made = self.make()
        self.assertEqual(made.returncode, 1 if "dangling" in made.stderr else 0, made.stderr)
        self.assertEqual(sum(map(len, self.all_members())), COUNT)

    def test_a_killed_make_goes_on(self):
        for _ in range(20):
            job = chunks("make", "--cache-dir", self.cache, "--samples", "2", "--depth", "2", self.data, start=True)
            harness.until(lambda: job.poll() is not None or os.path.isdir(self.folder) and os.listdir(self.folder), 30,
                          "it began")
            job.send_signal(signal.SIGKILL)
            job.communicate(timeout=30)
        done = chunks("make", "--cache-dir", self.cache, "--samples", "2", self.data)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(chunks("verify", self.cache).returncode, 0)
        self.assertEqual(len({path for one in self.all_members() for path, _ in one}), COUNT)

    def test_a_full_disk(self):
        small = os.path.join(self.base, "small")
        os.mkdir(small)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], check=False).returncode != 0:
            self.skipTest("no mount can be made here")
        try:
            done = chunks("make", "--cache-dir", small, self.data)
            self.assertEqual(done.returncode, 1)
            self.assertIn("No space left", done.stderr)
            self.assertEqual(chunks("verify", small).returncode, 0)
        finally:
            subprocess.run(["umount", "-l", small], check=True)


if __name__ == "__main__":
    unittest.main()
