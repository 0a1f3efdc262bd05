"""Puts the adapter's few wrappers on PyTorch's own classes; see docs/pytorch.md for which."""
from . import importance, loader, ranks, settings
from .bindings import sluice
from .importlib_bootstrap import fetcher, losses, wrappers


def apply(module, when_imported):
    """`module` is torch.utils.data.dataloader; when_imported(name, then) calls `then` with another module, once there
    is one. AttributeError if it lacks what it has had since PyTorch 1.7; nothing is patched then, nor in a process
    without Sluice."""
    if not sluice.available:
        settings.debug("no libsluice.so in this process")
        return
    iterator = module._BaseDataLoaderIter
    map_fetcher = module._utils.fetch._MapDatasetFetcher
    patches = (
        (iterator, "__init__", wrappers.after(iterator.__init__, ranks.created, loader.created)),
        (iterator, "_reset", wrappers.after(iterator._reset, ranks.reset, loader.reset)),
        (iterator, "_next_index", wrappers.drawing(iterator._next_index)),
        (map_fetcher, "fetch", fetcher.bracketing(map_fetcher.fetch)),
    )
    iterable_fetcher = getattr(module._utils.fetch, "_IterableDatasetFetcher", None)
    if iterable_fetcher is not None:
        patches += ((iterable_fetcher, "fetch", fetcher.in_workers(iterable_fetcher.fetch)),)
    next_batch = wrappers.timed(iterator.__next__)
    if importance.observes():
        when_imported("torch.nn.functional", losses.watch)  # PyTorch 2 imports it after this module
        next_batch = wrappers.giving_out(next_batch)
    patches += ((iterator, "__next__", next_batch),)
    if importance.selects():
        patches += ((module.DataLoader, "__len__",
                     wrappers.as_long(module.DataLoader.__len__, ranks.length, loader.length)),
                    (iterator, "__len__",
                     wrappers.as_long(iterator.__len__, ranks.length_left, loader.length_left)))
    for owner, name, wrapper in patches:
        setattr(owner, name, wrapper)
