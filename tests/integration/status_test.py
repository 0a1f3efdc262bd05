#!/usr/bin/python3
"""`sluice status` and `sluice stop` with an optimizer that is right, absent, slow, or hostile."""
# test: timeout=120
import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from waiting import wait_for

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get("B", "build"))
SLUICE = os.path.join(BUILD, "sluice")
OPTIMIZER = os.path.join(BUILD, "sluice-optimizer")
MAGIC, REFUSED, GONE, STATUS, STATUS_TEXT, STOP = 0x4C545343, 3, 7, 8, 9, 10
VERSION = int(subprocess.run([SLUICE, "--version"], capture_output=True, text=True, check=True)
              .stdout.split()[-1].rstrip(")"))
STRANGER = 65534

REPORT = {
    "version": VERSION, "pid": 4711, "uptime_s": 12.5, "budget": {"bytes": 1 << 30},
    "jobs": [{"session": 7, "pid": 42, "command": "python3 train.py", "processes": [42, 43],
              "files": [3], "metrics": {"stall_ns": 1500000000, "precached_bytes": 52428800}}],
    "files": [{"file": 3, "path": "/data/\x1b[2Jtrain.mdb", "bytes": 4 << 30, "state": "ready"}],
    "streams": [{"file": 3, "session": 7, "position": 100 << 20, "frontier": 150 << 20,
                 "rate_bytes_s": 300 << 20, "novelty": "a new field"}],
    "mounts": []}


def message(kind, body=b"", more=0, magic=MAGIC, version=VERSION):
    return struct.pack("<IIII", magic, version, kind, more) + body


def pieces(text, size=100):
    parts = [text[at:at + size] for at in range(0, len(text), size)]
    return [message(STATUS_TEXT, p, int(i + 1 < len(parts))) for i, p in enumerate(parts)]


class Place:
    """A socket folder, and in it whatever answers as the test wants."""

    def __init__(self, mode=0o700):
        self.folder = tempfile.mkdtemp(prefix="sv-status-", dir="/tmp")
        os.chmod(self.folder, mode)
        self.path = os.path.join(self.folder, "s.sock")
        self.asked = []
        self.threads = []

    def listen(self):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(self.path)
        listener.listen(8)
        return listener

    def answer_with(self, answer, times=1):
        """answer(connection, question) for each of `times` connections, then the socket is removed."""
        listener = self.listen()

        def work():
            for _ in range(times):
                connection, _ = listener.accept()
                with connection:
                    question = connection.recv(65536)
                    self.asked.append(question)
                    if question:
                        with contextlib.suppress(OSError):
                            answer(connection, question)
            listener.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)
        self.threads.append(threading.Thread(target=work, daemon=True))
        self.threads[-1].start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # The answering thread may unlink the socket between rmtree's look and its own unlink.
        shutil.rmtree(self.folder, ignore_errors=True)


def sluice(*words, **changes):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_")}
    return subprocess.run([SLUICE, *words], capture_output=True, text=True, timeout=30, check=False,
                          env={**clean, **changes})


def send_all(packets):
    def answer(connection, _):
        for packet in packets:
            connection.sendall(packet)
    return answer


def until_it_leaves(connection, _):
    connection.recv(1)


class Case(unittest.TestCase):
    def complains(self, done, status, *parts):
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertRegex(done.stderr, r"\Asluice: [^\n]+\n\Z")
        for part in parts:
            self.assertIn(part, done.stderr)


