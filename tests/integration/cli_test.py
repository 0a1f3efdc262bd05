#!/usr/bin/python3
"""The sluice program: its options, exit statuses, documents, and talk with an optimizer."""
# test: timeout=120
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get("B", "build"))
WORK = os.environ.get("TEST_DIR") or tempfile.mkdtemp(prefix="sluice-cli-test-")
PREFIX = os.path.join(WORK, "prefix")
SLUICE = os.path.join(PREFIX, "bin", "sluice")
LIBRARY = os.path.join(PREFIX, "lib", "libsluice.so")


def environment(**changes):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_") and k != "LD_PRELOAD"}
    clean.update(changes)
    return clean


def sluice(*words, program=SLUICE, **changes):
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=30,
                          env=environment(**changes), check=False)


def seen_by(*words, **changes):
    """The environment of a command under `sluice run`."""
    done = sluice("run", *words, "--", "env", **changes)
    assert done.returncode == 0, done.stderr
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    del seen["SLUICE_JOB"]  # names this run
    return seen


def write(name, content, mode=0o644):
    path = os.path.join(WORK, name)
    with open(path, "wb") as out:
        out.write(content if isinstance(content, bytes) else content.encode())
    os.chmod(path, mode)
    return path


class Case(unittest.TestCase):
    def fails(self, done, status, *parts):
        """One line on stderr that holds all of `parts`, nothing on stdout."""
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Asluice: [^\n]+\n\Z")
        for part in parts:
            self.assertIn(part, done.stderr)


