"""What the tests of sluice-lmdb share: running it, and data to run it on."""

import contextlib
import gzip
import hashlib
import os
import struct
import subprocess
import sys
import tempfile
import traceback

try:
    import lmdb
    import numpy as np
except ImportError as missing:
    print(f"needs {missing.name}: python3-lmdb, python3-numpy")
    sys.exit(77)

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(TOP, os.environ.get("B", "build"), "sluice-lmdb")


def run(*words, **options):
    """A finished sluice-lmdb; it must never be killed by a signal, nor hang."""
    done = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True, timeout=60,
                          check=False, stdin=subprocess.DEVNULL, **options)
    assert done.returncode >= 0, f"{words}: signal {-done.returncode}: {done.stderr}"
    return done


def good(*words):
    done = run(*words)
    assert done.returncode == 0, f"{words}: status {done.returncode}: {done.stderr}"
    return done.stdout


def complaint(done):
    """The one line of a run that failed, progress lines apart."""
    lines = [li for li in done.stderr.splitlines() if li.startswith("sluice-lmdb: ")]
    progress = (" records  ", ": going on after ")
    other = [li for li in done.stderr.splitlines()
             if li not in lines and not any(p in li for p in progress)]
    assert len(lines) == 1 and not other, f"not one line: {done.stderr!r}"
    return lines[0]


def bad(*words, saying="", status=1):
    done = run(*words)
    assert done.returncode == status, f"{words}: status {done.returncode}: {done.stderr}"
    line = complaint(done)
    assert saying in line, f"{words}: {saying!r} is not in {line!r}"
    return line


def field(text, name):
    """The first word after `name` in lines of "name   value"."""
    return next(li[len(name):].split()[0] for li in text.splitlines() if li.startswith(name + " "))


def parse_datum(data):
    """Fields of a serialised Datum by number; bytes as bytes."""
    fields = {}
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        value = varint()
        if tag & 7 == 2:
            at += value
            value = data[at - value : at]
        fields[tag >> 3] = value
    return fields


def pixels(fields):
    return np.frombuffer(fields[4], np.uint8).reshape(fields[1], fields[2], fields[3])


def records(path):
    """All (key, value) as liblmdb gives them."""
    subdir = os.path.isdir(path)
    with lmdb.open(path, readonly=True, lock=False, subdir=subdir) as env, env.begin() as txn:
        return [(bytes(k), bytes(v)) for k, v in txn.cursor()]


def sha(path):
    with open(os.path.join(path, "data.mdb"), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return path


def write_idx(folder, images, labels, pack=False):
    """Two idx files for uint8 arrays (n, height, width) and (n)."""
    paths = []
    for name, magic, array in (("images", 0x803, images), ("labels", 0x801, labels)):
        data = struct.pack(f">I{array.ndim}I", magic, *array.shape) + array.tobytes()
        paths.append(write(f"{folder}/{name}-idx" + (".gz" if pack else ""),
                           gzip.compress(data) if pack else data))
    return paths


def write_database(path, items, **options):
    """By liblmdb, in the order of `items`, in transactions of 50."""
    with lmdb.open(path, map_size=1 << 30, **options) as env:
        for first in range(0, len(items), 50):
            with env.begin(write=True) as txn:
                for key, value in items[first : first + 50]:
                    txn.put(key, value)


@contextlib.contextmanager
def scratch():
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_DIR")) as folder:
        yield folder


def main(module):
    """Runs all test_* of `module`; those named on the command line if any are."""
    assert os.path.exists(TOOL), f"{TOOL} is missing"
    failed = 0
    for name, test in list(vars(module).items()):
        if not name.startswith("test_") or (sys.argv[1:] and name not in sys.argv[1:]):
            continue
        try:
            with scratch() as folder:
                test(folder)
            print(f"ok    {name}", flush=True)
        except Exception:  # the next test is run all the same
            failed += 1
            traceback.print_exc(file=sys.stdout)
            print(f"FAIL  {name}", flush=True)
    return 1 if failed else 0
