"""Makes the data of the jobs, each kind once and the same each time, in folders named for kind and count."""
import glob
import json
import os
import pickle
import random
import shutil
import sqlite3
import subprocess
import tarfile
import zipfile

from bench.lib.storage import call

WORDS = "sample needle epoch order stage page cell ring pack log reader writer cache batch shard".split()


def put(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def words(draw, size):
    text = []
    while size > 0:
        line = " ".join(draw.choices(WORDS, k=10)) + "\n"
        text.append(line)
        size -= len(line)
    return "".join(text).encode()


def hdf5(folder, count, draw):
    import h5py
    import numpy
    with h5py.File(os.path.join(folder, "samples.h5"), "w") as file:
        samples = file.create_dataset("samples", (count, 40000), "u1", chunks=(1, 40000))
        for number in range(count):
            samples[number] = numpy.frombuffer(draw.randbytes(40000), "u1")


def sqlite(folder, count, draw):
    with sqlite3.connect(os.path.join(folder, "samples.db")) as base:
        base.execute("create table samples (id integer primary key, content blob)")
        base.executemany("insert into samples values (?, ?)",
                         ((number, draw.randbytes(6000)) for number in range(count)))


def tar(folder, count, draw):
    for number in range(count):
        below = os.path.join(folder, "one")
        for sample in range(50):
            put(os.path.join(below, f"{number:03}-{sample:03}.bin"), draw.randbytes(20000))
        with tarfile.open(os.path.join(folder, f"{number:03}.tar"), "w") as shard:
            for name in sorted(os.listdir(below)):
                shard.add(os.path.join(below, name), name)
        shutil.rmtree(below)


def pickles(folder, count, draw):
    for number in range(count):
        content = {"number": number, "values": [draw.random() for _ in range(2000)]}
        put(os.path.join(folder, f"{number % 10}", f"{number:05}.pickle"), pickle.dumps(content))


def arrays(folder, count, draw):
    import numpy
    for number in range(count):
        path = os.path.join(folder, f"class-{number % 10}", f"{number:05}.npy")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        numpy.save(path, numpy.frombuffer(draw.randbytes(64 << 10), "u1").reshape(256, 256))


def memmap(folder, count, draw):
    import numpy
    rows = numpy.lib.format.open_memmap(os.path.join(folder, "rows.npy"), "w+", "float32", (count, 8192))
    for number in range(count):
        rows[number] = numpy.frombuffer(draw.randbytes(8192), "u1")
    rows.flush()


def tensors(folder, count, draw):
    import torch
    torch.manual_seed(draw.randrange(1 << 30))
    for number in range(count):
        torch.save({f"layer-{i}": torch.rand(256, 1024) for i in range(4)},
                   os.path.join(folder, f"{number:03}.pt"))


def weights(folder, count, draw):
    """Tensors of 4 MiB, with the header of safetensors and without one."""
    header = json.dumps({f"layers.{number}.weight": {"dtype": "U8", "shape": [1024, 4096], "data_offsets":
                                                     [number << 22, number + 1 << 22]} for number in range(count)})
    tensors = [draw.randbytes(4 << 20) for _ in range(count)]
    put(os.path.join(folder, "model.safetensors"),
        len(header).to_bytes(8, "little") + header.encode() + b"".join(tensors))
    put(os.path.join(folder, "model.bin"), b"".join(tensors))


def pictures(folder, count, draw):
    from PIL import Image
    for number in range(count):
        path = os.path.join(folder, f"class-{number % 4}", f"{number:05}.jpg")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Image.frombytes("RGB", (48, 48), draw.randbytes(48 * 48 * 3)).resize((240, 180)).save(path, quality=90)


def small(folder, count, draw):
    for number in range(count):
        put(os.path.join(folder, f"class-{number % 10}", f"{number:05}.bin"), draw.randbytes(4096))


def lmdb(folder, count, draw):
    import lmdb as library
    with library.open(folder, map_size=4 << 30, subdir=True) as base, base.begin(write=True) as transaction:
        for number in range(count):
            transaction.put(f"{number:08}".encode(), draw.randbytes(24000))


def csv(folder, count, draw):
    for number in range(count):
        rows = "".join(f"{row},{draw.random():.6f},{draw.randrange(1000)},{draw.choice(WORDS)}\n"
                       for row in range(8000))
        put(os.path.join(folder, f"{number:03}.csv"), ("id,value,level,word\n" + rows).encode())


def lines(folder, count, draw):
    for number in range(count):
        rows = "".join(json.dumps({"value": draw.randrange(1000), "text": " ".join(draw.choices(WORDS, k=12))}) +
                       "\n" for _ in range(3000))
        put(os.path.join(folder, f"{number:03}.jsonl"), rows.encode())


def zip_(folder, count, draw):
    with zipfile.ZipFile(os.path.join(folder, "all.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(count):
            archive.writestr(zipfile.ZipInfo(f"{number % 10}/{number:05}.bin"),
                             draw.randbytes(10000) + words(draw, 20000))


def text(folder, count, draw):
    for number in range(count):
        put(os.path.join(folder, f"part-{number % 12:02}", f"{number:05}.txt"),
            words(draw, draw.randrange(500, 40000)))


def repository(folder, count, draw):
    work = os.path.join(folder, "work")
    settings = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
                "GIT_AUTHOR_DATE": "2024-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2024-01-01T00:00:00Z"}
    call("git", "init", "-q", "-b", "main", work, env=settings)
    for step in range(3):
        for number in range(step, count, 3):
            put(os.path.join(work, f"part-{number % 12:02}", f"{number:05}.txt"), words(draw, 3000))
        call("git", "-C", work, "add", ".", env=settings)
        call("git", "-C", work, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", str(step),
             env=settings)
        if step == 1:
            call("git", "-C", work, "gc", "-q", env=settings)
    put(os.path.join(work, "part-00", "00000.txt"), b"changed\n")


def sources(folder, count, draw):
    for number in range(count):
        body = "".join(f"static inline int f_{number}_{i}(int x) {{ return x * {draw.randrange(99)} + {i}; }}\n"
                       for i in range(20))
        put(os.path.join(folder, "include", f"h{number:03}.h"), b"#pragma once\n" + body.encode())
    main = "".join(f'#include "h{number:03}.h"\n' for number in range(count))
    main += "#include <stdio.h>\nint main(int c, char** v) {\n  (void)v;\n"
    main += "".join(f"  c += f_{number}_{number % 20}(c);\n" for number in range(count))
    put(os.path.join(folder, "main.c"), (main + '  printf("%d", c);\n}\n').encode())


def table(folder, count, draw):
    """The table, and beside it an empty cluster that the job copies."""
    put(os.path.join(folder, "table.csv"), "".join(
        f"{row},{draw.choice(WORDS)}-{draw.randrange(500)},{draw.randrange(10**6)}\n"
        for row in range(count)).encode())


def redis(folder, count, draw):
    commands = "".join(f"SET key:{number} {draw.randbytes(60).hex()}\n" for number in range(count))
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", os.path.join(folder, "s"), "--dir",
                               folder, "--save", ""], stdout=subprocess.DEVNULL)
    try:
        call("sh", "-c", f'until redis-cli -s "{folder}/s" ping >/dev/null 2>&1; do sleep 0.05; done; '
                         f'redis-cli -s "{folder}/s" >/dev/null && redis-cli -s "{folder}/s" save',
             input=commands, timeout=60)
    finally:
        server.terminate()
        server.wait()


