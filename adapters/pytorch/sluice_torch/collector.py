"""Leaves the job's garbage collector as it would be without the adapter.

CPython collects by counts of allocations. The adapter's own thousand objects would bring the job's next collection of
everything forward: with four forked workers each may then walk, and so copy, all that PyTorch has allocated (0.3 s).
"""
import gc
import sys

# Until 3.13 collections go by three generations' counts; 3.14 collects incrementally.
_COUNTED = sys.implementation.name == "cpython" and (3, 7) <= sys.version_info < (3, 14)


_held = []  # in place of what generations 0 and 1 had: some thousand empty lists


def survivors():
    """How many objects generation 1 has."""
    return len(gc.get_objects(generation=1)) if _COUNTED and sys.version_info >= (3, 8) else 0


def restore(enabled, counts, survived):
    """After work during which nothing was collected, and which only then began: makes the counts of all generations
    what they were, and no object allocated until now adds to what the next full collection waits for, but as many empty
    ones as generation 0 had, and generation 1: `survived`. Nothing where the job watches or debugs its collector, or has
    frozen objects."""
    if not _COUNTED or not enabled or gc.callbacks or gc.get_debug() or gc.get_freeze_count():
        return
    new, young, middle = counts
    # All objects move to the oldest generation, counts become zero; collections of empty generations set them.
    gc.freeze()
    gc.unfreeze()
    for _ in range(middle):
        gc.collect(1)
    _held.extend([] for _ in range(survived if young else 0))
    for _ in range(young):
        gc.collect(0)
    while gc.get_count()[0] < new:
        _held.append([])


def unnoticed(function, *arguments):
    """Calls `function`, during which nothing is collected; see restore()."""
    enabled, counts, survived = gc.isenabled(), gc.get_count(), survivors()
    gc.disable()
    try:
        function(*arguments)
    finally:
        restore(enabled, counts, survived)
        if enabled:
            gc.enable()
