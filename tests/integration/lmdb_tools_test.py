#!/usr/bin/python3
# test: timeout=120
"""sluice-lmdb make and reorder: what they write, going on after a kill, and refusing bad input."""

import collections
import io
import os
import pty
import random
import re
import shutil
import signal
import subprocess
import sys

import lmdb_testing
from lmdb_testing import bad, good, np, parse_datum, pixels, records, run, sha, write, write_idx
from waiting import wait_for

try:
    from PIL import Image
except ImportError:
    print("needs python3-pil")
    sys.exit(77)


def some_idx(folder, count=20, height=9, width=7, seed=1, pack=False):
    draw = np.random.default_rng(seed)
    images = draw.integers(0, 256, (count, height, width), np.uint8)
    labels = draw.integers(0, 10, count, np.uint8)
    return images, labels, write_idx(folder, images, labels, pack)


def smooth(height, width, channels, seed=3):
    """A picture that JPEG takes well."""
    draw = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 100 * np.sin(x * f + p) * np.cos(y * f)
              for f, p in draw.uniform(0.05, 0.4, (channels, 2))]
    return np.stack(planes, 2).astype(np.uint8)


def encode(picture, kind, **options):
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def rgb(array):
    return Image.fromarray(array, "RGB")


def test_idx_becomes_datums(folder):
    for pack in (False, True):
        images, labels, paths = some_idx(f"{folder}/{pack}", pack=pack)
        out = f"{folder}/db{pack}"
        good("make", "--idx", *paths, out)
        got = records(out)
        assert [k for k, _ in got] == [b"%08d_images-idx-%d" % (i, i) for i in range(20)]
        for (_, value), image, label in zip(got, images, labels):
            datum = parse_datum(value)
            assert (pixels(datum) == image).all() and datum[5] == label and 7 not in datum
        assert os.listdir(out) == ["data.mdb"]


def test_count_and_min_bytes_repeat_in_turn(folder):
    images, _, paths = some_idx(folder)
    good("make", "--count", 45, "--idx", *paths, f"{folder}/count")
    got = records(f"{folder}/count")
    assert len(got) == 45 and len({k for k, _ in got}) == 45
    for i, (_, value) in enumerate(got):
        assert (pixels(parse_datum(value)) == images[i % 20]).all()
    good("make", "--min-bytes", "1M", "--idx", *paths, f"{folder}/bytes")
    sizes = [len(v) for _, v in records(f"{folder}/bytes")]
    assert sum(sizes) >= 1 << 20 > sum(sizes[:-1])
    good("make", "--count", 3, "--idx", *paths, f"{folder}/few")
    assert len(records(f"{folder}/few")) == 3


def test_resize_is_the_triangle_filter(folder):
    for height, width, to in ((28, 28, (256, 256)), (301, 200, (32, 17)), (40, 40, (40, 90))):
        images, _, paths = some_idx(f"{folder}/{height}", 3, height, width)
        out = f"{folder}/db{height}"
        good("make", "--resize", f"{to[0]}x{to[1]}", "--idx", *paths, out)
        for (_, value), image in zip(records(out), images):
            wanted = np.asarray(Image.fromarray(image).resize(to, Image.BILINEAR)).astype(int)
            assert abs(pixels(parse_datum(value))[0].astype(int) - wanted).max() <= 1


