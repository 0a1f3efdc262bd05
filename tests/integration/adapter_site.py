#!/usr/bin/python3
# test: timeout=120
"""The adapter's sitecustomize makes way: what a Python program sees is as without it."""
import ast
import os
import re
import sys
import tempfile
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "adapters"))
import recorded  # noqa: E402
from recorded import claim  # noqa: E402

SITE = os.path.join(recorded.ADAPTER, "sitecustomize.py")
# All that a program can easily see. LD_PRELOAD and what the test itself sets differ by nature.
SEE = """
import os, sys
own = ("LD_PRELOAD", "SLUICE_LOG", "RECORDER_FILE", "RECORDER_ADAPTER")
print(sys.path)
print(sorted(sys.modules))
print({k: v for k, v in sorted(os.environ.items()) if k not in own})
print(sorted(sys.path_importer_cache))
print(getattr(sys.modules.get("sitecustomize"), "__file__", "no sitecustomize"))
print(getattr(sys.modules.get("sitecustomize"), "mine", None))
print([k for k in os.popen("env").read().split() if k.startswith(("PYTHON", "SLUICE_PY"))])
"""
FINDERS = "import sys, %s; print([f for f in sys.meta_path]); print(sorted(sys.modules))"
OTHERS = {
    "mine": "mine = 1\nimport sys\nprint('mine runs as', __name__, 'from', __file__)\n",
    "raises": "raise ValueError('mine is broken')\n",
    "misses": "import no_such_module_anywhere\n",
    "exits": "import sys\nsys.exit(7)\n",
    "imports": "import sluice_not_here_either\n",
}


def make(folder, name, **files):
    place = os.path.join(folder, name)
    os.makedirs(place)
    for file, text in files.items():
        with open(os.path.join(place, file + ".py"), "w", encoding="ascii") as out:
            out.write(text)
    return place


class Site:
    def __init__(self, folder):
        self.folder, self.runs = folder, 0

    def same(self, what, arguments, plain_path=None, **settings):
        """Runs plain and under the recorder; returns the second run. `plain_path`: PYTHONPATH."""
        self.runs += 1
        record = os.path.join(self.folder, f"{self.runs}.record")
        if plain_path is not None:
            settings["PYTHONPATH"] = plain_path
        plain = recorded.run(arguments, cwd=self.folder, **settings)
        under = recorded.run(arguments, record, cwd=self.folder, **settings)
        self.notes, rest = recorded.notes(under)
        # A traceback has one frame more: `site` imports ours, ours the other.
        rest = re.sub(f'  File "{SITE}".*\n(    .*\n)*', "", rest)
        self.recorded = os.path.exists(record)
        for name, one, other in (("status", plain.returncode, under.returncode),
                                 ("output", plain.stdout, under.stdout),
                                 ("errors", plain.stderr, rest)):
            claim(one == other, f"{what}: {name} differs:\n{one}\n{other}")
        return under


def check_others(site):
    """Another sitecustomize, or none, is what `site` finds."""
    seen = site.same("Debian's", ["-c", SEE])
    claim("sluice" not in seen.stdout.replace(recorded.TOP, ""), seen.stdout)
    site.same("an empty PYTHONPATH", ["-c", SEE], "")
    for name, text in OTHERS.items():
        place = make(site.folder, name, sitecustomize=text)
        done = site.same(name, ["-c", SEE], place)
        claim(name != "mine" or "\n1\n" in done.stdout, "mine did not run")
        claim(name != "exits" or done.returncode != 0, "sitecustomize's exit got lost")
        claim(name != "raises" or "mine is broken" in done.stderr, "its error got lost")
    site.same("two folders", ["-c", SEE], ":".join(
        [os.path.join(site.folder, "nothing"), os.path.join(site.folder, "mine")]))
    site.same("a relative folder", ["-c", SEE], "mine")


def check_none(site):
    """A prefix of its own, without any sitecustomize, as a virtual environment can be."""
    hide = make(site.folder, "hide", sitecustomize="raise ImportError("
                "'No module named sitecustomize', name='sitecustomize')\n")
    done = site.same("none", ["-c", SEE], hide)
    claim("no sitecustomize" in done.stdout, done.stdout)


