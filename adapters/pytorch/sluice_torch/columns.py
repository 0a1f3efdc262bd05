"""What an object has that may name files: columns of texts and of whole numbers, found by the types of its attributes.

No code of the job runs, and nothing is evaluated: attributes come from the instance's own dictionary and slots, and
elements from built-in containers, arrays, data frames and Arrow tables, by the types' own methods. A container is
judged by its first, middle and last element; none is copied."""
import array
import functools
import itertools
import json
import os
import pathlib
import sys
import types

import torch

DEPTH = 2  # an attribute's attribute's attribute is looked at, no further
MOST_ATTRIBUTES, MOST_OBJECTS, MOST_COLUMNS, MOST_FIELDS = 256, 64, 96, 32
MANY = 256  # rows
FEW = 16  # elements of a list whose elements are looked into one by one
SEPARATORS = (",", "\t", ";", "|", " ")
PATHS = (pathlib.PosixPath, pathlib.PurePosixPath)

_mro = type.__dict__["__mro__"].__get__
_own = type.__dict__["__dict__"].__get__
_flags = type.__dict__["__flags__"].__get__
_module = type.__dict__["__module__"].__get__
_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that Python code made
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_OPAQUE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)


def is_a(value, *kinds):
    """isinstance() by the type alone: it would ask the object for its __class__, too."""
    return any(base is kind for base in _mro(type(value)) for kind in kinds)


def module_of(value):
    """The module of the value's type, "" if that is no text."""
    name = _module(type(value))
    return name if type(name) is str else ""


def has_method(value, name):
    return any(name in _own(base) for base in _mro(type(value)))


def attributes(value):
    """The attributes that the instance itself stores, by name."""
    found = {}
    for base in _mro(type(value)):
        for name, member in list(_own(base).items()):
            if type(member) is types.MemberDescriptorType and _flags(base) & _HEAP:
                try:
                    found.setdefault(name, member.__get__(value))
                except AttributeError:  # the slot is empty
                    pass
            elif name == "__dict__" and type(member) is types.GetSetDescriptorType:
                stored = member.__get__(value)
                if type(stored) is dict:
                    found.update(itertools.islice(list(stored.items()), MOST_ATTRIBUTES))
    return found


def text_of(value):
    """str, or None for what is no text and no path."""
    kind = type(value)
    if kind is str:
        return value
    if kind in PATHS:
        return str(pathlib.PurePosixPath(value))  # of a copy: a path stores its text
    if kind is bytes:
        return os.fsdecode(value)
    if is_a(value, str):
        return str.__str__(value)
    return os.fsdecode(b"".join((value,))) if is_a(value, bytes) else None


def number_of(value):
    """int, or None for what is no whole number."""
    if type(value) is int:
        return value
    numpy = sys.modules.get("numpy")
    return int(value) if numpy is not None and is_a(value, numpy.integer) else None


class Column:
    """`size` cells, texts or whole numbers. get(row) returns one as it is stored, run(first, last) a list of some.
    `slow`: get takes microseconds."""
    __slots__ = ("size", "is_text", "get", "run", "slow")

    def __init__(self, size, get, run, slow=False):
        self.size, self.get, self.run, self.slow, self.is_text = size, get, run, slow, True

    def cell(self, row):
        """A text or a number; None where there is none."""
        try:
            value = self.get(row) if 0 <= row < self.size else None
        except (LookupError, TypeError, ValueError, AttributeError):  # an element of another shape
            return None
        return text_of(value) if self.is_text else number_of(value)

    def cells(self, rows):
        if len(rows) < MANY:
            return [self.cell(row) for row in rows]
        if type(rows) is range and rows.step == 1 and rows.start >= 0 and rows.stop <= self.size:
            stored = self.run(rows.start, rows.stop)
            if set(map(type, stored)) <= {str if self.is_text else int}:
                return stored
        elif self.slow:
            self.get, self.slow = self.run(0, self.size).__getitem__, False
        return [self.cell(row) for row in rows]


class Found:
    """texts, numbers: columns; words: texts that are attributes themselves; looks: see rules.search."""

    def __init__(self):
        self.texts, self.numbers, self.words, self.looks = [], [], [], 0

    def add(self, column, sample):
        """`sample`: some of its cells, as stored. False: it is no column."""
        for of, kept in ((text_of, self.texts), (number_of, self.numbers)):
            if sample and all(of(value) is not None for value in sample):
                if len(kept) < MOST_COLUMNS:
                    kept.append(column)
                    column.is_text = kept is self.texts
                return True
        return False


