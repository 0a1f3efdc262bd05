"""A dataset's name, and its samples' locations where it exposes them."""
import array
import hashlib
import os

from torch.utils.data import dataset as torch_datasets

from . import arrays, arrow, columns, guesses, learning, records, settings, tree
from .bindings import sluice
from .identity import IdentityMap

IN_MEMORY = (list, tuple, dict, range, str, bytes, bytearray)  # these cause no reads
NAME_BYTES = 200  # of a name's readable part; a longer one ends in a digest


class Registration:
    """A registered dataset. epochs: how many iterations over it have begun; last: the serial number
    of the loader's link that began the latest one; where: the guesses.fingerprint of what was
    declared; rows: whether _locate_parts has located any, None before it has run; located: percent of
    the samples, when they were last declared here or in the process that this one was forked from, or
    None; learner: see learning.watching."""
    __slots__ = ("number", "length", "name", "epochs", "last", "where", "rows", "located", "learner")

    def __init__(self, number, length, name):
        self.number, self.length, self.name = number, length, name
        self.epochs, self.last, self.where, self.rows, self.located, self.learner = 0, None, None, None, None, None


_registrations = IdentityMap()
_by_number = {}  # epochs are counted by name, across all objects of that name


def left_alone(dataset):
    return type(dataset) in IN_MEMORY or isinstance(dataset, torch_datasets.IterableDataset)


def registration_of(dataset, reading=False):
    """The registration of the dataset, renewed and located as needed; None: the adapter ignores it.
    `reading`: the caller is a process that reads samples and needs the number only."""
    known = _registrations.get(dataset)
    if known is not None and reading:
        return known if known.number > 0 else None
    if left_alone(dataset):
        return None
    try:
        length = len(dataset)
    except Exception as error:  # allowed with a sampler of the job's own
        settings.debug("%s has no length: %s" % (type(dataset).__name__, error))
        return None
    if known is not None and known.length == length:
        _renew(known)
    else:
        name = name_of(dataset, length)
        number = sluice.dataset(name, length)
        known = _by_number.get(number)
        if known is None:
            known = Registration(number, length, name)
            if number > 0:
                _by_number[number] = known
        try:
            _registrations.put(dataset, known)
        except TypeError:
            return None
    if known.number <= 0:
        return None
    if not reading:
        _locate(known, dataset)
    return known


def _renew(known):
    """Registers it again, to be located again, if the optimizer is new or there was none."""
    number = sluice.dataset(known.name, known.length)
    if number > 0 and number != known.number:
        known.number, known.where, known.rows, known.located, known.learner = number, None, None, None, None
        _by_number[number] = known


def name_of(dataset, length):
    """A name that is the same in each process and run of a job, and another one for other data."""
    text = "%s(%d)" % (_described(dataset), length)
    encoded = text.encode("utf-8", "backslashreplace").replace(b"\0", b"?")
    if len(encoded) > NAME_BYTES:
        encoded = encoded[:NAME_BYTES] + b"#" + hashlib.sha1(encoded).hexdigest().encode()
    return encoded


def _described(dataset):
    kind, stored = type(dataset), columns.attributes(dataset)
    # In a spawned worker the job's script is called __mp_main__.
    words = [kind.__module__.replace("__mp_main__", "__main__") + "." + kind.__qualname__]
    if kind is torch_datasets.Subset:
        words += [_digest(stored["indices"]), _described(stored["dataset"])]
    elif kind is torch_datasets.ConcatDataset:
        lengths = [end - start for start, end in zip([0, *stored["cumulative_sizes"]], stored["cumulative_sizes"])]
        words += ["%s(%d)" % (_described(part), count) for part, count in zip(stored["datasets"], lengths)]
    else:
        for name in sorted(name for name in stored if isinstance(name, str)):
            value = columns.text_of(stored[name])
            if value is not None:
                if value and os.path.lexists(value):
                    value = os.path.abspath(value)
                words.append("%s=%s" % (name, value))
            elif isinstance(stored[name], bool):
                words.append("%s=%s" % (name, stored[name]))
        words += _ends(columns.find(dataset))
    return " ".join(words)


def _ends(found):
    """What distinguishes datasets of equal attributes: the first and the last file of their lists."""
    words = []
    for column in found.texts[:8]:
        words += [cell for cell in (column.cell(0), column.cell(column.size - 1)) if cell not in (None, *words)]
    numbers = [column.cell(probe * (column.size - 1) // 8) for column in found.numbers[:8] for probe in range(9)]
    if numbers:
        words.append(hashlib.sha1(repr(numbers).encode()).hexdigest()[:8])
    return [word[:NAME_BYTES] for word in words]


def _digest(indices):
    try:
        numbers = array.array("q", _listed(indices))
        return hashlib.sha1(numbers.tobytes()).hexdigest()[:16]
    except TypeError:  # indices that are not whole numbers
        return str(len(indices))


def _listed(indices):
    return indices.tolist() if hasattr(indices, "tolist") else list(indices)


def _locate(known, dataset):
    """Declares the locations that the dataset shows. What is a guess, a list of files, is compared with what the first
    samples read, by the optimizer."""
    try:
        located = []
        if known.rows is None:
            try:
                located = _locate_parts(known, dataset)
            except Exception as error:
                settings.debug("parts of %s are not located: %s" % (type(dataset).__name__, error))
            known.rows = bool(located)
        elif known.rows:
            return
        root = tree.of(dataset)
        where = guesses.fingerprint(root, known.length)
        if where == known.where or any(one is dataset for one in located):
            return
        known.where = where
        if guesses.guess(root, known.length, located):
            learning.declare(known.number, root, known.length)
        known.located = sluice.located(known.number)  # for the workers, which would all wait for it
    except Exception as error:  # malformed lists in the dataset
        settings.debug("%s is not located: %s" % (type(dataset).__name__, error))


def _locate_parts(known, dataset):
    """Locates samples that are rows of a mapped array or Arrow table, or LMDB records with a list of keys. Returns the
    plain datasets of which it could."""
    located = []
    for first, part, indices in _parts(dataset):
        length = len(part)
        rows = arrays.rows(part, length)
        if rows is not None:
            located.append(part)
            sluice.locate_extents(known.number, first, rows.path,
                                  *rows.extents(range(length) if indices is None else indices))
            continue
        table = arrow.rows(part, length)
        runs = table.runs(range(length) if indices is None else indices) if table is not None else ()
        if runs:
            located.append(part)
            for position, path, offsets, lengths in runs:
                sluice.locate_extents(known.number, first + position, path, offsets, lengths)
            continue
        found = records.keys(part, length)
        if found is not None:
            path, keys = found
            located.append(part)
            sluice.locate_keys(known.number, first, path,
                               keys if indices is None else [keys[i] for i in indices])
    return located


def _parts(dataset):
    """Yields (first, dataset, indices): samples `first`, ... are the samples `indices` of that
    plain dataset; all of it in its order if indices is None."""
    if type(dataset) is torch_datasets.ConcatDataset:
        first = 0
        for part in dataset.datasets:
            for offset, plain, indices in _parts(part):
                yield first + offset, plain, indices
            first += len(part)
        return
    if type(dataset) is not torch_datasets.Subset:
        yield 0, dataset, None
        return
    inner = list(_parts(dataset.dataset))
    if len(inner) == 1:  # else parts would have to be split
        _, plain, indices = inner[0]
        chosen = _listed(dataset.indices)
        yield 0, plain, chosen if indices is None else [indices[i] for i in chosen]
