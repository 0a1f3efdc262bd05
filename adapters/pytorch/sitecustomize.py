"""Found by the interpreter's `site` because libsluice.so put this folder first on PYTHONPATH.

Takes itself out of sight, arranges that the adapter is there when PyTorch's DataLoader is first
imported, and makes way for the sitecustomize that would have been found without it. It knows no
Python too old: everything newer than Python 2 is in the package beside it.
"""


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
    else:
        os.environ.pop("PYTHONPATH", None)
    sys.modules.pop("sitecustomize", None)


def _arrange():
    """The adapter's import hook; a Python that cannot have it goes on without."""
    import sys

    if sys.version_info < (3, 6):
        return
    try:
        import sluice_torch.hook
        sluice_torch.hook.arrange()
    except Exception:
        pass
    # Until PyTorch comes, no module of ours is seen; the hook keeps its own.
    sys.modules.pop("sluice_torch.hook", None)
    sys.modules.pop("sluice_torch", None)


_arrange()
_withdraw(__file__.rpartition("/")[0])
# The next one on the path, by the interpreter's own search and with its own errors: `site` sees
# what it would have seen, ImportError for `sitecustomize` included where there is none.
import sitecustomize  # noqa: E402,F401
