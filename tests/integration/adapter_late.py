#!/usr/bin/python3
# test: timeout=200
"""Pythons that ignore PYTHONPATH or `site` (-E, -I, -S): the library has the adapter run when PyTorch
is loaded. The job's output is as without, and the order is published as in any other Python.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "adapters"))
import recorded  # noqa: E402
from recorded import claim, harness  # noqa: E402

COUNT = 50
# How PyTorch is loaded, and what a program sees of the interpreter before and after.
JOB = f"""
import sys
sys.path.append("/usr/lib/python3/dist-packages")  # for -S
import hashlib, os, threading
OWN = ("LD_PRELOAD", "SLUICE_LOG", "SLUICE_PYTHON", "RECORDER_FILE")

def seen():
    print(sys.path, sys.flags)
    print({{k: v for k, v in sorted(os.environ.items()) if k not in OWN}})
    print([m for m in sorted(sys.modules) if m.split(".")[0] != "sluice_torch"])
    print([p for p in sorted(sys.path_importer_cache) if "torch" not in p])
    print([f for f in sys.meta_path if f.__class__.__module__.startswith("sluice")])

seen()
if sys.argv[2] == "thread":
    loading = threading.Thread(target=lambda: __import__("torch"))
    loading.start()
    loading.join()
import torch
from torch.utils.data import DataLoader, Dataset
seen()

class Files(Dataset):
    def __init__(self, root):
        self.root = root
    def __len__(self):
        return {COUNT}
    def __getitem__(self, index):
        with open(os.path.join(self.root, f"{{index:03}}"), "rb") as file:
            return index, hashlib.sha256(file.read()).hexdigest()

def same(batch):
    return batch

torch.manual_seed(3)
loader = DataLoader(Files(sys.argv[1]), batch_size=8, shuffle=True, num_workers=2, collate_fn=same)
for epoch in range(2):
    print([index for batch in loader for index, _ in batch])
print(hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest())
print("dir", sorted(name for name in globals()))
"""


class Test:
    def __init__(self, folder):
        self.folder, self.runs = folder, 0
        self.data = os.path.join(folder, "data")
        os.mkdir(self.data)
        for number in range(COUNT):
            with open(os.path.join(self.data, f"{number:03}"), "wb") as out:
                out.write(b"%d" % number * 99)
        self.job = self.write("job.py", JOB)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as out:
            out.write(text)
        return path

    def under(self, arguments, **settings):
        """Under the library, with the recorder in front to record what is published; and its record."""
        self.runs += 1
        record = os.path.join(self.folder, f"{self.runs}.record")
        done = recorded.run(arguments, record, adapter=None, cwd=self.folder,
                        LD_PRELOAD=f"{recorded.RECORDER}:{harness.LIBRARY}", **settings)
        return done, record

    def same(self, flags, how, **settings):
        arguments = [*flags, self.job, self.data, how]
        plain = recorded.run(arguments, cwd=self.folder, **{k: v for k, v in settings.items()
                                                         if k != "SLUICE_PYTHON"})
        claim(plain.returncode == 0, plain.stderr)
        done, record = self.under(arguments, **settings)
        _, rest = recorded.notes(done)
        what = f"{flags} {how} {settings}"
        claim((done.returncode, rest) == (0, plain.stderr), f"{what}: {done.returncode}: {rest}")
        for one, other in zip(plain.stdout.splitlines(), done.stdout.splitlines()):
            claim(one == other, f"{what}: differs:\n{one[:2000]}\n{other[:2000]}")
        claim(done.stdout == plain.stdout, f"{what}: output is longer or shorter")
        return plain.stdout.splitlines()[-4:-2], record


def orders(test):
    """-E, -I, -S: what was published before the first sample is what the job printed."""
    for flags, how, settings in ((["-E"], "main", {}), (["-I"], "main", {}), (["-S"], "main", {}),
                                 (["-sE"], "main", {"PYTHONPATH": "/nowhere"}),
                                 (["-I"], "thread", {})):
        printed, record = test.same(flags, how, **settings)
        data = list(recorded.Record(record).datasets.values())
        claim(len(data) == 1 and data[0].samples == COUNT, f"{flags}: {len(data)} datasets")
        for epoch, line in enumerate(printed):
            claim(str(data[0].order[epoch]) == line, f"{flags} {how}: epoch {epoch} is not published")
            first, count, begun = data[0].published[epoch][0]
            claim((first, count) == (0, COUNT) and begun <= epoch * COUNT,
                  f"{flags}: epoch {epoch} published late: {data[0].published[epoch]}")
        claim(sorted(data[0].begun) == sorted(list(range(COUNT)) * 2), f"{flags}: brackets")


def left_alone(test):
    _, record = test.same(["-E"], "main", SLUICE_PYTHON="off")
    claim(not os.path.exists(record), "SLUICE_PYTHON=off, and published")
    # No PyTorch: nothing is run. Something else called torch: the finder waits, and nothing else.
    see = "import sys; print(sys.path, sorted(sys.modules), sys.meta_path)"
    plain = recorded.run(["-E", "-c", see], cwd=test.folder)
    done, _ = test.under(["-E", "-c", see])
    claim(plain.stdout.split(" [<")[0] == done.stdout.split(" [<")[0], done.stdout)
    test.write("broken/torch/_C.so", "this is no library")
    broken = ("import sys, ctypes\ntry:\n    ctypes.CDLL('./broken/torch/_C.so')\n"
              "except OSError as error:\n    print(error)\nprint(sys.path, sorted(sys.modules))")
    plain = recorded.run(["-E", "-c", broken], cwd=test.folder)
    done, _ = test.under(["-E", "-c", broken])
    claim(plain.stdout.splitlines()[0] == done.stdout.splitlines()[0], done.stdout + done.stderr)
    claim("sluice" not in done.stdout, done.stdout)


INTERRUPTED = """
import builtins, ctypes, sys
def stop(*_):
    raise %s
real, builtins.open = open, stop  # what the adapter's file is read with
came = "nothing"
try:
    try:
        ctypes.CDLL('./broken/torch/_C.so')
    except OSError:
        pass
    for i in range(1000):
        pass
except BaseException as error:
    came = type(error).__name__
builtins.open = real
print(came)
"""


def interrupted(test):
    """An interrupt that comes while the adapter is run is the job's, an error is not."""
    for raised, comes in (("KeyboardInterrupt", "KeyboardInterrupt"), ("RuntimeError", "nothing"),
                          ("SystemExit(3)", "SystemExit")):
        done, _ = test.under(["-E", "-c", INTERRUPTED % raised])
        claim(done.stdout == comes + "\n", f"{raised}: {done.stdout}{done.stderr}")
        own, _ = recorded.notes(done)
        claim(comes != "nothing" or len([line for line in own if "failed" in line]) == 1, f"{own}")


def main():
    recorded.skip_without_torch()
    with tempfile.TemporaryDirectory(prefix="sv-") as folder:
        test = Test(folder)
        orders(test)
        left_alone(test)
        interrupted(test)


if __name__ == "__main__":
    try:
        main()
    except recorded.Failure as failure:
        sys.exit(f"adapter_late: {failure}")
