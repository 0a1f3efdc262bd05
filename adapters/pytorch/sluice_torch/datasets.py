"""A dataset's name, and its samples' locations where it exposes them."""
import array
import hashlib
import os

from torch.utils.data import dataset as torch_datasets

from . import arrays, records, settings
from .bindings import sluice
from .identity import IdentityMap

IN_MEMORY = (list, tuple, dict, range, str, bytes, bytearray)  # these cause no reads
PATHS = (str, bytes, os.PathLike)
NAME_BYTES = 200  # of a name's readable part; a longer one ends in a digest


class Registration:
    """A registered dataset. epochs: how many iterations over it have begun; last: the serial number
    of the loader's link that began the latest one; where: see _where; searched: whether
    _locate_parts has run."""
    __slots__ = ("number", "length", "name", "epochs", "last", "where", "searched")

    def __init__(self, number, length, name):
        self.number, self.length, self.name = number, length, name
        self.epochs, self.last, self.where, self.searched = 0, None, None, False


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
        known.number, known.where, known.searched = number, None, False
        _by_number[number] = known


def name_of(dataset, length):
    """A name that is the same in each process and run of a job, and another one for other data."""
    text = "%s(%d)" % (_described(dataset), length)
    encoded = text.encode("utf-8", "backslashreplace").replace(b"\0", b"?")
    if len(encoded) > NAME_BYTES:
        encoded = encoded[:NAME_BYTES] + b"#" + hashlib.sha1(encoded).hexdigest().encode()
    return encoded


def _described(dataset):
    kind = type(dataset)
    # In a spawned worker the job's script is called __mp_main__.
    words = [kind.__module__.replace("__mp_main__", "__main__") + "." + kind.__qualname__]
    if kind is torch_datasets.Subset:
        words += [_digest(dataset.indices), _described(dataset.dataset)]
    elif kind is torch_datasets.ConcatDataset:
        words += ["%s(%d)" % (_described(part), len(part)) for part in dataset.datasets]
    else:
        attributes = getattr(dataset, "__dict__", {})
        for name in sorted(name for name in attributes if isinstance(name, str)):
            value = attributes[name]
            if isinstance(value, PATHS):
                value = os.fsdecode(value)
                if value and os.path.lexists(value):
                    value = os.path.abspath(value)
                words.append("%s=%s" % (name, value))
            elif isinstance(value, bool):
                words.append("%s=%s" % (name, value))
        samples = _samples(dataset)
        if samples:
            words += [os.fsdecode(samples[0][0]), os.fsdecode(samples[-1][0])]
    return " ".join(words)


def _digest(indices):
    try:
        numbers = array.array("q", _listed(indices))
        return hashlib.sha1(numbers.tobytes()).hexdigest()[:16]
    except TypeError:  # indices that are not whole numbers
        return str(len(indices))


def _listed(indices):
    return indices.tolist() if hasattr(indices, "tolist") else list(indices)


def _samples(dataset):
    """ImageFolder's `samples` (or `imgs`): a list of (path, class, ...), or None."""
    attributes = getattr(dataset, "__dict__", {})
    for name in ("samples", "imgs"):
        value = attributes.get(name)
        if (isinstance(value, (list, tuple)) and value
                and all(_starts_with_path(entry) for entry in (value[0], value[-1]))):
            return value
    return None


def _starts_with_path(entry):
    return isinstance(entry, (list, tuple)) and len(entry) > 0 and isinstance(entry[0], PATHS)


def _where(dataset):
    """A cheap fingerprint of the dataset's list of files, to notice when it is replaced."""
    if type(dataset) is torch_datasets.Subset:
        return id(dataset.indices), len(dataset.indices), _where(dataset.dataset)
    if type(dataset) is torch_datasets.ConcatDataset:
        return tuple(_where(part) for part in dataset.datasets)
    samples = _samples(dataset)
    return samples and (id(samples), len(samples), samples[0][0], samples[-1][0])


def _paths(dataset, length):
    """The file of each sample, None in the list where it is not known; None if none is known."""
    if type(dataset) is torch_datasets.Subset:
        inner = _paths(dataset.dataset, len(dataset.dataset))
        return inner and [inner[i] for i in _listed(dataset.indices)]
    if type(dataset) is torch_datasets.ConcatDataset:
        parts = [(len(part), _paths(part, len(part))) for part in dataset.datasets]
        if not any(paths for _, paths in parts):
            return None
        return [path for count, paths in parts for path in (paths or [None] * count)]
    samples = _samples(dataset)
    if samples is None or len(samples) != length:
        return None
    if not all(issubclass(kind, (list, tuple)) for kind in set(map(type, samples))):
        return None
    paths = [entry[0] for entry in samples if entry]
    if len(paths) != length or not all(issubclass(kind, PATHS) for kind in set(map(type, paths))):
        return None
    # A list of (text, label) looks the same.
    return paths if all(os.path.exists(path) for path in (paths[0], paths[-1])) else None


def _locate(known, dataset):
    try:
        if not known.searched:
            known.searched = True
            try:
                _locate_parts(known, dataset)
            except Exception as error:
                settings.debug("parts of %s are not located: %s" % (type(dataset).__name__, error))
        where = _where(dataset)
        if where == known.where:
            return
        known.where = where
        paths = _paths(dataset, known.length)
        if not paths or len(paths) != known.length:
            return
        for first, run in _runs(paths):
            sluice.locate_files(known.number, first, run)
    except Exception as error:  # malformed lists in the dataset
        settings.debug("%s is not located: %s" % (type(dataset).__name__, error))


def _locate_parts(known, dataset):
    """Locates samples that are rows of a mapped array, or LMDB records with a list of keys."""
    for first, part, indices in _parts(dataset):
        length = len(part)
        rows = arrays.rows(part, length)
        if rows is not None:
            sluice.locate_extents(known.number, first, rows.path,
                                  *rows.extents(range(length) if indices is None else indices))
            continue
        found = records.keys(part, length)
        if found is not None:
            path, keys = found
            sluice.locate_keys(known.number, first, path,
                               keys if indices is None else [keys[i] for i in indices])


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


def _runs(paths):
    """Yields (first, paths) of each run without None."""
    if None not in paths:
        yield 0, paths
        return
    first = None
    for position, path in enumerate(paths + [None]):
        if path is not None and first is None:
            first = position
        elif path is None and first is not None:
            yield first, paths[first:position]
            first = None