class Options(Case):
    def test_bad_values_are_named_and_end_with_2(self):
        reason = "is not a size such as 50M"
        self.fails(sluice("run", "--size", "fifty", "--", "true"), 2, "--size", "fifty", reason)
        self.fails(sluice("run", "--size=fifty", "--", "true"), 2, "--size", "fifty", reason)
        self.fails(sluice("run", "true", SLUICE_SIZE="fifty"), 2, "SLUICE_SIZE=fifty", reason)
        config = write("bad-value.toml", 'prefetch = true\nsize = "fifty"\n')
        self.fails(sluice("run", "--config", config, "true"), 2, config + ":2", "fifty", reason)
        self.fails(sluice("run", "--threshold", "0", "true"), 2, "--threshold 0", "1 to 100")
        self.fails(sluice("run", "--checkpoint", "cells", "true"), 2, "cells", "observe")
        self.fails(sluice("run", "--prefetch=maybe", "true"), 2, "maybe", "neither on nor off")
        self.fails(sluice("run", "--size", "", "--", "true"), 2, "--size ''", reason)
        self.fails(sluice("run", "--report", "a\nb", "true"), 2, "line break")
        self.fails(sluice("run", "--socket", "s.sock", "true"), 2, "--socket", "absolute")
        self.fails(sluice("run", "true", SLUICE_SOCKET="/" + "x" * 107), 2, "107 bytes")

    def test_three_spellings_and_their_precedence(self):
        config = write("three.toml", 'size = "1M"\nthreshold = 10\nprefetch = false\n'
                       'dataset = ["/a", "/b c"]\nmemory = 2097152\n')
        self.assertEqual(seen_by("--size", "3M")["SLUICE_SIZE"], "3M")
        self.assertEqual(seen_by(SLUICE_SIZE="2M")["SLUICE_SIZE"], "2M")
        from_file = seen_by("--config", config)
        self.assertEqual(from_file["SLUICE_SIZE"], "1M")
        self.assertEqual(from_file["SLUICE_THRESHOLD"], "10")
        self.assertEqual(from_file["SLUICE_PREFETCH"], "off")
        self.assertEqual(from_file["SLUICE_DATASET"], "/a:/b c")
        self.assertEqual(from_file["SLUICE_MEMORY"], "2097152")
        self.assertNotIn("SLUICE_CONFIG", from_file)
        self.assertEqual(seen_by(SLUICE_CONFIG=config), {**from_file, **seen_by(SLUICE_CONFIG=config)})
        mixed = seen_by("--size", "3M", SLUICE_CONFIG=config, SLUICE_SIZE="2M", SLUICE_THRESHOLD="20")
        self.assertEqual((mixed["SLUICE_SIZE"], mixed["SLUICE_THRESHOLD"]), ("3M", "20"))
        self.assertEqual(mixed["SLUICE_PREFETCH"], "off")
        # A bad value that is overruled does no harm; an empty variable is unset.
        self.assertEqual(seen_by("--size", "3M", SLUICE_SIZE="fifty")["SLUICE_SIZE"], "3M")
        self.assertEqual(seen_by("--config", config, SLUICE_SIZE="")["SLUICE_SIZE"], "1M")
        self.assertNotIn("SLUICE_REPORT", seen_by("--report", "", SLUICE_REPORT="/x"))
        other = write("other.toml", 'size = "9M"\n')
        self.assertEqual(seen_by("--config", other, SLUICE_CONFIG=config)["SLUICE_SIZE"], "9M")

    def test_every_option_of_the_manual_is_a_flag(self):
        manual = sluice("docs").stdout
        rows = re.findall(r"^\| `--([a-z-]+)` \| `(SLUICE_[A-Z_]+)` \|", manual, re.M)
        self.assertGreaterEqual(len(rows), 16)
        text = sluice("run", "--help-all").stdout
        for flag, variable in rows:
            self.assertIn(f"--{flag} ", text)
            self.assertIn(variable, text)

    def test_readme_has_the_options_of_help(self):
        with open(os.path.join(TOP, "README.md"), encoding="utf-8") as readme:
            documented = set(re.findall(r"^\| `(SLUICE_[A-Z_]+)` \|", readme.read(), re.M))
        self.assertEqual(documented, set(re.findall(r"SLUICE_[A-Z_]+", sluice("run", "--help").stdout)))

    def test_where_the_command_begins(self):
        def echo(*words):
            done = sluice("run", *words)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return done.stdout.strip()
        self.assertEqual(echo("--", "echo", "--size", "fifty"), "--size fifty")
        self.assertEqual(echo("echo", "--size", "fifty"), "--size fifty")
        self.assertEqual(echo("--size", "1M", "echo", "a", "--", "b"), "a -- b")
        self.assertEqual(echo("--", "sh", "-c", 'echo "$1"', "sh", "--help"), "--help")
        self.assertEqual(echo("--prefetch", "echo", "x"), "x")
        self.assertEqual(echo("--prefetch", "off", "sh", "-c", "echo $SLUICE_PREFETCH"), "off")
        self.assertEqual(echo("--off", "sh", "-c", "echo $SLUICE_OFF"), "on")
        self.assertEqual(echo("--dataset", "/a", "--dataset", "/b", "sh", "-c",
                              "echo $SLUICE_DATASET"), "/a:/b")
        self.assertEqual(echo("--size=1M", "--size", "2M", "sh", "-c", "echo $SLUICE_SIZE"), "2M")
        self.fails(sluice("run"), 2, "no command")
        self.fails(sluice("run", "--size", "1M", "--"), 2, "no command")
        self.fails(sluice("run", "--sizee", "1M", "true"), 2, "--sizee")
        self.fails(sluice("run", "--size"), 2, "--size")
        self.fails(sluice("run", "-x", "true"), 2, "-x")
        self.fails(sluice("walk"), 2, "no command walk")
        self.fails(sluice("walk", "--help"), 2, "no command walk")
        self.fails(sluice("statsu"), 2, "did you mean status?")
        self.fails(sluice("chunks", "lss"), 2)
        self.fails(sluice("run", "--memroy", "1M", "true"), 2, "did you mean --memory?")
        self.fails(sluice("run", "--memroy=1M", "true"), 2, "did you mean --memory?")
        self.fails(sluice("status", "--jsn"), 2, "did you mean --json?")
        self.fails(sluice("--verison"), 2, "did you mean --version?")

    def test_alone_it_prints_help(self):
        alone = sluice()
        self.assertEqual((alone.returncode, alone.stderr), (0, ""))
        self.assertEqual(alone.stdout, sluice("--help").stdout)

    def test_help_has_the_few_options_that_most_need_and_help_all_the_rest(self):
        few, every = (sluice("run", word).stdout for word in ("--help", "--help-all"))
        for text in few, every:
            self.assertIn("--memory", text)
            self.assertIn("SLUICE_IMPORTANCE", text)
            self.assertIn("--help-all", text)
        self.assertNotIn("--force-fallback", few)
        self.assertIn("--force-fallback", every)
        self.assertLess(len(few.splitlines()), 45)

    def test_unknown_variables_are_one_warning(self):
        done = sluice("run", "true", SLUICE_SZIE="1M", SLUICE_WHAT="x")
        self.fails(done, 0, "warning", "SLUICE_SZIE (did you mean SLUICE_SIZE?)", "SLUICE_WHAT")

    def test_config_errors(self):
        for content, part in (('szie = "1M"', "'szie'"), ("size = true", "size wants"),
                              ('size = "1M', ":1:"), ("dataset = [1]", "dataset wants"),
                              ('dataset = ["a:b"]', "colon"), ('config = "x"', "another"),
                              ("[size]", "size wants"), ("memory = 1.5", "memory wants"),
                              ("threshold = -1", "threshold = -1"), ('"a\\nb" = 1', "a?b"),
                              ('log = "a\\u0000b"', "NUL"), ("report = 1", "report wants")):
            config = write("error.toml", content + "\n")
            self.fails(sluice("run", "--config", config, "true"), 2, config, part)
            self.fails(sluice("run", "true", SLUICE_CONFIG=config), 2, config, part)
        self.fails(sluice("run", "--config", "/nonexistent", "true"), 2, "/nonexistent: No such")
        self.fails(sluice("run", "--config", WORK, "true"), 2, "directory")

    def test_the_library_reads_the_same_file(self):
        reader = ctypes.CDLL(os.path.join(BUILD, "libsluice_config.so")).sluice_config_read
        callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)

        def read(path, size=256):
            values = {}
            error = ctypes.create_string_buffer(b"untouched", 256)
            setter = callback(lambda _, flag, value: values.update({flag.decode(): value.decode()}))
            status = reader(path.encode(), setter, None, error, ctypes.c_size_t(size))
            return status, values, error.value.decode()
        good = write("good.toml", 'threshold = 10\nsize = "1M"\noff = true\ndataset = ["/a", "/b"]\n')
        status, values, _ = read(good)
        self.assertEqual(status, 0)
        self.assertEqual(values, {"dataset": "/a:/b", "size": "1M", "threshold": "10", "off": "on"})
        bad = write("half.toml", 'size = "1M"\nszie = 1\n')
        status, values, error = read(bad)
        self.assertEqual((status, values), (-1, {}))
        self.assertEqual(error, f"{bad}:2: no option is called 'szie'")
        self.assertEqual(read(bad, 10)[2], error[:9])
        self.assertEqual(read("/nonexistent")[0], -1)


