#!/usr/bin/python3
# test: timeout=120
"""sluice chunks ls and verify: chunks as docs/packs.md has them, those that were made and packs of what was
fetched, written here without Sluice."""
import ctypes
import ctypes.util
import fcntl
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SLUICE = os.path.join(TOP, os.environ.get("B", "build"), "sluice")
WORK = os.environ.get("TEST_DIR") or tempfile.mkdtemp(prefix="sluice-packs-")
HEADER, ENTRY = struct.Struct("<IIQQQQII"), struct.Struct("<QQQQQQqqIIII")
XXHASH = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
XXHASH.XXH3_64bits.restype = ctypes.c_uint64
XXHASH.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def checksum(data):
    return XXHASH.XXH3_64bits(data, len(data))


def pack_of(samples):
    """The bytes of a pack; samples: (path, first byte in the file, contents)."""
    names, places = b"", {}
    for path, _, _ in samples:
        if path not in places:
            places[path] = len(names)
            names += path
    at = HEADER.size + ENTRY.size * len(samples) + len(names)
    index = b""
    for path, part, data in samples:
        index += ENTRY.pack(at, len(data), checksum(data), part, 77, part + len(data), 1700000000, -1, 5,
                            6, places[path], len(path))
        at += len(data)

    def header(own):
        return HEADER.pack(0x4b504c53, 1, own, at, len(index), len(names), len(samples), ENTRY.size)
    head = header(0) + index + names
    return header(checksum(head)) + index + names + b"".join(data for _, _, data in samples)


def some(number, count=20, size=3000):
    return pack_of([(b"/data/%d/%d" % (number, i), 0, bytes([(i + number) % 251]) * (size + i))
                    for i in range(count)])


def chunks(*words, **changes):
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith("SLUICE_") and k != "LD_PRELOAD"}
    return subprocess.run([SLUICE, "chunks", *words], capture_output=True, text=True, timeout=60,
                          env={**environment, **changes}, check=False, errors="backslashreplace")


