"""Found by the interpreter's `site` because libsluice.so put this folder first on PYTHONPATH.

Takes itself out of sight, arranges that the adapter is there when PyTorch's DataLoader is first
imported, and makes way for the sitecustomize that would have been found without it. It knows no
Python too old: everything newer than Python 2 is in the package beside it.

Where the interpreter does not look at PYTHONPATH (-E, -I) or at `site` (-S) the library may run
this file later, under any other name: then only the last step is left out.
"""


def _arrange(folder):
    """The adapter's import hook; a Python that cannot have it goes on without."""
    import sys

    if sys.version_info < (3, 6):
        return
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        import sluice_torch.hook
        sluice_torch.hook.arrange()
    except Exception:
        pass
    # Until PyTorch comes, no module of ours is seen; the hook keeps its own.
    for name in ("sluice_torch.hook", "sluice_torch"):
        sys.modules.pop(name, None)
        sys.path_importer_cache.pop(folder + "/sluice_torch", None)


def _withdraw(folder):
    """Puts sys.path, the environment and sys.modules back as the user's own are."""
    import os
    import sys

    if folder in sys.path:
        sys.path.remove(folder)
    sys.path_importer_cache.pop(folder, None)
    # The library passes the user's own value; no such variable: there was none.
    original = os.environ.pop("SLUICE_PYTHONPATH_WAS", None)
    if original is not None:
        os.environ["PYTHONPATH"] = original
    elif os.path.abspath(os.environ.get("PYTHONPATH", "")) == folder:
        del os.environ["PYTHONPATH"]


_arrange(__file__.rpartition("/")[0])
_withdraw(__file__.rpartition("/")[0])
if __name__ == "sitecustomize":
    # The next one on the path, by the interpreter's own search and with its own errors: `site`
    # sees what it would have seen, ImportError for `sitecustomize` where there is none included.
    __import__("sys").modules.pop("sitecustomize", None)
    import sitecustomize  # noqa: F401