class Running(Case):
    def test_exit_status_is_the_commands_own(self):
        for status in (0, 1, 2, 7, 77, 125, 255):
            self.assertEqual(sluice("run", "--", "sh", "-c", f"exit {status}").returncode, status)
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP):
            # A shell cannot be killed by what was ignored when it was started, as by nohup.
            before = signal.getsignal(number)
            if number != signal.SIGKILL:
                signal.signal(number, signal.SIG_DFL)
            done = sluice("run", "--", "sh", "-c", f"kill -{int(number)} $$")
            if number != signal.SIGKILL:
                signal.signal(number, before)
            self.assertEqual(done.returncode, -number)

    def test_commands_that_cannot_run_end_as_with_env(self):
        plain = write("plain", "not a program\n")
        for command in ("no-such-command", "/nonexistent/x", plain, WORK, plain + "/x"):
            done = sluice("run", "--", command)
            asked = subprocess.run(["env", command], capture_output=True, check=False)
            self.fails(done, asked.returncode, command)
            self.assertIn(done.returncode, (126, 127))

    def test_preload_is_first_absolute_and_there_once(self):
        self.assertEqual(seen_by()["LD_PRELOAD"], LIBRARY)
        self.assertEqual(seen_by(LD_PRELOAD="libm.so.6")["LD_PRELOAD"], LIBRARY + ":libm.so.6")
        preload = "libm.so.6:" + LIBRARY
        self.assertEqual(seen_by(LD_PRELOAD=preload)["LD_PRELOAD"], preload)
        nested = sluice("run", "--", SLUICE, "run", "--", "sh", "-c", "echo $LD_PRELOAD")
        self.assertEqual(nested.stdout.strip(), LIBRARY)

    def test_without_a_library_nothing_runs(self):
        alone = os.path.join(WORK, "alone")
        os.makedirs(alone, exist_ok=True)
        shutil.copy(SLUICE, alone)
        self.fails(sluice("run", "echo", "x", program=alone + "/sluice"), 125, "libsluice.so")
        spaced = os.path.join(WORK, "with space")
        shutil.copytree(PREFIX, spaced, dirs_exist_ok=True)
        self.fails(sluice("run", "echo", "x", program=spaced + "/bin/sluice"), 125, "space")

    def test_programs_that_it_cannot_enter(self):
        with open("/bin/true", "rb") as program:
            image = bytearray(program.read())
        # Without an interpreter segment (type 3) it is a static program.
        table, count = int.from_bytes(image[32:40], "little"), int.from_bytes(image[56:58], "little")
        for at in range(table, table + 56 * count, 56):
            if image[at] == 3:
                image[at] = 0
        static = write("static", bytes(image), 0o755)
        self.assertIn("statically linked", sluice("run", static).stderr)
        script = write("script", f"#!{static} -x\n", 0o755)
        self.assertIn("statically linked", sluice("run", script).stderr)
        self.assertEqual(sluice("run", "/bin/true").stderr, "")
        self.assertEqual(sluice("run", write("ok", "#!/bin/sh\n", 0o755)).stderr, "")
        if os.geteuid() == 0:
            setuid = shutil.copy("/bin/true", os.path.join(WORK, "setuid"))
            os.chown(setuid, 65534, 65534)
            os.chmod(setuid, 0o4755)
            self.fails(sluice("run", setuid), 0, "warning", "set-user-ID")


