"""Samples that are rows of a mapped Arrow table, of Hugging Face's datasets or of a pyarrow.Table that a dataset has.

Where a row lies follows from the offsets that Arrow stores with each batch of rows: the largest column is taken, since
labels beside it are small. Of the table these offsets are read, and nothing else.
"""
import bisect
import ctypes
import operator
import sys

from . import arrays, columns

SMALLEST = 1 << 20  # bytes of a column; smaller ones are read in no time
MOST_RUNS = 4096  # calls of locate_extents(): of more, as where rows of several files are mixed, none is sent
WILL_NEED = 3  # MADV_WILLNEED
PAGE = 4096


class Rows:
    """Row i of the table is the `lengths[i]` bytes from `offsets[i]` on of the file `paths[files[i]]`."""
    __slots__ = ("paths", "files", "offsets", "lengths", "order")

    def __init__(self, paths, files, offsets, lengths, order):
        self.paths, self.files, self.offsets, self.lengths, self.order = paths, files, offsets, lengths, order

    def runs(self, samples):
        """[(position in `samples`, path, offsets, lengths)] of the runs of samples that lie in one file each."""
        numpy = sys.modules["numpy"]
        rows = numpy.fromiter(map(operator.index, samples), numpy.int64)
        if self.order is not None:
            rows = self.order[rows]
        files = self.files[rows]
        ends = [*(numpy.flatnonzero(numpy.diff(files)) + 1).tolist(), len(rows)]
        if len(ends) > MOST_RUNS:
            return []
        return [(first, self.paths[files[first]], self.offsets[rows[first:end]], self.lengths[rows[first:end]])
                for first, end in zip([0, *ends], ends) if end > first]


def rows(dataset, length):
    """The Rows of the mapped table of which `dataset` has a row for each sample. None without one."""
    if "pyarrow" not in sys.modules or "numpy" not in sys.modules or length > arrays.MOST:
        return None
    table, order, names = _table(dataset, length)
    leaves = [leaf for name in names or () for leaf in _leaves(table.column(name))]
    best = max(leaves, key=_bytes, default=())
    return _located(best, order) if _bytes(best) >= SMALLEST else None


def _table(dataset, length):
    """(table, the rows that its samples are or None for all, names of the columns that are read), or three Nones."""
    arrow = sys.modules["pyarrow"]
    for value in (dataset, *columns.attributes(dataset).values()):
        if type(value) is arrow.Table:
            if value.num_rows == length:
                return value, None, value.column_names
        elif type(value).__name__ == "Dataset" and columns.module_of(value) == "datasets.arrow_dataset":
            stored = columns.attributes(value)
            table, order = _plain(stored.get("_data")), stored.get("_indices")
            if order is not None:
                order = _plain(order).column(0).to_numpy()
            if (table.num_rows if order is None else len(order)) == length:
                return table, order, stored.get("_format_columns") or table.column_names
    return None, None, None


def _plain(table):
    """The pyarrow.Table in one of Hugging Face's."""
    return columns.attributes(table).get("table", table)


def _leaves(column):
    """Lists of arrays, one for each batch of rows: a column's, or those of a structure's parts."""
    return list(zip(*map(_parts, column.chunks)))


def _parts(chunk):
    arrow = sys.modules["pyarrow"]
    if isinstance(chunk, arrow.ExtensionArray):
        chunk = chunk.storage
    if not arrow.types.is_struct(chunk.type):
        return [chunk]
    return [part for field in range(chunk.type.num_fields) for part in _parts(chunk.field(field))]


def _bytes(leaf):
    """At most so many: of a part of a batch, the whole batch's. (`nbytes` would read offsets, one after the other.)"""
    return sum(chunk.buffers()[-1].size for chunk in leaf if _has_rows(chunk) and chunk.buffers()[-1])


def _has_rows(chunk):
    types = sys.modules["pyarrow"].types
    kind = chunk.type
    if _is_list(kind):
        return types.is_primitive(kind.value_type) and kind.value_type.bit_width % 8 == 0
    return (types.is_binary(kind) or types.is_large_binary(kind) or types.is_string(kind) or
            types.is_large_string(kind) or types.is_fixed_size_binary(kind))


