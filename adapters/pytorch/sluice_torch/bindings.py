"""The public module `sluice`, under a private name: the job may have a module of that name."""
import importlib.util
import os

_FILE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                     "python", "sluice", "__init__.py")


def _load():
    spec = importlib.util.spec_from_file_location(__package__ + ".sluice", _FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sluice = _load()
