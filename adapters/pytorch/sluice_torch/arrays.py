"""Samples that are rows of an array in a mapped file: numpy.memmap, what numpy.load(mmap_mode=...)
returns, and tensors over such memory, TensorDataset's included.

The array's address is looked up in the process's own map: nothing of the array is touched.
"""
import array
import operator
import sys

import torch

SMALLEST = 1 << 20  # bytes of an array; smaller ones are read in no time
LARGEST = (1 << 32) - 1  # bytes of a row
MOST, TINY = 1 << 22, 512  # rows, bytes of a row: beyond these, sending costs more than it gains


class Rows:
    """[offset + i * stride, offset + i * stride + size) of the file `path` is row i, bytes."""
    __slots__ = ("path", "offset", "stride", "size")

    def __init__(self, path, offset, stride, size):
        self.path, self.offset, self.stride, self.size = path, offset, stride, size

    def extents(self, indices):
        """The rows' offsets, and their lengths."""
        return (array.array("Q", (self.offset + operator.index(i) * self.stride
                                  for i in indices)),
                array.array("I", [self.size]) * len(indices))


def rows(dataset, length):
    """The Rows of the mapped array in which `dataset` has a row for each sample; of several, the
    one with the largest rows (labels are small). None without one."""
    best = None
    if length > MOST:
        return None
    for value in _values(dataset):
        found = _layout(value, length)
        if found is not None and (best is None or found[2] > best[2]):
            best = found
    if best is None:
        return None
    address, stride, size = best
    where = _file_at(address, address + stride * (length - 1) + size)
    return where and Rows(where[0], where[1], stride, size)


def _values(dataset):
    for value in list(getattr(dataset, "__dict__", {}).values()):
        if type(value) in (list, tuple) and len(value) <= 16:
            for inner in value:
                yield inner
        else:
            yield value


def _layout(value, length):
    """(address, stride, bytes of a row) of an array in memory whose rows are contiguous."""
    numpy = sys.modules.get("numpy")
    if type(value) is torch.Tensor:
        if value.device.type != "cpu" or value.layout != torch.strided:
            return None
        item = value.element_size()
        address, shape = value.data_ptr(), tuple(value.shape)
        strides = [stride * item for stride in value.stride()]
    elif numpy is not None and type(value) in (numpy.ndarray, numpy.memmap):
        item = value.itemsize
        address, shape = value.__array_interface__["data"][0], value.shape
        strides = list(value.strides)
    else:
        return None
    if not shape or shape[0] != length or strides[0] * length < SMALLEST:
        return None
    size = item
    for extent, stride in zip(reversed(shape[1:]), reversed(strides[1:])):
        if extent != 1 and stride != size:
            return None
        size *= extent
    return (address, strides[0], size) if TINY <= size <= min(strides[0], LARGEST) else None


def _file_at(begin, end):
    """(path, offset) of the mapped file at [begin, end); None if it is no file, or not all of
    it."""
    with open("/proc/self/maps", "rb") as lines:
        for line in lines:
            words = line.split(None, 5)
            first, last = (int(word, 16) for word in words[0].split(b"-"))
            if first <= begin < last:
                return file_of(words, first, begin) if end <= last else _several(
                    lines, words, first, begin, last, end)
    return None


_MEMORY = (b"/memfd:", b"/dev/shm/")


def _several(lines, words, first, begin, last, end):
    """_file_at for a mapping whose parts have different protections: it has several lines."""
    found = file_of(words, first, begin)
    offset = int(words[2], 16) + last - first
    for line in lines:
        more = line.split(None, 5)
        low, high = (int(word, 16) for word in more[0].split(b"-"))
        if low != last or more[3:] != words[3:] or int(more[2], 16) != offset:
            return None
        if end <= high:
            return found
        last, offset = high, offset + high - low
    return None


def file_of(words, first, address):
    """(path, offset) of `address` in a mapping that begins at `first` and has the line `words` in the process's map;
    None if that is no file."""
    if len(words) < 6 or words[4] == b"0":
        return None
    path = words[5].rstrip(b"\n").replace(b"\\012", b"\n")
    if not path.startswith(b"/") or path.endswith(b" (deleted)") or path.startswith(_MEMORY):
        return None
    return path, int(words[2], 16) + address - first
