#!/usr/bin/python3
"""`make dist`: the wheel and the Debian package, each installed into an empty root, used, and removed."""
# test: timeout=240
import base64
import contextlib
import csv
import functools
import gzip
import hashlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from waiting import wait_for

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = os.environ.get("TEST_DIR") or tempfile.mkdtemp(prefix="sluice-dist-test-")
OUT = os.path.join(WORK, "dist")
# Libraries that a wheel for manylinux may expect of every system (PEP 599 and later).
EVERYWHERE = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
EPOCH = "1700000000"


def run(*command, **options):
    environment = {"PATH": os.environ["PATH"], "HOME": WORK, "LC_ALL": "C.UTF-8", **options.pop("env", {})}
    done = subprocess.run(command, capture_output=True, check=False, timeout=120, cwd=WORK, env=environment, **options)
    done.stdout, done.stderr = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    return done


@functools.cache
def packages():
    """The folder with both packages, made once."""
    made = run(os.path.join(TOP, "scripts", "dist"), "--out", OUT,
               env={"SOURCE_DATE_EPOCH": EPOCH, "B": os.environ.get("B", "build")})
    if made.returncode:
        raise AssertionError(made.stderr)
    return OUT


def package(suffix):
    (name,) = [name for name in os.listdir(packages()) if name.endswith(suffix)]
    return os.path.join(OUT, name)


def version():
    with open(os.path.join(TOP, "protocol", "program_version.h"), encoding="utf-8") as header:
        return re.search(r'kProgramVersion = "([^"]+)"', header.read()).group(1)


def tree(*roots):
    """All names below the roots, folders too."""
    return sorted(os.path.join(parent, name) for root in roots
                  for parent, folders, files in os.walk(root) for name in folders + files)