def test_folder_classes_and_codecs(folder):
    colour = smooth(40, 60, 3)
    grey = smooth(33, 21, 1)[:, :, 0]
    alpha = np.dstack([colour, np.full(colour.shape[:2], 7, np.uint8)])
    palette = rgb(colour).quantize(16)
    cmyk = rgb(colour).convert("CMYK")
    source = f"{folder}/images"
    # name: file, and the pixels (height, width, R G B) that must come out
    files = {
        "b/colour.jpg": (encode(rgb(colour), "JPEG", quality=90), None),
        "b/progressive.jpeg": (encode(rgb(colour), "JPEG", progressive=True), None),
        "b/deep/grey.JPG": (encode(Image.fromarray(grey), "JPEG"), None),
        "a/colour.png": (encode(rgb(colour), "PNG"), colour),
        "a/alpha.png": (encode(Image.fromarray(alpha, "RGBA"), "PNG"), colour),
        "a/grey.png": (encode(Image.fromarray(grey), "PNG"), np.dstack([grey] * 3)),
        "a/palette.PNG": (encode(palette, "PNG"), np.asarray(palette.convert("RGB"))),
        "c/is-a-jpeg.png": (encode(rgb(colour), "JPEG"), None),
        "c/cmyk.jpg": (encode(cmyk, "JPEG", quality=100), "about"),
    }
    for name, (data, _) in files.items():
        write(f"{source}/{name}", data)
    write(f"{source}/a/notes.txt", b"not an image")
    good("make", source, f"{folder}/decoded")
    good("make", "--encoded", source, f"{folder}/encoded")
    good("make", "--grey", "--resize", "8x6", source, f"{folder}/grey")
    order = sorted(files)
    assert [k[9:].decode() for k, _ in records(f"{folder}/decoded")] == order
    for name, (_, value) in zip(order, records(f"{folder}/decoded")):
        data, wanted = files[name]
        datum = parse_datum(value)
        got = pixels(datum)[::-1].transpose(1, 2, 0).astype(int)  # planes B, G, R
        if wanted is None or isinstance(wanted, str):
            limit = 0 if wanted is None else 12
            wanted = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        else:
            limit = 0
        assert got.shape == wanted.shape and abs(got - wanted).max() <= limit, name
        assert datum.get(5, 0) == "abc".index(name[0]), name
    for name, (_, value) in zip(order, records(f"{folder}/encoded")):
        datum = parse_datum(value)
        assert datum[4] == files[name][0] and datum[7] == 1 and 1 not in datum, name
    for _, value in records(f"{folder}/grey"):
        assert pixels(parse_datum(value)).shape == (1, 6, 8)
    for out in ("decoded", "encoded", "grey"):
        assert "every record a Datum" in good("verify", "--datum", f"{folder}/{out}")


def test_progress(folder):
    _, _, paths = some_idx(folder)
    words = ["make", "--count", "3000", "--idx", *paths]
    lines = run(*words, f"{folder}/lines").stderr
    assert re.fullmatch(r"(make: +\d+ %  \d+ records  .*\n)+", lines) and " 100 %" in lines
    main, terminal = pty.openpty()
    subprocess.run([lmdb_testing.TOOL, *words, f"{folder}/bar"], stderr=terminal, check=True,
                   stdout=subprocess.DEVNULL, timeout=60)
    os.close(terminal)
    shown = os.read(main, 65536)
    os.close(main)
    assert b"\rmake [" in shown and b"[" + b"#" * 24 + b"] 100 %  3000 records" in shown
    assert shown.endswith(b"\n")


def make_words(folder, out, count=3000):
    paths = [f"{folder}/images-idx", f"{folder}/labels-idx"]
    return ["make", "--idx", *paths, "--resize", "64x64", "--count", str(count), "--commit", "64",
            out]


def kill_when_grown(words, out, size):
    """Runs until data.mdb has `size` bytes, then SIGKILL. True if it was still at it: on a busy machine it is to be
    slower than what looks at it."""
    child = subprocess.Popen(["nice", "-n", "19", lmdb_testing.TOOL, *words], stderr=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL)
    data = f"{out}.partial/result/data.mdb"

    def grown():
        try:
            return child.poll() is not None or os.path.getsize(data) >= size
        except FileNotFoundError:
            return False
    assert wait_for(grown, 30), f"{data} does not grow"
    child.send_signal(signal.SIGKILL)
    return child.wait() == -signal.SIGKILL


def test_killed_and_run_again_gives_the_same_file(folder):
    some_idx(folder, 30)
    good(*make_words(folder, f"{folder}/whole"))
    whole = os.path.getsize(f"{folder}/whole/data.mdb")
    draw = random.Random(5)
    for attempt in range(3):
        out = f"{folder}/killed{attempt}"
        moments = [0, 1] + sorted(draw.randrange(whole) for _ in range(5))
        kills = sum(kill_when_grown(make_words(folder, out), out, at) for at in moments)
        assert kills >= 3, kills
        if not os.path.exists(out):
            done = run(*make_words(folder, out))
            assert done.returncode == 0, done.stderr
            assert "going on after" in done.stderr or kills < 3, done.stderr
        assert sha(out) == sha(f"{folder}/whole")
        assert not os.path.exists(out + ".partial")


