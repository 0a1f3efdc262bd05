#!/usr/bin/python3
# test: timeout=120
"""sluice-lmdb's reading commands against liblmdb and raw bytes, and on damaged files."""

import csv
import io
import json
import multiprocessing
import os
import random
import re
import struct
import subprocess
import sys
import zlib

import lmdb_testing
from lmdb_testing import bad, complaint, field, good, records, run, write, write_database

lmdb = lmdb_testing.lmdb
READS = (["stat"], ["layout"], ["layout", "--csv"], ["verify"], ["verify", "--datum"],
         ["ranges", "--ranks", "3"])


def mixed(folder, name="mixed", count=400, seed=1):
    """A database of small, large and empty values, written in no order, with some deleted."""
    draw = random.Random(seed)
    sizes = [0, 1, 40, 900, 2000, 4080, 4081, 9000, 70000]
    items = [(b"key%05d" % i, draw.randbytes(draw.choice(sizes))) for i in range(count)]
    draw.shuffle(items)
    path = f"{folder}/{name}"
    write_database(path, items)
    with lmdb.open(path, map_size=1 << 30) as env, env.begin(write=True) as txn:
        for key, _ in items[::7]:
            txn.delete(key)
        for key, value in items[1::11]:
            txn.put(key, value[: len(value) // 2])
    os.unlink(f"{path}/lock.mdb")
    return path


def data_of(path):
    with open(f"{path}/data.mdb", "rb") as file:
        return file.read()


def layout_of(path):
    """(key, offset, length) of each value."""
    rows = list(csv.reader(io.StringIO(good("layout", "--csv", path))))
    assert rows[0] == ["key", "offset", "length"]
    unescape = lambda t: re.sub(rb"\\x(..)", lambda m: bytes([int(m[1], 16)]), t.encode())
    return [(unescape(k), int(o), int(n)) for k, o, n in rows[1:]]


def test_layout_is_where_the_bytes_are(folder):
    path = mixed(folder)
    data = data_of(path)
    got = [(k, data[o : o + n]) for k, o, n in layout_of(path)]
    assert got == records(path) and len(got) > 300
    assert layout_of(path) == layout_of(f"{path}/data.mdb"), "the file itself is named"


def test_layout_of_awkward_keys(folder):
    keys = sorted({b'a,b', b'"', b"\\x41", bytes(range(1, 40)), b"\xff" * 511, struct.pack(">Q", 7)})
    write_database(f"{folder}/db", [(k, b"v" + k) for k in keys])
    assert [k for k, _, _ in layout_of(f"{folder}/db")] == keys


def test_how_sequential(folder):
    items = [(b"%04d" % i, bytes(5000 + i)) for i in range(300)]
    write_database(f"{folder}/straight", items)
    random.Random(1).shuffle(items)
    write_database(f"{folder}/shuffled", items)
    for path, low, high in ("straight", 95, 100), ("shuffled", 0, 10):
        text = good("layout", f"{folder}/{path}")
        assert low <= float(field(text, "sequential")) <= high, text
    # 64 records of one page and a half each, on two pages: 128 pages and those of the tree.
    write_database(f"{folder}/even", [(b"%04d" % i, bytes(6000)) for i in range(64)])
    text = good("layout", "--batch", 32, "--gpus", 2, f"{folder}/even")
    stripe = int(field(text, "stripe size"))
    assert stripe % 65536 == 0 and 64 * 8192 <= stripe <= 64 * 8192 + 2 * 65536, text


def test_stat_agrees_with_liblmdb(folder):
    path = mixed(folder)
    text = good("stat", path)
    with lmdb.open(path, readonly=True, lock=False) as env:
        stat, info = env.stat(), env.info()
    values = [len(v) for _, v in records(path)]
    wanted = {"entries": stat["entries"], "depth": stat["depth"], "map size": 1 << 30,
              "branch pages": stat["branch_pages"], "leaf pages": stat["leaf_pages"],
              "overflow pages": stat["overflow_pages"], "page size": stat["psize"],
              "transaction": info["last_txnid"], "file size": len(data_of(path)),
              "record min": min(values), "record max": max(values),
              "bytes of values": sum(values), "record mean": round(sum(values) / len(values), 1)}
    for name, value in wanted.items():
        assert float(field(text, name)) == value, (name, value, text)
    free = subprocess.run(["mdb_stat", "-nf", path], capture_output=True, text=True, check=False)
    if free.returncode == 0:
        assert f"Free pages: {field(text, 'free pages')}\n" in free.stdout
    assert os.listdir(path) == ["data.mdb"], "reading leaves no lock file"


def test_verify_gives_python_s_digests(folder):
    path = mixed(folder)
    text = good("verify", path)
    keys = values = 0
    for key, value in records(path):
        keys, values = zlib.crc32(key, keys), zlib.crc32(value, values)
    assert f"{keys:08x} of the keys, {values:08x} of the values" in text
    bad("verify", "--datum", path, saying="is not a Datum")
    one = f"{folder}/wrong-shape"
    write_database(one, [(b"k", bytes([8, 1, 16, 2, 24, 3, 34, 5]) + b"12345")])
    bad("verify", "--datum", one, saying="not of its shape")
    write_database(f"{folder}/no-image", [(b"k", bytes([34, 2]) + b"xx" + bytes([56, 1]))])
    bad("verify", "--datum", f"{folder}/no-image", saying="without a JPEG or PNG")


def test_empty_and_unsupported(folder):
    write_database(f"{folder}/empty", [])
    assert field(good("stat", f"{folder}/empty"), "entries") == "0"
    assert "sound" in good("verify", f"{folder}/empty")
    assert len(json.loads(good("ranges", "--ranks", 2, "--json", f"{folder}/empty"))) == 2
    bad("reorder", "--seed", 1, f"{folder}/empty", f"{folder}/x", saying="no records")
    with lmdb.open(f"{folder}/named", max_dbs=2, map_size=1 << 20) as env:
        env.open_db(b"inner")
    data = bytearray(data_of(mixed(folder)))
    for meta in (0, 4096):  # as if its main database had been opened with MDB_DUPSORT
        data[meta + 16 + 24 + 48 + 4] |= 4
    write(f"{folder}/dup/data.mdb", bytes(data))
    for words in READS:
        bad(*words, f"{folder}/named", saying="named databases")
    bad("verify", f"{folder}/dup", saying="MDB_DUPSORT")


def test_ranges_cover_every_key_once(folder):
    path = mixed(folder)
    data = records(path)
    keys = [k for k, _ in data]
    largest = max(len(v) + len(k) for k, v in data)
    total = sum(len(v) for _, v in data)
    for ranks in (1, 2, 7, len(keys), len(keys) + 5):
        for by in ("bytes", "count"):
            ranges = json.loads(good("ranges", "--ranks", ranks, "--by", by, "--json", path))
            assert [r["rank"] for r in ranges] == list(range(ranks))
            covered = []
            for entry in ranges:
                if entry["records"] == 0:
                    continue
                first, last = (bytes.fromhex(entry[f"{e}_key_hex"]) for e in ("first", "last"))
                mine = [k for k in keys if first <= k <= last]
                assert len(mine) == entry["records"] and keys[entry["first_record"]] == first
                assert sum(len(v) for k, v in data if first <= k <= last) == entry["bytes"]
                covered += mine
            assert covered == keys, (ranks, by)
            if by == "count":
                counts = [r["records"] for r in ranges]
                assert max(counts) - min(counts) <= 1, counts
            elif ranks == 7:
                slack = largest + 12 * len(keys) / ranks
                assert all(abs(r["bytes"] - total / ranks) <= slack for r in ranges), ranges
    text = good("ranges", "--ranks", 2, path).splitlines()
    assert len(text) == 3 and text[1].split()[3] == keys[0].decode()
    assert text[2].split()[4] == keys[-1].decode()


def read_replica(path, barrier, results):
    with lmdb.open(path, readonly=True, lock=True) as env, env.begin() as txn:
        barrier.wait(30)  # all of them in a transaction at once
        results.put(sum(zlib.crc32(v) for _, v in txn.cursor()))


def test_replicas_are_read_at_once(folder):
    path = mixed(folder)
    out = f"{folder}/out"
    good("replicas", "--count", 4, path, out)
    assert sorted(os.listdir(out)) == ["0", "1", "2", "3"] and os.listdir(path) == ["data.mdb"]
    locks = {os.stat(f"{out}/{i}/lock.mdb").st_ino for i in range(4)}
    assert len(locks) == 4
    for i in range(4):
        link = f"{out}/{i}/data.mdb"
        assert os.path.islink(link) and os.path.samefile(link, f"{path}/data.mdb")
    barrier, results = multiprocessing.Barrier(4), multiprocessing.Queue()
    readers = [multiprocessing.Process(target=read_replica, args=(f"{out}/{i}", barrier, results))
               for i in range(4)]
    for reader in readers:
        reader.start()
    sums = {results.get(timeout=30) for _ in readers}
    for reader in readers:
        reader.join(30)
    assert sums == {sum(zlib.crc32(v) for _, v in records(path))}
    bad("replicas", "--count", 2, f"{folder}/none", f"{folder}/out2", saying="cannot open")
    assert not os.path.exists(f"{folder}/out2") and not os.path.exists(f"{folder}/out2.partial")


def test_not_a_database(folder):
    draw = random.Random(2)
    meta = data_of(mixed(folder))[:8192]
    cases = [("is empty", b""), ("too few", b"x" * 100), ("not an LMDB file", bytes(20000)),
             ("not an LMDB file", draw.randbytes(100000)),
             ("data version", meta[:20] + b"\x09" + meta[21:]),
             ("page size", meta[:40] + b"\x07" + meta[41:]),
             ("is truncated", meta), ("is truncated", meta[:5000])]
    for number, (saying, data) in enumerate(cases):
        path = f"{folder}/{number}"
        write(f"{path}/data.mdb", data)
        for words in READS:
            bad(*words, path, saying=saying)
        bad("replicas", "--count", 2, path, f"{folder}/out", saying=saying)
        bad("reorder", "--seed", 1, path, f"{folder}/out", saying=saying)
    assert not os.path.exists(f"{folder}/out") and not os.path.exists(f"{folder}/out.partial")
    bad("stat", f"{folder}/none", saying="cannot open")
    os.mkfifo(f"{folder}/fifo")
    bad("stat", f"{folder}/fifo", saying="is not a file")


def test_truncated_anywhere(folder):
    data = data_of(mixed(folder))
    draw = random.Random(3)
    last = max(o + n for _, o, n in layout_of(f"{folder}/mixed"))
    for cut in [last - 1, last - 5000] + [draw.randrange(1, last) for _ in range(12)]:
        path = f"{folder}/cut"
        write(f"{path}/data.mdb", data[:cut])
        bad("verify", path)
        for words in READS:
            run(*words, path)  # asserts that no signal ends it


def tree_pages(data, page=4096):
    """Numbers of the branch and leaf pages that are in use, from a walk of our own."""
    metas = [struct.unpack_from("<QQ", data, at + 24 + 96 + 16) for at in (0, page)]
    newest = 0 if metas[0][1] > metas[1][1] else page
    found = []

    def visit(number):
        found.append(number)
        at = number * page
        flags, lower = struct.unpack_from("<HH", data, at + 10)
        if flags & 1:
            for i in range((lower - 16) // 2):
                node = at + struct.unpack_from("<H", data, at + 16 + 2 * i)[0]
                low, high, top = struct.unpack_from("<HHH", data, node)
                visit(low | high << 16 | top << 32)

    for tree in (24 + 16, 24 + 64):
        visit(struct.unpack_from("<Q", data, newest + tree + 40)[0])
    return found


def test_damaged_anywhere(folder):
    data = data_of(mixed(folder))
    pages = tree_pages(data)
    draw = random.Random(4)
    sound = good("verify", f"{folder}/mixed")
    path = f"{folder}/damaged"

    def verified(at, new):
        write(f"{path}/data.mdb", data[:at] + new + data[at + len(new) :])
        done = run("verify", path)
        if done.returncode:
            complaint(done)
        return done

    for number in pages:  # a page that is gone
        for new in (bytes(4096), b"\xff" * 4096, data[8192:12288] if number != 2 else bytes(4096)):
            assert verified(number * 4096, new).returncode == 1, number
    for _, offset, length in draw.sample([e for e in layout_of(f"{folder}/mixed") if e[2]], 20):
        at = offset + draw.randrange(length)  # a byte of a value
        done = verified(at, bytes([data[at] ^ 1]))
        assert done.returncode == 0 and done.stdout != sound
    for _ in range(120):  # a byte of what holds it together; a few are of no consequence
        at = draw.choice([0, 1, *pages]) * 4096 + draw.randrange(200)
        verified(at, draw.randbytes(1))
        for words in draw.sample(READS, 1):
            run(*words, path)


if __name__ == "__main__":
    sys.exit(lmdb_testing.main(sys.modules[__name__]))
