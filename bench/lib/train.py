"""Real training, end to end: Fashion-MNIST as one file an image on a busy network mount."""
import gzip
import os
import random
import shutil

from bench.lib import jobs
from bench.lib.bench import must_agree_on
from bench.lib.place import TOP, Skipped
from bench.lib.staged import LINK, PROFILES, ROUNDS, read_below
from bench.lib.storage import SlowMount

PROVIDES = ["train_fashion_speedup_busy"]
SOURCE = "/usr/share/datasets/fashion-mnist"  # Debian's dataset-fashion-mnist
IMAGES, SIDE, PADDED = 12000, 28, 50_000
HEADERS = 16, 8  # bytes before the images, and before the labels
EPOCHS = 2


def data(bench, padded=PADDED):
    """Folder of a folder a label, of files of one image each, padded to a photograph's size."""
    count = 500 if bench.request.small else IMAGES
    path = os.path.join(bench.request.data, f"fashion-{count}" + f"-{padded}" * (padded != PADDED))
    if os.path.exists(path):
        return path
    try:
        with gzip.open(os.path.join(SOURCE, "train-images-idx3-ubyte.gz")) as file:
            images = file.read(HEADERS[0] + count * SIDE * SIDE)[HEADERS[0]:]
        with gzip.open(os.path.join(SOURCE, "train-labels-idx1-ubyte.gz")) as file:
            labels = file.read(HEADERS[1] + count)[HEADERS[1]:]
    except FileNotFoundError:
        raise Skipped("dataset-fashion-mnist is not installed") from None
    shutil.rmtree(path + ".partial", ignore_errors=True)
    draw = random.Random(2)
    padding = draw.randbytes(padded)
    for index in range(count):
        folder = os.path.join(path + ".partial", str(labels[index]))
        os.makedirs(folder, exist_ok=True)
        pixels = images[index * SIDE * SIDE:(index + 1) * SIDE * SIDE]
        with open(os.path.join(folder, f"{index:06d}.img"), "wb") as file:
            file.write(pixels + padding[:padded - len(pixels) - draw.randrange(5000)])
    os.rename(path + ".partial", path)
    return path


def train(bench, source, sluice):
    read_below(source)
    options = ["--latency", PROFILES["busy"], "--bandwidth", str(LINK)]
    command = ["/usr/bin/python3", os.path.join(TOP, "bench/reader/train_files.py")]
    with SlowMount(bench, "train", source, *options) as mount:
        result = jobs.run([[*command, mount.folder, str(EPOCHS)]], sluice)
        if sluice:
            sluice.stop()
    return result


def run(bench):
    source = data(bench)
    plain, ours = [], []
    for number in range(min(ROUNDS, bench.request.rounds)):
        with jobs.Sluice(memory="64M") as sluice:
            ours.append(train(bench, source, sluice))
        plain.append(train(bench, source, None))
        bench.say(f"round {number + 1}: {ours[-1].wall:.1f} s, without {plain[-1].wall:.1f} s")
    # Every batch's loss, to the last digit.
    must_agree_on([one.reader["digest"] for one in plain + ours])
    bench.save("train", {"plain": [one.raw() for one in plain], "sluice": [one.raw() for one in ours]})
    bench.record("train_fashion_speedup_busy", [a.wall / b.wall for a, b in zip(plain, ours)])