class Installed(Case):
    def test_install(self):
        script = os.path.join(TOP, "scripts", "install")
        for words in ([], [""], ["relative"]):
            done = subprocess.run([script, *words], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
        built = ("sluice", "sluice-optimizer", "sluice-lmdb", "libsluice.so", "libsluice_config.so")
        if not all(os.path.exists(os.path.join(BUILD, name)) for name in built):
            self.skipTest("not everything has been built")
        prefix = os.path.join(WORK, "installed")
        done = subprocess.run([script, prefix], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name in built:
            self.assertIn(f"{prefix}/{'lib' if name.endswith('.so') else 'bin'}/{name}\n", done.stdout)
        program = prefix + "/bin/sluice"
        ran = sluice("run", "--", "sh", "-c", "echo $LD_PRELOAD", program=program)
        self.assertEqual((ran.stdout, ran.stderr), (f"{prefix}/lib/libsluice.so\n", ""))
        report = json.loads(sluice("doctor", "--json", program=program).stdout)
        self.assertFalse(report["broken"])


class Documents(Case):
    def committed(self, name):
        with open(os.path.join(TOP, "docs", name), encoding="utf-8") as document:
            return document.read()

    def test_manual_is_what_the_tables_say(self):
        self.assertEqual(self.committed("configuration.md"), sluice("docs").stdout,
                         "mend with: build/sluice docs >docs/configuration.md")

    @unittest.skipUnless(shutil.which("man"), "no man")
    def test_manual_page_has_every_command_and_option(self):
        page = write("sluice.1", sluice("docs", "--man").stdout)
        shown = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, check=False,
                               env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "MANWIDTH": "100"})
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        text = re.sub("\x1b\\[[0-9;]*m|.\x08", "", shown.stdout)
        commands = re.findall(r"^  (\w+) {2,}", sluice("--help").stdout.partition("Subcommands:")[2], re.M)
        self.assertGreater(len(commands), 7)
        for command in commands:
            section = re.search(rf"^ +sluice {command}\n(.*?)(?=^ +sluice \w+\n|^\S)", text, re.M | re.S).group(1)
            options = sluice(command, "--help-all" if command == "run" else "--help").stdout
            for option in re.findall(r"^  (--[a-z-]+)", options, re.M):
                if option != "--help-all":
                    self.assertRegex(section, rf"(?m)^ +{option}\b", command)
        for part in ("NAME", "EXIT STATUS", "SLUICE_MEMORY", sluice("--version").stdout.split()[1]):
            self.assertIn(part, text)

    def test_version(self):
        done = sluice("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"\Asluice \d+\.\d+\.\d+ \(protocol \d+\)\n\Z")


def set_up():
    for name in ("sluice", "libsluice_config.so"):
        if not os.path.exists(os.path.join(BUILD, name)):
            print(f"{name} has not been built")
            sys.exit(1)
    shutil.rmtree(PREFIX, ignore_errors=True)
    for folder in ("bin", "lib"):
        os.makedirs(os.path.join(PREFIX, folder))
    shutil.copy(os.path.join(BUILD, "sluice"), SLUICE)
    # Any harmless library will do here; what libsluice.so does inside a command is tested elsewhere.
    for name in ("libsluice.so", "libsluice_config.so"):
        shutil.copy(os.path.join(BUILD, "libsluice_config.so"), os.path.join(PREFIX, "lib", name))
    write("prefix/bin/sluice-optimizer", "#!/bin/sh\n", 0o755)


if __name__ == "__main__":
    set_up()
    outcome = unittest.main(exit=False, verbosity=0)
    sys.exit(0 if outcome.result.wasSuccessful() else 1)