def check_flags(site):
    """What ignores PYTHONPATH is left alone, until the library runs the file itself."""
    for flags in (["-E"], ["-I"], ["-s"], ["-O", "-B"], ["-X", "dev"]):
        site.same(" ".join(flags), [*flags, "-c", "import sys; print(sys.path, sys.flags)"])


LATE = """
import runpy, os, sys
runpy.run_path(os.environ["RECORDER_ADAPTER"] + "/sitecustomize.py")
print([k for k in os.environ if k.startswith(("PYTHON", "SLUICE_PY"))])
print([p for p in sys.path if "adapters" in p], [m for m in sys.modules if "sluice" in m])
"""


def check_late(site):
    for flag in ("-E", "-I", "-S"):
        done = recorded.run([flag, "-c", LATE + "sys.path.append('/usr/lib/python3/dist-packages')\n"
                         + PATCHED], os.path.join(site.folder, "late.record"))
        claim(done.stdout.split("\n")[1:] == ["[] []", "True", "True", ""],
              f"{flag}: {done.stdout}{done.stderr}")
        claim("SLUICE_PY" not in done.stdout and "PYTHONPATH" not in done.stdout, done.stdout)


def check_torch(site):
    """After PyTorch is there no finder of ours is, and modules only under one name."""
    plain = recorded.run(["-c", FINDERS % "torch"])
    record = os.path.join(site.folder, "torch.record")
    under = recorded.run(["-c", FINDERS % "torch"], record)
    claim("_Finder" not in under.stdout and "sluice_torch.loader" in under.stdout, under.stdout)
    modules = [ast.literal_eval(run.stdout.split("\n")[1]) for run in (plain, under)]
    extra = set(modules[1]) - set(modules[0])
    claim(all(name.split(".")[0] == "sluice_torch" for name in extra), f"{extra}")


PATCHED = """
import torch.utils.data.dataloader as d
print(hasattr(d._BaseDataLoaderIter._next_index, "__wrapped__"))
print(hasattr(d._utils.fetch._MapDatasetFetcher.fetch, "__wrapped__"))
"""


def check_early(site):
    """A sitecustomize that loads PyTorch itself."""
    early = make(site.folder, "early", sitecustomize="import torch.utils.data\n")
    done = recorded.run(["-c", PATCHED], os.path.join(site.folder, "early.record"), PYTHONPATH=early)
    claim(done.stdout == "True\nTrue\n", "not patched: " + done.stdout + done.stderr)


def check_without(site):
    """No PyTorch, one of unknown make, and no library: one line at debug, and nothing else."""
    none = make(site.folder, "none", torch="raise ImportError('no torch here')\n")
    site.same("no torch", ["-c", "try:\n import torch\nexcept ImportError as e: print(e)"], none)
    claim(not site.notes, f"{site.notes}")
    other = make(site.folder, "other")
    for package in ("torch", "torch/utils", "torch/utils/data"):
        make(other, package, __init__="")
    with open(os.path.join(other, "torch/utils/data/dataloader.py"), "w", encoding="ascii") as out:
        out.write("class DataLoader: pass\n")
    see = "import torch.utils.data.dataloader as d; print(sorted(vars(d)), d.__loader__)"
    see = see.replace("d.__loader__", "vars(d.__loader__)")
    site.same("unknown torch", ["-c", see], other)
    claim(len(site.notes) == 1 and "adapter off" in site.notes[0], f"{site.notes}")
    done = recorded.run(["-c", PATCHED], PYTHONPATH=recorded.ADAPTER, SLUICE_LOG="debug")
    own, rest = recorded.notes(done)
    claim(done.stdout == "False\nFalse\n" and not rest, f"{done.stdout}{rest}")
    claim(own == ["sluice: pytorch: no libsluice.so in this process\n"], f"{own}")
    done = recorded.run(["-c", PATCHED], os.path.join(site.folder, "patched.record"))
    claim(done.stdout == "True\nTrue\n", "not patched: " + done.stdout + done.stderr)
    found = "import importlib.util as u, torch.utils; u.find_spec('torch.utils.data.dataloader')\n"
    done = recorded.run(["-c", found + PATCHED], os.path.join(site.folder, "found.record"))
    claim(done.stdout == "True\nTrue\n", "not patched after find_spec: " + done.stderr)


