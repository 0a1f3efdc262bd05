"""Makes what the jobs of this folder read: make_data.py FOLDER. The same each time."""
import json
import os
import random
import sys

import numpy

FILES, CLASSES, SMALLEST, SPREAD = 96, 4, 3000, 4000
RECORDS, RECORD_BYTES = 120, 2000
ROWS, ROW_FLOATS = 256, 1024


def images(folder, draw):
    for number in range(FILES):
        above = os.path.join(folder, f"class-{number % CLASSES}")
        os.makedirs(above, exist_ok=True)
        with open(os.path.join(above, f"{number:03}.raw"), "wb") as file:
            file.write(draw.randbytes(SMALLEST + draw.randrange(SPREAD)))


def rows(path):
    """An array of which each row is a sample."""
    numpy.save(path, numpy.random.default_rng(3).random((ROWS, ROW_FLOATS), dtype=numpy.float32))


def records(folder, draw):
    try:
        import lmdb
    except ImportError:
        return
    with lmdb.open(folder, map_size=1 << 26) as environment:
        with environment.begin(write=True) as transaction:
            for number in range(RECORDS):
                transaction.put(b"%05d" % number, draw.randbytes(RECORD_BYTES + draw.randrange(3000)))


def lines(folder, draw):
    """Texts in JSON lines, in several files."""
    os.makedirs(folder)
    for part in range(4):
        with open(os.path.join(folder, f"part-{part}.jsonl"), "w", encoding="ascii") as file:
            for number in range(60):
                words = " ".join(f"w{draw.randrange(50)}" for _ in range(draw.randrange(4, 12)))
                file.write(json.dumps({"number": part * 60 + number, "text": words, "label": draw.randrange(2)}) + "\n")


def main():
    folder, draw = sys.argv[1], random.Random(11)
    images(os.path.join(folder, "images"), draw)
    rows(os.path.join(folder, "rows.npy"))
    records(os.path.join(folder, "records.lmdb"), draw)
    lines(os.path.join(folder, "lines"), draw)


if __name__ == "__main__":
    main()
