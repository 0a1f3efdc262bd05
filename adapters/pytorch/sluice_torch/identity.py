"""Data of the adapter about objects of the job, stored without modifying them."""
import weakref


class IdentityMap:
    """Values by the identity of their key, independent of its == and hash(). An entry is removed
    when its key dies; it does not extend the key's life, so no value may refer to its key."""

    def __init__(self):
        self._entries = {}

    def get(self, key):
        entry = self._entries.get(id(key))
        return entry[1] if entry is not None and entry[0]() is key else None

    def put(self, key, value):
        """TypeError if `key` does not support weak references."""
        name, entries = id(key), self._entries

        def gone(reference):
            entry = entries.get(name)
            if entry is not None and entry[0] is reference:
                del entries[name]

        entries[name] = (weakref.ref(key, gone), value)

    def drop(self, key):
        self._entries.pop(id(key), None)

    def __len__(self):
        return len(self._entries)