MODULE = """
import sluice, threading
number = sluice.dataset("a name", 10)
print(sluice.available, number > 0, sluice.dataset(b"a name", 10) == number)
print(sluice.publish_order(number, 0, [3, 1, 2]), sluice.publish_order(number, 0, (), 3, True))
try:
    with sluice.sample(number, 4):
        raise KeyError
except KeyError:
    print("passed on")
print(sluice.locate_files(number, 0, ["a", b"/b"]), sluice.locate_extent(number, 2, "/c", 5, 7))
print(sluice.locate_keys(number, 3, "/d", [b"k1", b"k22"]))
for wrong in (lambda: sluice.publish_order(number, 0, ["x"]),
              lambda: sluice.locate_files(number, 0, ["a\\0b"]), lambda: sluice.dataset(3, 3)):
    try:
        wrong()
        print("taken")
    except (TypeError, ValueError) as error:
        print(type(error).__name__)
"""


def check_module(folder):
    """The public module, with the library and without."""
    path = os.path.join(recorded.TOP, "adapters", "python")
    record = os.path.join(folder, "module.record")
    done = recorded.run(["-c", MODULE], record, adapter=None, cwd=folder, PYTHONPATH=path)
    claim(done.stdout.split("\n") == ["True True True", "0 0", "passed on", "0 0", "0", "TypeError",
                                      "ValueError", "TypeError", ""], done.stdout + done.stderr)
    with open(record, encoding="ascii") as lines:
        got = [line.split(" ", 3) for line in lines.read().splitlines()]
    number = got[0][2]
    here = os.path.realpath(folder)
    claim([(line[1], line[3]) for line in got[2:] if line[2] == number] == [
        ("order", "0 0 3 0 3 1 2"), ("order", "0 3 0 1"), ("begin", "4"), ("end", "4"),
        ("files", f"0 2\t{here}/a\t/b"), ("extent", "2 5 7 /c"), ("keys", "3 2 /d k1 k22")],
          f"{got}")
    done = recorded.run(["-c", MODULE], cwd=folder, PYTHONPATH=path)
    claim(done.stdout.startswith("False False True\n0 0\npassed on\n0 0\n0\n"), done.stdout)


def check_old_syntax():
    """sitecustomize.py is read by any Python that a job may be, Python 2 included."""
    warnings.simplefilter("ignore")
    from lib2to3 import pgen2, pygram, pytree  # the last grammar of Python 2 at hand
    driver = pgen2.driver.Driver(pygram.python_grammar, convert=pytree.convert)
    with open(SITE, encoding="ascii") as text:
        source = text.read()
    driver.parse_string(source)
    newer = (ast.JoinedStr, ast.AsyncFunctionDef, ast.Await, ast.AnnAssign, ast.NamedExpr,
             ast.Nonlocal, ast.Starred, ast.YieldFrom, ast.MatMult)
    for node in ast.walk(ast.parse(source)):
        claim(not isinstance(node, newer), f"Python 2 does not know {type(node).__name__}")
        if isinstance(node, ast.FunctionDef):
            claim(not node.returns and not node.args.kwonlyargs
                  and not any(a.annotation for a in node.args.args), f"{node.name} is not Python 2")
        if isinstance(node, ast.Raise):
            claim(node.cause is None, "Python 2 does not know raise ... from")


def main():
    with tempfile.TemporaryDirectory(prefix="sv-") as folder:
        site = Site(folder)
        check_old_syntax()
        check_module(folder)
        check_none(site)
        check_flags(site)
        recorded.skip_without_torch()
        check_others(site)
        check_torch(site)
        check_late(site)
        check_early(site)
        check_without(site)


if __name__ == "__main__":
    try:
        main()
    except recorded.Failure as failure:
        sys.exit(f"adapter_site: {failure}")
