"""Imported by Python's `site` because libsluice.so puts this directory first on PYTHONPATH.

Arranges that the adapter is loaded when PyTorch's DataLoader is first imported, removes its own
traces, and imports the sitecustomize that would have been found without it. Runs in any Python:
everything that needs more than Python 2 is in the package beside it.

Where the interpreter ignores PYTHONPATH (-E, -I) or `site` (-S) the library may run this file
later, under another name: then only the last step is omitted.
"""


def _arrange(folder):
    """Installs the adapter's import hook; if that fails, the program continues without it."""
    import sys

    if sys.version_info < (3, 6):
        return
    if folder not in sys.path:
        sys.path.insert(0, folder)
    new = "gc" not in sys.modules
    import gc

    enabled, counts = gc.isenabled(), gc.get_count()
    gc.disable()
    try:
        import sluice_torch.hook
        sluice_torch.hook.arrange()
        collector = sluice_torch.hook.collector
        collector.restore(enabled, counts, collector.survivors())
    except Exception:
        pass
    if enabled:
        gc.enable()
    if new:
        del sys.modules["gc"]
    # No adapter module is visible until PyTorch is imported; the hook refers to its own.
    for name in ("sluice_torch.hook", "sluice_torch.collector", "sluice_torch"):
        sys.modules.pop(name, None)
        sys.path_importer_cache.pop(folder + "/sluice_torch", None)


def _withdraw(folder):
    """Restores sys.path, its importer cache and the environment as the user has them."""
    import os
    import sys

    if folder in sys.path:
        sys.path.remove(folder)
    sys.path_importer_cache.pop(folder, None)
    # The library passes the user's own value in this variable; unset: there was none.
    original = os.environ.pop("SLUICE_PYTHONPATH_WAS", None)
    if original is not None:
        os.environ["PYTHONPATH"] = original
    elif os.path.abspath(os.environ.get("PYTHONPATH", "")) == folder:
        del os.environ["PYTHONPATH"]


_arrange(__file__.rpartition("/")[0])
_withdraw(__file__.rpartition("/")[0])
if __name__ == "sitecustomize":
    # Imports the next one on the path, with the interpreter's own search and errors: `site` sees
    # what it would have seen without this file, including ImportError where there is none.
    __import__("sys").modules.pop("sitecustomize", None)
    import sitecustomize  # noqa: F401