class ChunkFiles(unittest.TestCase):
    def setUp(self):
        self.base = tempfile.mkdtemp(dir=WORK)
        self.kind = f"sluice-packs-{os.geteuid()}"
        self.folder = os.path.join(self.base, self.kind)
        os.mkdir(self.folder, 0o700)
        # As a running optimizer has it.
        self.lock = open(os.path.join(self.folder, "lock"), "wb")
        fcntl.flock(self.lock, fcntl.LOCK_EX)

    def tearDown(self):
        self.lock.close()
        shutil.rmtree(self.base)

    def put(self, number, content):
        path = os.path.join(self.folder, f"{number:08x}.pack")
        with open(path + ".part", "wb") as out:
            out.write(content)
        os.rename(path + ".part", path)
        return path

    def ends(self, done, status, *lines):
        """Whole lines of standard output, as patterns."""
        self.assertEqual((done.returncode, done.stderr), (status, ""), done)
        said = done.stdout.splitlines()
        self.assertEqual(len(said), len(lines), done.stdout)
        for line, pattern in zip(said, lines):
            self.assertRegex(line, r"\A" + pattern + r"\Z")

    def fails(self, done, status, part):
        self.assertEqual((done.returncode, done.stdout), (status, ""), done)
        self.assertRegex(done.stderr, r"\Asluice: [^\n]+\n\Z")
        self.assertIn(part, done.stderr)

    def test_good_ones(self):
        sizes = []
        for number in (0, 10, 0xffffffff):
            sizes.append(os.path.getsize(self.put(number, some(number % 200, 20 + len(sizes)))))
        parts = pack_of([(b"/data/whole\n", 0, b""), (b"/data/" + b"x" * 1017, 1 << 40, b"abc"),
                         (b"/data/whole\n", 9, b"12")])
        sizes.append(os.path.getsize(self.put(0x1f, parts)))
        self.ends(chunks("verify", self.base), 0, r"good chunks: 4, with 66 samples, \d.*; bad chunks: 0")
        self.ends(chunks("ls", self.base), 0, "chunk +samples +bytes",
                  f"{self.kind}/00000000.pack +20 +{sizes[0]}", f"{self.kind}/0000000a.pack +21 +{sizes[1]}",
                  f"{self.kind}/0000001f.pack +3 +{sizes[3]}", f"{self.kind}/ffffffff.pack +22 +{sizes[2]}",
                  f"all 4 +66 +{sum(sizes)}")

    def test_both_kinds(self):
        made = os.path.join(self.base, f"sluice-chunks-{os.geteuid()}")
        os.mkdir(made, 0o700)
        self.put(0, some(0))
        shutil.copy(os.path.join(self.folder, "00000000.pack"), os.path.join(made, "00000007.pack"))
        self.ends(chunks("verify", self.base), 0, r"good chunks: 2, with 40 samples, .*; bad chunks: 0")
        self.ends(chunks("ls", self.base), 0, "chunk +.*", r"sluice-chunks-\d+/00000007.pack +20 .*",
                  r"sluice-packs-\d+/00000000.pack +20 .*", "all 2 +40 .*")

    def test_where_the_folder_is_named(self):
        self.put(0, some(0))
        good = r"good chunks: 1, .*"
        self.ends(chunks("verify", SLUICE_CACHE_DIR=self.base), 0, good)
        config = os.path.join(self.base, "config.toml")
        with open(config, "w", encoding="utf-8") as out:
            out.write(f'cache-dir = "{self.base}"\n')
        self.ends(chunks("verify", SLUICE_CONFIG=config), 0, good)
        self.ends(chunks("verify", self.base, SLUICE_CACHE_DIR="/nonexistent"), 0, good)

    def test_damage_is_told_and_removed(self):
        self.put(0, some(0))
        whole = some(1)
        damaged = {1: (whole[:-5] + b"\0" + whole[-4:], "bytes 0 to 3019 of /data/1/19: damaged"),
                   2: (whole[:60] + bytes([whole[60] ^ 1]) + whole[61:], "its index is damaged"),
                   3: (whole[:-1], "not as long as it says"), 4: (b"", "cut short"),
                   5: (b"SLPK" + b"\2" + whole[5:], "a pack of another version"),
                   6: (b"\0" * len(whole), "not a pack"),
                   7: (pack_of([(b"relative", 0, b"x")]), "its index makes no sense")}
        for number, (content, _) in damaged.items():
            self.put(number, content)
        os.symlink("/etc/passwd", os.path.join(self.folder, "00000008.pack"))
        os.mkfifo(os.path.join(self.folder, "00000009.pack"))
        reasons = [why for _, why in damaged.values()] + ["not a regular file"] * 2
        lines = [f"{self.kind}/0000000{n}.pack: {re.escape(why)}" for n, why in enumerate(reasons, 1)]
        said = chunks("verify", self.base)
        self.ends(said, 1, *lines, r"good chunks: 1, with 20 samples, .*; bad chunks: 9")
        self.assertEqual(len(os.listdir(self.folder)), 11, "verify only looks")
        listed = chunks("ls", self.base)
        self.assertEqual(listed.returncode, 1)
        self.assertIn("not as long as it says", listed.stdout)
        with open(os.path.join(self.folder, "notes"), "wb"), \
                open(os.path.join(self.folder, "0000000a.pack.part"), "wb"):
            pass
        self.ends(chunks("verify", "--remove", self.base), 1, *(line + "; removed" for line in lines),
                  r"good chunks: 1, .*; bad chunks: 9, 9 removed")
        self.assertEqual(sorted(os.listdir(self.folder)),
                         ["00000000.pack", "0000000a.pack.part", "lock", "notes"])
        self.ends(chunks("verify", "--remove", self.base), 0, ".*; bad chunks: 0, 0 removed")

    def test_names_cannot_steer_a_terminal(self):
        bad = pack_of([(b"/data/\x1b[2J\nx", 0, b"content")])
        self.put(0, bad[:-1] + b"?")
        self.ends(chunks("verify", self.base), 1, self.kind + r"/00000000\.pack: bytes 0 to 7 of /data/\?\[2J\?x: damaged",
                  ".*")

    def test_folders_that_are_none(self):
        self.fails(chunks("verify"), 2, "SLUICE_CACHE_DIR")
        self.fails(chunks("ls"), 2, "SLUICE_CACHE_DIR")
        self.fails(chunks("verify", SLUICE_SIZE="many", SLUICE_CACHE_DIR=self.base), 2, "SLUICE_SIZE")
        self.fails(chunks(), 2, "subcommand")
        self.fails(chunks("verify", self.base, self.base), 2, self.base)
        self.fails(chunks("ls", "--remove", self.base), 2, "--remove")
        self.fails(chunks("verify", "/nonexistent"), 1, "/nonexistent")
        self.fails(chunks("verify", SLUICE), 1, "Not a directory")
        os.chmod(self.folder, stat.S_IRWXU | stat.S_IROTH)
        self.fails(chunks("verify", self.base), 1, "not this user's alone")
        os.chmod(self.folder, stat.S_IRWXU)
        self.ends(chunks("verify", self.base), 0, "good chunks: 0, with 0 samples, .*; bad chunks: 0")
        empty = os.path.join(self.base, "empty")
        os.mkdir(empty)
        self.ends(chunks("verify", empty), 0, "good chunks: 0, with 0 samples, .*; bad chunks: 0")

    def test_packs_that_come_and_go(self):
        """Beside an optimizer, whatever it removes and writes meanwhile is no damage."""
        content = some(3, 50, 20000)
        steady = 10
        for number in range(steady):
            self.put(number, content)
        over = threading.Event()

        def churn():
            number = steady
            while not over.is_set():
                path = self.put(number, content)
                number = number + 1 if number < 200 else steady
                if number % 3:
                    os.unlink(path)

        other = threading.Thread(target=churn)
        other.start()
        try:
            for _ in range(20):
                for word in ("verify", "ls"):
                    done = chunks(word, self.base)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        finally:
            over.set()
            other.join()


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=0)
    sys.exit(0 if outcome.result.wasSuccessful() else 1)