def documents(folder, count, draw):
    for number in range(count):
        content = {"total": number, "values": [draw.randrange(10**6) for _ in range(3000)]}
        put(os.path.join(folder, f"{number:05}.json"), json.dumps(content).encode())


def modules(folder, count, draw):
    for number in range(count):
        body = "".join(f"def f{i}(x):\n    return x + {draw.randrange(99)}\n\n" for i in range(30))
        put(os.path.join(folder, f"part{number % 8}", f"m{number:03}.py"), (body + "VALUE = f3(1)\n").encode())
    for part in range(8):
        put(os.path.join(folder, f"part{part}", "__init__.py"), b"")
    names = [f"part{number % 8}.m{number:03}" for number in range(count)]
    put(os.path.join(folder, "everything.py"), ("".join(f"import {name}\n" for name in names) + "TOTAL = " +
                                                " + ".join(f"{name}.VALUE" for name in names) + "\n").encode())
    call("/usr/bin/python3", "-m", "compileall", "-q", folder)


KINDS = {"hdf5": hdf5, "sqlite": sqlite, "tar": tar, "pickles": pickles, "arrays": arrays, "memmap": memmap,
         "tensors": tensors, "pictures": pictures, "small": small, "lmdb": lmdb, "csv": csv, "lines": lines,
         "zip": zip_, "text": text, "repository": repository, "sources": sources, "table": table,
         "redis": redis, "documents": documents, "modules": modules, "weights": weights}


def make(top, kind, count):
    """Folder of so much data of a kind, made unless it is there."""
    path = os.path.join(top, f"{kind}-{count}")
    if not os.path.exists(path):
        shutil.rmtree(path + ".partial", ignore_errors=True)
        os.makedirs(path + ".partial")
        KINDS[kind](path + ".partial", count, random.Random(f"{kind} {count}"))
        os.rename(path + ".partial", path)
    return path


def cluster(top, user):
    """An empty PostgreSQL cluster that belongs to `user`: what the server's job begins with."""
    path = os.path.join(top, "cluster")
    if not os.path.exists(path):
        shutil.rmtree(path + ".partial", ignore_errors=True)
        os.makedirs(path + ".partial", mode=0o700)
        shutil.chown(path + ".partial", user)
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        call(os.path.join(programs, "initdb"), "-D", path + ".partial", "-U", "harm", "-A", "trust", "-N", "--locale",
             "C.UTF-8", "--wal-segsize", "1", user=user, cwd="/")
        os.rename(path + ".partial", path)
    return path


def java(top, source):
    """Folder of the compiled class."""
    path = os.path.join(top, "classes")
    if not os.path.exists(os.path.join(path, "Read.class")):
        call("javac", "-d", path, source)
    return path