class Status(Case):
    def answered(self, packets, *words):
        with Place() as place:
            place.answer_with(send_all(packets))
            done = sluice("status", "--socket", place.path, *words)
            self.assertEqual(place.asked, [message(STATUS)])
            return done

    def test_tables(self):
        done = self.answered(pieces(json.dumps(REPORT).encode()))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for part in ("1.0 GiB", "python3 train.py", "42 43", "100 MiB", "150 MiB", "50.0 MiB",
                     "300 MiB/s", "novelty", "a new field", "stall 1.5 s", "4.0 GiB", "none"):
            self.assertIn(part, done.stdout)
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn("/data/?[2Jtrain.mdb", done.stdout)

    def test_json_is_passed_on_whole(self):
        done = self.answered(pieces(json.dumps(REPORT).encode(), 7), "--json")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(json.loads(done.stdout), REPORT)
        self.assertEqual(done.stdout.count("\n"), 1)

    def test_missing_and_odd_fields(self):
        for odd in ({}, {"jobs": []}, {"jobs": [{}], "streams": [1, None, "x"]}, {"files": {}},
                    {"streams": [{"position": "x", "frontier": -1}]}, {"jobs": None},
                    {"mounts": [{"device": "x", "bandwidth_bytes_s": 1e300, "off": [[1], {}]}]},
                    {"streams": [{"target": 2**64 - 1}], "deep": [[[[]]]], "budget": [{"a": {}}]}):
            done = self.answered(pieces(json.dumps(odd).encode()))
            self.assertEqual((done.returncode, done.stderr), (0, ""), odd)

    def test_nobody_there(self):
        with Place() as place:
            self.complains(sluice("status", "--socket", place.path), 1, "no optimizer is running")
            self.complains(sluice("status", SLUICE_SOCKET=place.path), 1, "no optimizer", place.path)
            place.listen().close()  # leaves the name behind
            self.complains(sluice("status", "--socket", place.path), 1, "no optimizer is running")
        self.complains(sluice("status", "--socket", place.path), 1, "no optimizer is running")

    def test_answers_that_make_no_sense(self):
        for packets, part in (
                ([b""], "closed"), ([b"x"], "wrong size"), ([b"\0" * 16], "not a Sluice answer"),
                ([message(STATUS_TEXT, b"{}", version=VERSION + 1)], f"protocol {VERSION + 1}"),
                ([message(GONE)], "another question"), ([message(STATUS_TEXT, b"{")], "no JSON"),
                ([message(STATUS_TEXT, b"[]")], "no JSON"), ([message(STATUS_TEXT)], "no JSON"),
                ([message(STATUS_TEXT, b"{", 1)], "closed"),
                ([message(STATUS_TEXT, b"x" * 20000)], "wrong size"),
                ([message(REFUSED, b"not\n\x1btoday")], "refuses: not??today")):
            self.complains(self.answered(packets), 1, part)

    def test_no_wait_without_an_end(self):
        with Place() as place:
            place.answer_with(until_it_leaves)
            begin = time.monotonic()
            self.complains(sluice("status", "--socket", place.path), 1, "does not answer")
            self.assertLess(time.monotonic() - begin, 6)
        with Place() as place, contextlib.closing(place.listen()) as listener:
            waiting = []  # no accept(): once its queue is full even connecting would wait
            while True:
                waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                waiting[-1].setblocking(False)
                if waiting[-1].connect_ex(place.path) != 0:
                    break
            begin = time.monotonic()
            self.complains(sluice("status", "--socket", place.path), 1, "does not answer")
            self.assertLess(time.monotonic() - begin, 6)
            listener.close()
            for one in waiting:
                one.close()

        def drip(connection, _):
            while True:
                connection.sendall(message(STATUS_TEXT, b" ", 1))
                time.sleep(0.01)
        with Place() as place:
            place.answer_with(drip)
            begin = time.monotonic()
            self.complains(sluice("status", "--socket", place.path), 1)
            self.assertLess(time.monotonic() - begin, 6)

    def test_folders_that_are_not_ours(self):
        for mode in (0o755, 0o777, 0o710):
            with Place(mode) as place:
                place.answer_with(send_all(pieces(b"{}")))
                self.complains(sluice("status", "--socket", place.path), 1, f"{mode:04o}", "refused")
                self.assertEqual(place.asked, [])
        with Place() as place:
            link = place.folder + ".link"
            os.symlink(place.folder, link)
            try:
                place.answer_with(send_all(pieces(b"{}")))
                self.complains(sluice("status", "--socket", link + "/s.sock"), 1, "not a folder")
            finally:
                os.unlink(link)
        self.complains(sluice("status", "--socket", "s.sock"), 1, "absolute")
        with Place() as place:
            long = os.path.join(place.folder, "x" * 100)
            self.complains(sluice("status", "--socket", long), 1, "too long")

    @unittest.skipUnless(os.geteuid() == 0, "only root can be another user")
    def test_strangers(self):
        with Place() as place:
            os.chown(place.folder, STRANGER, STRANGER)
            self.complains(sluice("status", "--socket", place.path), 1, f"user {STRANGER}")
        with Place() as place:
            read_end, write_end = os.pipe()
            child = os.fork()
            if child == 0:
                listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                listener.bind(place.path)
                os.setuid(STRANGER)
                listener.listen()
                os.write(write_end, b"x")
                connection, _ = listener.accept()
                heard = connection.recv(100)
                os._exit(1 if heard else 0)
            os.read(read_end, 1)
            done = sluice("status", "--socket", place.path)
            self.complains(done, 1, f"user {STRANGER} listens there")
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0,
                             "the stranger was asked something")

    def test_watch_ends_with_the_optimizer(self):
        with Place() as place:
            place.answer_with(send_all(pieces(json.dumps(REPORT).encode())), times=2)
            done = sluice("status", "--watch", "--json", "--socket", place.path)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual([json.loads(li) for li in done.stdout.splitlines()], [REPORT, REPORT])


class Stop(Case):
    def test_none_running_is_fine(self):
        with Place() as place:
            done = sluice("stop", "--socket", place.path)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("no optimizer is running", done.stdout)

    def test_ends_with_and_without_an_answer(self):
        for packets in ([message(GONE)], []):
            with Place() as place:
                place.answer_with(send_all(packets))
                done = sluice("stop", "--socket", place.path)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(place.asked, [message(STOP)])

    def test_one_that_does_not_end(self):
        for answer, part in ((send_all([message(REFUSED, b"busy")]), "busy"),
                             (send_all([message(GONE)]), "does not end"),
                             (until_it_leaves, "does not answer")):
            with Place() as place:
                place.answer_with(answer, times=2)  # the second never comes, so the socket stays
                begin = time.monotonic()
                self.complains(sluice("stop", "--socket", place.path), 1, part)
                self.assertLess(time.monotonic() - begin, 10)


@unittest.skipUnless(os.path.exists(OPTIMIZER), "sluice-optimizer has not been built")
class RealOptimizer(Case):
    def test_status_and_stop(self):
        with Place() as place:
            child = subprocess.Popen([OPTIMIZER, "--foreground", "--socket", place.path],
                                     stderr=subprocess.DEVNULL)
            try:
                self.assertTrue(wait_for(lambda: os.path.exists(place.path), 20))
                done = sluice("status", "--json", "--socket", place.path)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(json.loads(done.stdout)["pid"], child.pid)
                tables = sluice("status", "--socket", place.path)
                self.assertEqual((tables.returncode, tables.stderr), (0, ""))
                self.assertIn("streams", tables.stdout)
                stopped = sluice("stop", "--socket", place.path)
                self.assertEqual((stopped.returncode, stopped.stderr), (0, ""))
                self.assertEqual(child.wait(20), 0)
                self.assertFalse(os.path.exists(place.path))
            finally:
                child.kill()
                child.wait()


if __name__ == "__main__":
    sys.exit(0 if unittest.main(exit=False, verbosity=0).result.wasSuccessful() else 1)