def _located(leaf, order):
    numpy = sys.modules["numpy"]
    _request_offsets(leaf)
    mapped = _Mapped()
    files, offsets, lengths = [], [], []
    for chunk in leaf:
        if not len(chunk):
            continue
        base, starts, sizes = _extents(chunk)
        where = mapped.at(base + int(starts[0]), base + int(starts[-1]) + int(sizes[-1]))
        if where is None or sizes.max() > arrays.LARGEST:
            return None
        files.append(numpy.full(len(chunk), where[0], numpy.int32))
        offsets.append(starts.astype(numpy.uint64) + numpy.uint64(where[1] - int(starts[0])))
        lengths.append(sizes.astype(numpy.uint32))
    if sum(int(part.sum()) for part in lengths) < max(SMALLEST, arrays.TINY * sum(map(len, lengths))):
        return None
    return Rows(mapped.paths, *map(numpy.concatenate, (files, offsets, lengths)), order)


def _extents(chunk):
    """(an address, and from there where each row begins, how long it is), bytes."""
    numpy, types = sys.modules["numpy"], sys.modules["pyarrow"].types
    kind, base, width = chunk.type, chunk.buffers()[-1].address, 1
    if _is_list(kind):
        width = kind.value_type.bit_width // 8
        base += chunk.values.offset * width
    if not _is_fixed(kind):
        stored = _offsets(chunk) * width
        return base, stored[:-1], numpy.diff(stored)
    size = kind.byte_width if types.is_fixed_size_binary(kind) else kind.list_size * width
    starts = (chunk.offset + numpy.arange(len(chunk), dtype=numpy.int64)) * size
    return base, starts, numpy.full(len(chunk), size, numpy.int64)


def _is_list(kind):
    types = sys.modules["pyarrow"].types
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _is_fixed(kind):
    """Whether all of its rows have one length."""
    types = sys.modules["pyarrow"].types
    return types.is_fixed_size_list(kind) or types.is_fixed_size_binary(kind)


def _offsets(chunk):
    """The offsets of an array of rows of different length, as they are stored: one more than it has rows."""
    numpy, types = sys.modules["numpy"], sys.modules["pyarrow"].types
    large = types.is_large_binary(chunk.type) or types.is_large_string(chunk.type) or types.is_large_list(chunk.type)
    stored = numpy.frombuffer(chunk.buffers()[1], numpy.int64 if large else numpy.int32)
    return stored[chunk.offset:chunk.offset + len(chunk) + 1].astype(numpy.int64)


def _request_offsets(leaf):
    """Has the pages with offsets read, all at once: they lie in many places of the files."""
    advise = ctypes.CDLL(None).madvise
    for chunk in leaf:
        if _is_fixed(chunk.type) or not len(chunk):
            continue
        stored = chunk.buffers()[1]
        begin = stored.address // PAGE * PAGE
        advise(ctypes.c_void_p(begin), ctypes.c_size_t(stored.address + stored.size - begin), WILL_NEED)


class _Mapped:
    """The files that this process has mapped, as they are now. paths: of those that at() has met."""

    def __init__(self):
        self.paths, self.begins, self.parts = [], [], []
        with open("/proc/self/maps", "rb") as lines:
            for line in lines:
                words = line.split(None, 5)
                begin, end = (int(word, 16) for word in words[0].split(b"-"))
                found = arrays.file_of(words, begin, begin)
                if found is not None:
                    self.begins.append(begin)
                    self.parts.append((begin, end, *found))

    def at(self, begin, end):
        """(number of the path, offset) of the mapped file at these addresses; None if it is none."""
        place = bisect.bisect_right(self.begins, begin) - 1
        if place < 0:
            return None
        first, last, path, offset = self.parts[place]
        if end > last:
            return None
        if path not in self.paths:
            self.paths.append(path)
        return self.paths.index(path), offset + begin - first
