#!/usr/bin/python3
"""What `make install` copies: programs run wherever the library loads (no newer C library than
2.34), without debug symbols, which lie beside them; every program has the one version."""
# test: timeout=120
import os
import re
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get("B", "build"))
WORK = os.environ.get("TEST_DIR") or tempfile.mkdtemp(prefix="sluice-portable-test-")
PREFIX = os.path.join(WORK, "prefix")
NEWEST_LIBC = (2, 34)
PROGRAMS = ("bin/sluice", "bin/sluice-optimizer", "bin/sluice-lmdb", "lib/libsluice.so",
            "lib/libsluice_config.so")


def output(*command):
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    return done.stdout.decode(errors="replace")


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        output(os.path.join(TOP, "scripts", "install"), PREFIX)

    def test_no_newer_c_library_than_the_preload_librarys(self):
        for name in PROGRAMS:
            symbols = output("objdump", "-T", os.path.join(PREFIX, name))
            needs = re.findall(r"\(GLIBC_(\d+)\.(\d+)[^)]*\) +(\S+)", symbols)
            self.assertTrue(needs, name)
            newer = [n for n in needs if (int(n[0]), int(n[1])) > NEWEST_LIBC]
            self.assertEqual(newer, [], name)

    def test_debug_symbols_are_beside_the_stripped_programs(self):
        for name in PROGRAMS:
            folder, file = os.path.split(os.path.join(PREFIX, name))
            sections = output("readelf", "-SW", os.path.join(folder, file))
            self.assertNotIn(".debug_info", sections, name)
            self.assertNotIn(".symtab", sections, name)
            self.assertIn(f"{file}.debug", output("readelf", "--string-dump=.gnu_debuglink",
                                                  os.path.join(folder, file)))
            symbols = os.path.join(folder, ".debug", file + ".debug")
            self.assertIn(".debug_info", output("readelf", "-SW", symbols))

    def test_tables_of_the_library_are_zero_at_first(self):
        """Every process maps it: what its tables hold at first is not read from the file."""
        data = output("size", os.path.join(PREFIX, "lib/libsluice.so")).splitlines()[1].split()[1]
        self.assertLess(int(data), 1 << 19)

    def test_every_program_says_the_one_version(self):
        with open(os.path.join(TOP, "protocol", "program_version.h"), encoding="utf-8") as header:
            version = re.search(r'kProgramVersion = "([^"]+)"', header.read()).group(1)
        with open(os.path.join(TOP, "CHANGELOG.md"), encoding="utf-8") as changes:
            self.assertEqual(re.search(r"^## (\S+)", changes.read(), re.M).group(1), version)
        installed = [os.path.join(PREFIX, name) for name in PROGRAMS if name.startswith("bin/")]
        for program in [*installed, os.path.join(BUILD, "bench", "slowfs")]:
            said = output(program, "--version")
            self.assertRegex(said, rf"\A{os.path.basename(program)} {re.escape(version)}\b[^\n]*\n\Z")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
