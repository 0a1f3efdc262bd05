"""Makes image files of random pixels: make_files.py FOLDER COUNT bmp. In FOLDER/bmp: images/, under random names;
numbered/ and classes/, the same files by number and by class; labels.csv, with a line for each of them."""
import os
import random
import struct
import sys

SIDE = 208  # pixels: 130 KB
CLASSES = 10


def bmp(draw):
    size = SIDE * SIDE * 3
    head = struct.pack("<2sIHHI", b"BM", 54 + size, 0, 0, 54)
    return head + struct.pack("<IiiHHIIiiII", 40, SIDE, SIDE, 1, 24, 0, size, 0, 0, 0, 0) + draw.randbytes(size)


def make(folder, count):
    draw = random.Random(7)
    for name in ("images", "numbered", *(f"classes/class-{label}" for label in range(CLASSES))):
        os.makedirs(os.path.join(folder, name))
    with open(os.path.join(folder, "labels.csv"), "w", encoding="utf-8") as table:
        print("file,label", file=table)
        for number in range(count):
            name, label = f"{draw.randbytes(6).hex()}.bmp", draw.randrange(CLASSES)
            path = os.path.join(folder, "images", name)
            with open(path, "wb") as file:
                file.write(bmp(draw))
            os.link(path, os.path.join(folder, "numbered", f"{number:06d}.bmp"))
            os.link(path, os.path.join(folder, "classes", f"class-{label}", name))
            print(f"{name},{label}", file=table)


make(os.path.join(sys.argv[1], sys.argv[3]), int(sys.argv[2]))