class Case(unittest.TestCase):
    def succeeds(self, *command, **options):
        done = run(*command, **options)
        self.assertEqual(done.returncode, 0, f"{command}:\n{done.stdout}{done.stderr}")
        return done.stdout

    @staticmethod
    def stop(*sluice, env):
        """After a failure; else the sidecar is stopped and the program removed."""
        with contextlib.suppress(FileNotFoundError):
            run(*sluice, "stop", env=env)

    def works(self, where, *sluice):
        """An installed `sluice` runs a command with its own library and sidecar, and finds nothing missing."""
        folder = tempfile.mkdtemp(prefix="sv-dist-", dir="/tmp")
        self.addCleanup(shutil.rmtree, folder, True)
        data = os.path.join(folder, "data")
        with open(data, "wb") as file:
            file.write(os.urandom(1 << 20))
        settings = {"SLUICE_SOCKET": os.path.join(folder, "s.sock"), "SLUICE_DATASET": data, "SLUICE_LINGER": "60",
                    "SLUICE_PATIENCE": "8000"}
        self.addCleanup(self.stop, *sluice, env=settings)
        with open(data, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        self.assertIn(digest, self.succeeds(*sluice, "run", "--", "sha256sum", data, env=settings))
        loaded = self.succeeds(*sluice, "run", "--", "cat", "/proc/self/maps", env=settings)
        self.assertIn(f" {where}/lib/libsluice.so\n", loaded)
        status = self.succeeds(*sluice, "status", "--json", env=settings)
        (sidecar,) = re.findall(r'"pid":(\d+),"socket"', status)
        self.assertEqual(os.readlink(f"/proc/{sidecar}/exe"), f"{where}/bin/sluice-optimizer")
        self.assertNotIn("is missing", self.succeeds(*sluice, "doctor", env=settings))
        # A Python finds the PyTorch adapter, which removes its traces.
        seen = self.succeeds(*sluice, "run", "--", "/usr/bin/python3", "-c",
                             "import sys; print(sys.meta_path, sys.path)", env=settings)
        self.assertIn("sluice_torch", seen)
        self.assertNotIn(f"{where}/share", seen)
        self.succeeds(*sluice, "stop", env=settings)
        self.assertTrue(wait_for(lambda: not os.path.exists(f"/proc/{sidecar}"), 20))
        self.assertEqual(run(*sluice, "run", "--", "sh", "-c", "exit 7", env=settings).returncode, 7)


class Both(Case):
    def test_the_same_build_gives_the_same_bytes(self):
        again = os.path.join(WORK, "again")
        self.succeeds(os.path.join(TOP, "scripts", "dist"), "--out", again,
                      env={"SOURCE_DATE_EPOCH": EPOCH, "B": os.environ.get("B", "build"), "TMPDIR": WORK})
        self.assertEqual(sorted(os.listdir(again)), sorted(os.listdir(packages())))
        for name in os.listdir(again):
            with open(os.path.join(again, name), "rb") as one, open(os.path.join(OUT, name), "rb") as other:
                self.assertEqual(hashlib.sha256(one.read()).digest(), hashlib.sha256(other.read()).digest(), name)

    def test_one_version(self):
        self.assertRegex(os.path.basename(package(".whl")), rf"\Asluice-{re.escape(version())}-py3-none-")
        self.assertEqual(os.path.basename(package(".deb")), f"sluice_{version()}_amd64.deb")

    def test_notices_of_what_is_compiled_in(self):
        with zipfile.ZipFile(package(".whl")) as wheel:
            notices = wheel.read(f"sluice-{version()}.dist-info/NOTICES").decode()
        for name in ("libfmt-dev", "libspdlog-dev", "libcli11-dev", "nlohmann-json3-dev", "libtomlplusplus-dev",
                     "liburing-dev", "libstdc++-12-dev"):
            self.assertIn(f"\n{name}\n====", notices)


class Wheel(Case):
    def test_the_record_and_the_tag_are_true(self):
        name = os.path.basename(package(".whl"))
        newest = tuple(map(int, re.search(r"manylinux_(\d+)_(\d+)_x86_64", name).groups()))
        with zipfile.ZipFile(package(".whl")) as wheel:
            info = f"sluice-{version()}.dist-info"
            rows = list(csv.reader(io.StringIO(wheel.read(f"{info}/RECORD").decode())))
            self.assertEqual(sorted(row[0] for row in rows), sorted(wheel.namelist()))
            for path, digest, size in rows:
                data = wheel.read(path)
                if path == f"{info}/RECORD":
                    self.assertEqual((digest, size), ("", ""))
                    continue
                hashed = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, size), (f"sha256={hashed}", str(len(data))))
            about = wheel.read(f"{info}/WHEEL").decode()
            self.assertIn(f"\nTag: {name[:-4].split('-', 2)[2]}\n", about)
            self.assertIn("\nRoot-Is-Purelib: false\n", about)
            wheel.extractall(os.path.join(WORK, "wheel"))
        needed = set()
        for path in tree(os.path.join(WORK, "wheel")):
            if not re.search(r"/(bin/[^/]+|[^/]+\.so)$", path):
                continue
            found = self.succeeds("objdump", "-T", "-p", path)
            needed |= {tuple(map(int, n)) for n in re.findall(r"\(GLIBC_(\d+)\.(\d+)", found)}
            self.assertEqual(set(re.findall(r"NEEDED +(\S+)", found)) - EVERYWHERE, set(), path)
            self.assertNotIn("CXXABI", found)
        self.assertEqual(max(needed), newest)
        self.assertLessEqual(newest, (2, 34))

    def test_in_an_empty_environment(self):
        if importlib.util.find_spec("ensurepip") is None:
            self.skipTest("this python3 cannot make a virtual environment")
        folder = os.path.join(os.path.realpath(WORK), "venv")
        self.succeeds(sys.executable, "-m", "venv", folder)
        python = os.path.join(folder, "bin", "python3")
        before = tree(folder)
        pip = (python, "-m", "pip", "--disable-pip-version-check")
        self.succeeds(*pip, "install", "--no-index", package(".whl"))
        try:
            self.assertIn(f"sluice {version()} ", self.succeeds(os.path.join(folder, "bin/sluice"), "--version"))
            self.succeeds(*pip, "check")
            where = os.path.dirname(self.succeeds(python, "-c", "import sluice; print(sluice.__file__)").strip())
            self.assertTrue(where.startswith(folder + "/lib/"), where)
            self.works(where, os.path.join(folder, "bin", "sluice"))
            self.works(where, python, "-m", "sluice")
            available = "import sluice; print(sluice.available)"
            self.assertEqual(self.succeeds(python, "-c", available), "False\n")
            self.assertEqual(self.succeeds(python, "-m", "sluice", "run", "--", python, "-c", available,
                                           env={"SLUICE_SOCKET": WORK + "/none/s.sock"}), "True\n")
            # Exit status, streams and signals are the program's.
            self.assertEqual(run(python, "-m", "sluice", "nonsense").returncode, 2)
        finally:
            self.succeeds(*pip, "uninstall", "--yes", "sluice")
        # pip leaves the folders of data files, empty.
        left = [name for name in tree(folder) if name not in before and "__pycache__" not in name]
        self.assertEqual([name for name in left if not os.path.isdir(name)], [])
        self.assertEqual(os.path.exists(where), False)


