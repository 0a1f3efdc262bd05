"""Jobs that leave the window in which copies are given, or strain it, beside an ordinary one: what share of
the link each gets."""
import importlib.util
import os
import random
import shutil
import subprocess
import sys

from bench.lib import jobs, staged
from bench.lib.bench import must_agree_on
from bench.lib.place import BUILD, TOP, Skipped

FILES, BYTES, CLASSES, EPOCHS = 2000, 100_000, 10, 3
IMAGE = (183, 182)  # of three bytes a pixel: about BYTES
# What each kind (bench/reader/load_window.py) reads.
FORMS = {"ordinary": "bin", "getitems": "bin", "mosaic": "bin", "lazy_pil": "ppm", "np_load": "npy",
         "mmap_mode": "npy", "thread_pool": "bin", "child": "bin", "h5py": "h5", "kept_open": "bin"}
PROVIDES = [f"window_{what}_{kind}" for what in ("share", "speedup") for kind in FORMS]
TORCH2 = os.path.join(BUILD, "venv", "bin", "python3")


def write(path, form, value):
    if form == "npy":
        import numpy
        numpy.save(path, numpy.frombuffer(value, dtype="u1"))
    elif form == "h5":
        import h5py
        with h5py.File(path, "w") as file:
            file["x"] = list(value)
    else:
        head = b"P6 %d %d 255\n" % IMAGE if form == "ppm" else b""
        with open(path, "wb") as file:
            file.write(head + value)


def data(bench, form):
    """A folder of classes of files of one form."""
    count = 128 if bench.request.small else FILES
    path = os.path.join(bench.request.data, f"window-{form}-{count}")
    if not os.path.exists(path):
        shutil.rmtree(path + ".partial", ignore_errors=True)
        draw = random.Random(1)
        size = IMAGE[0] * IMAGE[1] * 3 if form == "ppm" else BYTES
        for index in range(count):
            folder = os.path.join(path + ".partial", f"class-{index % CLASSES}")
            os.makedirs(folder, exist_ok=True)
            write(os.path.join(folder, f"{index:06d}.{form}"), form, draw.randbytes(size))
        os.rename(path + ".partial", path)
    return path


def job_of(kind):
    def job(folder, epochs):
        python = TORCH2 if kind == "getitems" else "/usr/bin/python3"
        return [python, os.path.join(TOP, "bench/reader/load_window.py"), folder, kind, str(epochs), "3"]
    return job


def missing(kind):
    """Why the kind cannot be measured here; None if it can."""
    if kind == "getitems" and not os.path.exists(TORCH2):
        return "there is no build/venv (scripts/setup torch2)"
    module = {"h5py": "h5py", "lazy_pil": "PIL"}.get(kind)
    if module is None:
        return None
    done = subprocess.run(["/usr/bin/python3", "-c", f"import {module}"], capture_output=True, check=False)
    return f"no {module}" if done.returncode else None


def run(bench):
    if any(importlib.util.find_spec(module) is None for module in ("numpy", "h5py")):
        raise Skipped(f"{sys.executable} has no NumPy or no h5py")
    kinds = [kind for kind in FORMS if bench.wants(f"window_share_{kind}", f"window_speedup_{kind}")]
    plain, ours = {kind: [] for kind in kinds}, {kind: [] for kind in kinds}
    memory = staged.SMALL_WINDOW if bench.request.small else staged.WINDOW
    for number in range(min(staged.ROUNDS, bench.request.rounds)):
        for kind in kinds:
            why = missing(kind)
            if why:
                bench.say(f"skipped window: {kind}: {why}")
                continue
            source, job = data(bench, FORMS[kind]), job_of(kind)
            with jobs.Sluice(memory=memory) as sluice:
                ours[kind].append(staged.epochs(bench, source, "cloud", EPOCHS, sluice, job))
            plain[kind].append(staged.epochs(bench, source, "cloud", 1, None, job))
            bench.say(f"round {number + 1}: {kind}: " + ", ".join(
                f"{one['seconds']:.2f} s" for one in ours[kind][-1])
                + f"; without {plain[kind][-1][0]['seconds']:.2f} s")
    for kind in kinds:
        if not plain[kind]:
            continue
        must_agree_on([passes[0]["digest"] for passes in ours[kind] + plain[kind]])
        bench.record(f"window_share_{kind}", [staged.rate(one[-1]) / staged.LINK for one in ours[kind]])
        bench.record(f"window_speedup_{kind}", [without[0]["seconds"] / one[-1]["seconds"]
                                                for without, one in zip(plain[kind], ours[kind])])
    bench.save("window", {"plain": plain, "sluice": ours})
