"""The public module `sluice`, under a private name: the job may have a module of that name."""
import importlib.util
import os
import sys

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                        "python", "sluice")


def _load():
    spec = importlib.util.spec_from_file_location(__package__ + ".sluice", os.path.join(_PACKAGE, "__init__.py"),
                                                  submodule_search_locations=[_PACKAGE])
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for its own modules
    spec.loader.exec_module(module)
    return module


sluice = _load()