class Debian(Case):
    def test_in_an_empty_root(self):
        root = os.path.join(os.path.realpath(WORK), "root")
        os.makedirs(os.path.join(root, "var/lib/dpkg"))
        dpkg = ("dpkg", f"--root={root}", "--force-not-root", "--force-script-chrootless", "--force-depends",
                "--log=/dev/null")
        before = tree(root)
        self.succeeds(*dpkg, "--install", package(".deb"))
        usr = os.path.join(root, "usr")
        try:
            self.assertEqual(self.succeeds(*dpkg, "--verify", "sluice"), "")
            self.dependencies_are_declared(usr)
            self.assertIn(f"sluice {version()} ", self.succeeds(os.path.join(usr, "bin/sluice"), "--version"))
            self.works(usr, os.path.join(usr, "bin/sluice"))
            modules = os.path.join(usr, "lib/python3/dist-packages")
            self.succeeds("env", f"PYTHONPATH={modules}", "/usr/bin/python3", "-m", "sluice", "--version")
            shown = run("man", "--warnings", "-l", os.path.join(usr, "share/man/man1/sluice.1.gz"))
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            self.assertIn(f"Sluice {version()}", shown.stdout)
            with gzip.open(os.path.join(usr, "share/doc/sluice/changelog.gz"), "rt") as changes:
                self.assertIn(f"## {version()}\n", changes.read())
            cached = [name for name in tree(usr) if name.endswith(".pyc")]
            self.assertNotEqual(cached, [], "no bytecode was left that the removal must find")
        finally:
            self.succeeds(*dpkg, "--purge", "sluice")
        left = [n for n in tree(root) if n not in before and not n.startswith(root + "/var/lib/dpkg")]
        self.assertEqual(left, [])

    def dependencies_are_declared(self, usr):
        """Every library that ldd finds outside the package is of a package that is depended on, and no other."""
        declared = self.succeeds("dpkg-deb", "--field", package(".deb"), "Depends")
        declared = set(re.findall(r"(?:^|, )([a-z0-9.+-]+)", declared))
        owners = set()
        for name in [os.path.join(usr, "bin", n) for n in os.listdir(usr + "/bin")] + [usr + "/lib/libsluice.so"]:
            direct = set(re.findall(r"NEEDED +(\S+)", self.succeeds("objdump", "-p", name)))
            found = self.succeeds("ldd", name)
            self.assertNotIn("not found", found)
            for soname, path in re.findall(r"^\t(\S+)(?: => (\S+))? \(", found, re.M):
                if os.path.basename(soname) in direct:
                    real = os.path.realpath(path or soname)
                    owner = run("dpkg-query", "--search", real).stdout or run(
                        "dpkg-query", "--search", real.removeprefix("/usr")).stdout
                    self.assertTrue(owner, real)
                    owners.add(owner.split(":")[0])
        self.assertEqual(declared, owners)


if __name__ == "__main__":
    missing = [tool for tool in ("dpkg-deb", "dpkg-shlibdeps", "man", "objdump") if not shutil.which(tool)]
    if missing:
        print("missing: " + ", ".join(missing))
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