def find(*objects):
    """The Found of some objects and what they hold."""
    found, known = Found(), set()
    waiting = [(one, 0) for one in objects]
    for one, depth in waiting:  # grows
        if id(one) in known or len(known) >= MOST_OBJECTS:
            continue
        known.add(id(one))
        for value in attributes(one).values():
            try:
                _visit(value, depth, found, waiting)
            except Exception:  # a data frame of another version, say: the other attributes may tell
                continue
    return found


def _is_opaque(value):
    nn = sys.modules.get("torch.nn")  # PyTorch may still be importing itself
    return is_a(value, *_OPAQUE, getattr(nn, "Module", None))


def _visit(value, depth, found, waiting):
    text = text_of(value)
    if text is not None:
        found.words.append(text)
        return
    if not _columns(value, found) and depth < DEPTH and not _is_opaque(value):
        waiting.append((value, depth + 1))
    inside = ()
    if is_a(value, list, tuple) and len_of(value) <= FEW:
        inside = sequence(value)
    elif is_a(value, dict) and dict.__len__(value) <= MOST_FIELDS:
        inside = dict.values(value)
    for inner in list(inside) if depth < DEPTH else ():
        if not _is_cell(inner):
            _visit(inner, depth + 1, found, waiting)


def len_of(value):
    return list.__len__(value) if is_a(value, list) else tuple.__len__(value)


def sequence(value):
    return list.__iter__(value) if is_a(value, list) else tuple.__iter__(value)


def _is_cell(value):
    return text_of(value) is not None or number_of(value) is not None


def _columns(value, found):
    """Adds the columns of a container. False: it is none, but an object that may have some."""
    if is_a(value, list, tuple):
        get = functools.partial((list if is_a(value, list) else tuple).__getitem__, value)
        _rows(len_of(value), get, found, lambda first, last: list(get(slice(first, last))))
    elif is_a(value, dict):
        _of_dict(value, found)
    elif type(value) in (range, array.array):
        _rows(len(value), value.__getitem__, found)
    elif type(value) is torch.Tensor:
        _of_array(_numpy_of(value), found)
    else:
        package = module_of(value).split(".")[0]
        reader = READERS.get(package) if package in sys.modules else None
        return reader(value, found) if reader is not None else package == "builtins"
    return True


