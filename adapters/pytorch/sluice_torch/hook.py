"""Patches the DataLoader as soon as it is imported. Imports nothing that `site` has not
imported, but gc, which is built in."""
import sys

from sluice_torch import collector

TARGET = "torch.utils.data.dataloader"
_package = sys.modules[__package__]


class _Finder:
    """First on sys.meta_path until the module `awaited` has been imported; finds nothing itself."""

    def __init__(self, awaited, then):
        self.awaited, self.then = awaited, then
        self.asking = False  # a similar hook may query all finders too

    def find_spec(self, name, path=None, target=None):
        if name != self.awaited or self.asking:
            return None
        self.asking = True
        try:
            for finder in sys.meta_path:
                find = getattr(finder, "find_spec", None)
                spec = find(name, path, target) if find and finder is not self else None
                if spec is not None:
                    self.watch(spec.loader)
                    return spec
        finally:
            self.asking = False
        return None

    def watch(self, loader):
        """Calls `then` with the module that `loader` executes next; the loader remains the same object."""
        execute = loader.exec_module

        def exec_module(module):
            del loader.exec_module
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            execute(module)
            self.then(module)

        try:
            loader.exec_module = exec_module
        except AttributeError:  # a loader whose attributes cannot be set
            pass


def _patch(module):
    from sluice_torch import settings
    try:
        from sluice_torch import patches
        patches.apply(module, when_imported)
    except Exception as error:
        settings.switch_off("this PyTorch is not known: %s" % error)


def _install(module):
    try:
        sys.modules.setdefault(__package__, _package)
        collector.unnoticed(_patch, module)
    except Exception:  # the package is missing or broken: the job continues without it
        pass


def when_imported(name, then):
    """Calls `then`, which raises nothing, with the module `name`: now if it is imported, otherwise when it is."""
    module = sys.modules.get(name)
    if module is not None:
        then(module)
    else:
        sys.meta_path.insert(0, _Finder(name, then))


def arrange():
    """Patches the DataLoader now if it is imported, otherwise when it is."""
    when_imported(TARGET, _install)
