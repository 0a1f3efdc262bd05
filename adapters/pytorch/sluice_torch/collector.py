"""Leaves the job's garbage collector as it would be without the adapter.

CPython collects by counts of allocations. The adapter's own thousand objects would bring the job's next collection of
everything forward: with four forked workers each may then walk, and so copy, all that PyTorch has allocated (0.3 s).
"""
import gc
import sys

# Until 3.13 collections go by three generations' counts; 3.14 collects incrementally.
_COUNTED = sys.implementation.name == "cpython" and (3, 7) <= sys.version_info < (3, 14)


def unnoticed(function, *arguments):
    """Calls `function`, during which nothing is collected. Afterwards the counts of generations 1 and 2 are as before,
    that of generation 0 is zero, and no object allocated until now adds to what the next full collection waits for.
    Where the job watches or debugs its collector, or has frozen objects, nothing but the call happens."""
    if not _COUNTED or not gc.isenabled() or gc.callbacks or gc.get_debug() or gc.get_freeze_count():
        function(*arguments)
        return
    _, young, middle = gc.get_count()
    gc.disable()
    try:
        function(*arguments)
    finally:
        # All objects move to the oldest generation, counts become zero; collections of empty generations set them.
        gc.freeze()
        gc.unfreeze()
        for _ in range(middle):
            gc.collect(1)
        for _ in range(young):
            gc.collect(0)
        gc.enable()