def test_another_job_does_not_go_on(folder):
    some_idx(folder, 30)
    out = f"{folder}/out"
    assert kill_when_grown(make_words(folder, out), out, 1 << 20)
    bad(*make_words(folder, out, 2999), saying="begun with other input or options")
    some_idx(folder, 30, seed=2)
    bad(*make_words(folder, out), saying="begun with other input or options")
    some_idx(folder, 30)
    good(*make_words(folder, out))
    os.makedirs(f"{folder}/strange.partial/result")
    bad(*make_words(folder, f"{folder}/strange"), saying="not of this program's making")


def test_two_at_once(folder):
    some_idx(folder, 30)
    out = f"{folder}/out"
    child = subprocess.Popen([lmdb_testing.TOOL, *make_words(folder, out, 20000)],
                             stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    assert wait_for(lambda: os.path.exists(f"{out}.partial/result/data.mdb"), 30)
    child.send_signal(signal.SIGSTOP)
    bad(*make_words(folder, out, 20000), saying="being written by another process")
    child.kill()
    child.wait()


def test_what_exists_is_not_touched(folder):
    _, _, paths = some_idx(folder)
    good("make", "--idx", *paths, f"{folder}/db")
    before = sha(f"{folder}/db")
    bad("make", "--idx", *paths, "--count", 3, f"{folder}/db", saying="is not overwritten")
    bad("reorder", "--seed", 1, f"{folder}/db", f"{folder}/db/", saying="is not overwritten")
    bad("replicas", "--count", 2, f"{folder}/db", f"{folder}/db", saying="is not overwritten")
    os.makedirs(f"{folder}/empty")
    bad("make", "--idx", *paths, f"{folder}/empty", saying="is not overwritten")
    assert sha(f"{folder}/db") == before and os.listdir(f"{folder}/db") == ["data.mdb"]
    # What a run leaves that is killed right after its rename is removed by the next.
    write(f"{folder}/db.partial/job", b"any")
    bad("make", "--idx", *paths, f"{folder}/db", saying="is not overwritten")
    assert not [n for n in os.listdir(folder) if n.endswith(".partial")]


def test_bad_input_is_one_line_and_leaves_nothing(folder):
    _, _, (images, labels) = some_idx(f"{folder}/idx")
    _, _, (packed, _) = some_idx(f"{folder}/gz", pack=True)
    whole = open(images, "rb").read()
    gz = open(packed, "rb").read()
    out = f"{folder}/out"
    cases = [
        ("is truncated", write(f"{folder}/1", whole[:-1]), labels),
        ("is truncated", write(f"{folder}/2", gz[: len(gz) // 2]), labels),
        ("too short", write(f"{folder}/3", whole[:6]), labels),
        ("begins with 00000801", labels, labels),
        ("not an idx file of labels", images, images),
        ("not an idx file", write(f"{folder}/4", os.urandom(500)), labels),
        ("more data than", write(f"{folder}/5", whole + b"x"), labels),
        ("claims images of", write(f"{folder}/6", whole[:8] + b"\xff" * 8 + whole[16:]), labels),
        ("labels for", write_idx(f"{folder}/7", np.zeros((3, 2, 2), np.uint8),
                                 np.zeros(3, np.uint8))[0], labels),
        ("No such file", f"{folder}/none", labels),
        ("cannot", folder, labels),
        ("cannot read", write(f"{folder}/8", gz[:200] + os.urandom(400) + gz[600:]), labels),
    ]
    for saying, *paths in cases:
        bad("make", "--idx", *paths, out, saying=saying)

    jpeg = encode(rgb(smooth(64, 64, 3)), "JPEG", quality=95)
    png = encode(rgb(smooth(64, 64, 3)), "PNG")
    for number, (saying, data, name) in enumerate([
            ("neither JPEG nor PNG", b"hello", "x.jpg"), ("neither JPEG nor PNG", b"", "x.png"),
            ("damaged JPEG", jpeg[: len(jpeg) // 2], "x.jpg"), ("damaged JPEG", jpeg[:20], "x.jpg"),
            ("damaged PNG", png[: len(png) // 2], "x.png"), ("damaged PNG", png[:30], "x.png"),
            ("damaged JPEG", jpeg[:700] + bytes(200) + jpeg[900:-300], "x.jpg")]):
        source = f"{folder}/bad{number}"
        write(f"{source}/class/{name}", data)
        bad("make", source, out, saying=saying)
    os.makedirs(f"{folder}/nothing/here")
    bad("make", f"{folder}/nothing", out, saying="has no .jpg")
    bad("make", images, out, saying="not a folder")
    write(f"{folder}/mixed/x.png", png)
    write(f"{folder}/mixed/class/x.png", png)
    bad("make", f"{folder}/mixed", out, saying="both images and folders")
    bad("make", "--idx", images, labels, f"{folder}/no/where", saying="cannot make")
    assert not os.path.exists(out) and not os.path.exists(out + ".partial")


def test_bad_usage(folder):
    _, _, paths = some_idx(folder)
    out = f"{folder}/out"
    idx = ["--idx", *paths]
    for words in ([], ["frobnicate"], ["make"], ["stat"], ["ranges", "--ranks", 0, folder],
                  ["make", "--count", "-1", *idx, out], ["make", "--count", "many", *idx, out],
                  ["replicas", "--count", 0, folder, out], ["make", *idx, "--commit", 0, out],
                  ["make", *idx, "--count", 1, "--min-bytes", 1, out], ["reorder", folder, out]):
        bad(*words, status=2)
    for words in (["make", *idx, folder, out], ["make", out], ["make", "--grey", "--encoded", "a", out],
                  ["make", "--encoded", *idx, out], ["make", "--min-bytes", "lots", *idx, out],
                  *(["make", "--resize", size, *idx, out]
                    for size in ("0x5", "5x", "x", "5", "5x5x5", " 5x5", "-1x5", "99999x2"))):
        bad(*words, status=2)
    assert "Usage" in good("make", "--help") and not os.path.exists(out)


def test_full_disk(folder):
    small = f"{folder}/small"
    os.makedirs(small)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", small],
                      capture_output=True, check=False).returncode:
        print("      (test_full_disk needs to mount a tmpfs: left out)")
        return
    try:
        some_idx(folder, 30)
        out = f"{small}/db"
        bad(*make_words(folder, out), saying="No space left on device; what is complete stays")
        bad(*make_words(folder, out), saying="No space left on device")
        assert not os.path.exists(out)
        subprocess.run(["mount", "-o", "remount,size=200m", small], check=True)
        good(*make_words(folder, out))
        good(*make_words(folder, f"{folder}/elsewhere"))
        assert sha(out) == sha(f"{folder}/elsewhere")
    finally:
        subprocess.run(["umount", small], check=True)
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([lmdb_testing.TOOL, "layout", "--csv", f"{folder}/elsewhere"],
                              stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and "No space left" in lmdb_testing.complaint(done)


def test_reorder(folder):
    _, _, paths = some_idx(folder, 50)
    good("make", "--count", 400, "--resize", "70x70", "--idx", *paths, f"{folder}/in")
    for seed, out in ((1, "a"), (1, "again"), (2, "b")):
        good("reorder", "--seed", seed, f"{folder}/in", f"{folder}/{out}")
    before, after = records(f"{folder}/in"), records(f"{folder}/a")
    assert sha(f"{folder}/a") == sha(f"{folder}/again") != sha(f"{folder}/b")
    assert [k[:9] for k, _ in after] == [b"%08d_" % i for i in range(400)]
    named = [[(k[9:], v) for k, v in side] for side in (before, after)]
    assert collections.Counter(named[0]) == collections.Counter(named[1])
    moved = sum(x != y for x, y in zip(*named))
    assert moved > 350, moved
    share = lmdb_testing.field(good("layout", f"{folder}/a"), "sequential")
    assert float(share) > 95, share
    # Keys of another form stay whole; the longest key is cut.
    odd = [(b"00000001_x", b"1"), (b"dog", b"2"), (b"y" * 511, b"3")]
    lmdb_testing.write_database(f"{folder}/odd", odd)
    good("reorder", "--seed", 3, f"{folder}/odd", f"{folder}/odd2")
    keys = {v: k[9:] for k, v in records(f"{folder}/odd2")}
    assert keys == {b"1": b"x", b"2": b"dog", b"3": b"y" * 502}
    shutil.rmtree(f"{folder}/a")
    bad("reorder", "--seed", 1, f"{folder}/a", f"{folder}/c", saying="cannot open")


if __name__ == "__main__":
    sys.exit(lmdb_testing.main(sys.modules[__name__]))
