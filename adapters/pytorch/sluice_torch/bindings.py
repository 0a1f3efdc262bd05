"""The public module `sluice`, under a private name: the job may have a module of that name."""
import importlib.util
import os
import sys

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                        "python", "sluice")


def _module(name, file):
    # From the file itself: a search would leave its traces in sys.path_importer_cache.
    spec = importlib.util.spec_from_file_location(name, os.path.join(_PACKAGE, file))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    return spec.loader, module


def _load():
    name = __package__ + ".sluice"
    loader, package = _module(name, "__init__.py")
    package.__path__ = []
    package.__package__ = name
    library_loader, library = _module(name + "._library", "_library.py")
    library_loader.exec_module(library)
    loader.exec_module(package)
    return package


sluice = _load()