def _ends(size):
    return sorted({0, size // 2, size - 1})


def _rows(size, get, found, run=None):
    """Columns of `size` elements: themselves, or their fields."""
    if size == 0:
        return
    if run is None:
        run = functools.partial(_each, get)
    sample = [get(row) for row in _ends(size)]
    column = Column(size, get, run)
    if found.add(column, sample):
        if column.is_text:
            _split(column, [text_of(value) for value in sample], found)
        return
    if all(is_a(value, list, tuple) for value in sample):
        for field in range(min(*map(len_of, sample), FEW)):
            _field(size, get, sample, functools.partial(_at, field), found, functools.partial(_run_of, run, field))
    elif all(is_a(value, dict) for value in sample):
        for key in itertools.islice(list(dict.keys(sample[0])), MOST_FIELDS):
            if type(key) in (str, int):
                _field(size, get, sample, functools.partial(_of_key, key), found)
    elif not any(value is None or _is_opaque(value) or module_of(value) == "builtins" for value in sample):
        for name in itertools.islice(attributes(sample[0]), MOST_FIELDS):
            _field(size, get, sample, functools.partial(_of_name, name), found)


def _each(get, first, last):
    return [get(row) for row in range(first, last)]


def _at(field, value):
    return (list if is_a(value, list) else tuple).__getitem__(value, field)


def _run_of(run, field, first, last):
    rows = run(first, last)
    if set(map(type, rows)) <= {list, tuple} and min(map(len, rows)) > field:
        return [row[field] for row in rows]
    return [_at(field, row) if is_a(row, list, tuple) and len_of(row) > field else None for row in rows]


def _of_key(key, value):
    return dict.get(value, key)  # runs no __missing__


def _of_name(name, value):
    if any(name in _own(base) for base in _mro(type(value))):
        return attributes(value).get(name)
    try:
        return object.__getattribute__(value, name)  # unlike attributes(), it makes no dict of an object without one
    except AttributeError:
        return None


def _field(size, get, sample, take, found, run=None):
    try:
        cells = [take(value) for value in sample]
    except (IndexError, TypeError):
        return
    found.add(Column(size, lambda row: take(get(row)), run or functools.partial(_each, lambda row: take(get(row)))), cells)


def _split(column, sample, found):
    """Lines of a table that are stored as text: the fields of each."""
    if all(text[:1] == "{" for text in sample):
        try:
            keys = list(json.loads(sample[0]))[:MOST_FIELDS]
        except (ValueError, TypeError):
            return
        for key in keys:
            take = functools.partial(_of_json, key)
            _field(column.size, lambda row: text_of(column.get(row)), sample, take, found)
        return
    for separator in SEPARATORS:
        fields = min(text.count(separator) for text in sample) + 1
        for field in range(fields if 1 < fields <= FEW else 0):
            take = functools.partial(_word, separator, field)
            _field(column.size, lambda row: text_of(column.get(row)), sample, take, found)


def _of_json(key, text):
    value = json.loads(text)
    return value.get(key) if type(value) is dict else None


def _word(separator, field, text):
    return text.split(separator)[field].strip(" \"'\r\n")


def _of_dict(value, found):
    size = dict.__len__(value)
    if size == 0:
        return
    first = next(iter(dict.keys(value)))
    if type(first) is int and all(dict.__contains__(value, row) for row in _ends(size)):
        _rows(size, functools.partial(dict.get, value), found)
        return
    if size <= MOST_FIELDS and not _is_cell(first):
        return
    keys, values = _Listed(dict.keys, value), _Listed(dict.values, value)
    _rows(size, keys.get, found)
    _rows(size, values.get, found)


class _Listed:
    """The keys or values of a dict by position: a list of references, once it is needed."""

    def __init__(self, view, owner):
        self.view, self.owner, self.list = view, owner, None

    def get(self, row):
        if self.list is None:
            self.list = list(self.view(self.owner))
        return self.list[row]


def _numpy_of(tensor):
    if tensor.device.type != "cpu" or tensor.layout != torch.strided or tensor.dtype not in _WHOLE:
        return None
    return tensor.detach().numpy()


def _of_array(value, found):
    numpy = sys.modules.get("numpy")
    if numpy is None or type(value) is not numpy.ndarray or value.size == 0:
        return True
    if value.dtype.names:
        for name in value.dtype.names[:MOST_FIELDS]:
            _of_array(value[name], found)
    elif value.dtype.kind in "USOiu" and value.ndim == 1:
        _rows(len(value), value.__getitem__, found)
    elif value.dtype.kind in "USOiu" and value.ndim == 2 and value.shape[1] <= FEW:
        for field in range(value.shape[1]):
            _rows(len(value), value[:, field].__getitem__, found)
    return True


def _of_pandas(value, found):
    pandas = sys.modules["pandas"]
    if type(value) is pandas.DataFrame:
        for field in range(min(value.shape[1], MOST_FIELDS)):
            _series(value.iloc[:, field], found)
        _series(value.index, found)
    elif type(value) is pandas.Series:
        _series(value, found)
        _series(value.index, found)
    elif is_a(value, pandas.Index):
        _series(value, found)
    return True


def _series(value, found):
    if value.dtype.kind not in "OUiu" and str(value.dtype) not in ("category", "string", "str"):
        return
    size = len(value)
    if size and type(value).__name__ != "MultiIndex":
        cells = value.iloc if hasattr(value, "iloc") else value
        get = cells.__getitem__
        found.add(Column(size, get, lambda first, last: cells[first:last].tolist(), True), [get(row) for row in _ends(size)])


def _of_arrow(value, found):
    arrow = sys.modules["pyarrow"]
    if type(value) is arrow.Table:
        for field in range(min(value.num_columns, MOST_FIELDS)):
            _chunked(arrow, value.column(field), found)
    elif type(value) is arrow.ChunkedArray:
        _chunked(arrow, value, found)
    elif is_a(value, arrow.Array):
        _chunked(arrow, arrow.chunked_array([value]), found)
    return True


def _chunked(arrow, value, found):
    kind = value.type
    if arrow.types.is_struct(kind):
        for field in value.flatten():
            if not arrow.types.is_struct(field.type):
                _chunked(arrow, field, found)
        return
    if len(value) and (arrow.types.is_string(kind) or arrow.types.is_large_string(kind) or arrow.types.is_integer(kind)):
        def get(row):
            return value[row].as_py()

        def run(first, last):
            return value.slice(first, last - first).to_pylist()
        found.add(Column(len(value), get, run, True), [get(row) for row in _ends(len(value))])


READERS = {"numpy": _of_array, "pandas": _of_pandas, "pyarrow": _of_arrow}


class Holder:
    """An object that has a value as its attribute, to find the columns of that."""

    def __init__(self, held):
        self.held = held
