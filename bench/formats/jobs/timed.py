"""What every job prints of itself: when the load began and ended, and the sum of all that it read."""
import json
import os
import time

MASK = (1 << 64) - 1


class Load:
    """Times a load, from the call that begins it until every parameter was summed."""

    def __init__(self):
        self.bytes, self.sum = 0, 0
        self.started = time.monotonic_ns()

    def add(self, size, total):
        self.bytes += size
        self.sum = (self.sum + total) & MASK

    def tensor(self, tensor):
        """Reads all of a tensor, as words of the largest size that fits: their sum does not depend on the order."""
        import torch
        words = tensor.contiguous().view(-1).view(torch.int64)
        self.add(tensor.numel() * tensor.element_size(), int(words.sum()))

    def array(self, array):
        """The same of a NumPy array."""
        import numpy
        words = array.reshape(-1).view(numpy.int64)
        self.add(array.nbytes, int(words.sum(dtype=numpy.int64)))

    def end(self):
        ended = time.monotonic_ns()
        print(json.dumps({"pid": os.getpid(), "started_ns": self.started, "ended_ns": ended, "bytes": self.bytes,
                          "sum": f"{self.sum:016x}"}))
