"""Samples that are records of an LMDB, where the dataset has the list of their keys."""
import os
import sys

_LISTS = (list, tuple)


def keys(dataset, length):
    """(path of data.mdb, keys) if the dataset has an LMDB and a list of `length` keys; or None."""
    attributes = getattr(dataset, "__dict__", {})
    found = None
    for value in list(attributes.values()):
        if type(value) in _LISTS and len(value) == length and _are_keys(value):
            if found is not None:
                return None  # captions, say: which of the lists has the keys is not known
            found = value
    path = found and _database(attributes)
    if not path:
        return None
    return path, [key.encode() if type(key) is str else bytes(key) for key in found]


def _are_keys(values):
    kinds = set(map(type, values))
    return bool(kinds) and kinds <= {str, bytes} and all(0 < len(value) <= 511 for value in values)


def _database(attributes):
    lmdb = sys.modules.get("lmdb")
    if lmdb is None:
        return None
    for value in list(attributes.values()):
        if type(value) is lmdb.Environment:
            try:
                return _file(value.path())
            except lmdb.Error:  # closed
                continue
    for value in list(attributes.values()):
        if isinstance(value, (str, bytes, os.PathLike)) and value:
            path = _file(value)
            if path:
                return path
    return None


def _file(path):
    """Decides by the name alone: opening and closing a file would release the job's locks on it."""
    path = os.fsencode(path)
    for name in (os.path.join(path, b"data.mdb"), path):
        if name.endswith((b".mdb", b".lmdb")) and os.path.isfile(name):
            return name
    return None
