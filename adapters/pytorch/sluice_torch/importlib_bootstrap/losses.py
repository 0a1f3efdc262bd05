"""Wrappers of the losses of torch.nn.functional; what they observe is up to `importance`."""
import functools
import inspect
import threading
import types

import torch

from .. import importance, settings

_busy = threading.local()  # cross_entropy calls nll_loss, in some versions


def _compiling():
    """Whether torch.compile is tracing the caller, with tensors that have no values: Dynamo takes the wrapper for the
    loss itself, which it has under the same name, and calls it to learn what it returns."""
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)  # imported after this module
    return is_compiling is not None and is_compiling()


def observed(original):
    """Wraps a loss. TorchScript, which compiles such functions from their source, finds the original's source and
    globals: all that the wrapper itself needs is in its closure."""
    signature = inspect.signature(original)
    watch, compiled = importance.watching(original, signature), importance.compiled
    busy, current, compiling = _busy, importance.current, _compiling

    def loss(*arguments, **named):
        if compiling():
            compiled()
            return original(*arguments, **named)
        outer = getattr(busy, "inside", False)
        busy.inside = True
        try:
            result = original(*arguments, **named)
            if not outer and getattr(current, "batch", None) is not None:
                watch(arguments, named, result)
            return result
        finally:
            busy.inside = outer

    wrapper = types.FunctionType(loss.__code__, original.__globals__, original.__name__, None, loss.__closure__)
    wrapper.__signature__ = signature
    return functools.update_wrapper(wrapper, original)


def watch(functional):
    """Wraps the losses of torch.nn.functional in observed(). Their Module forms call them by these names."""
    try:
        for name in importance.LOSSES:
            setattr(functional, name, observed(getattr(functional, name)))
    except Exception as error:
        settings.switch_off("this PyTorch is not known: %s" % error)
