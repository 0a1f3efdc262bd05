"""What the adapter remembers of the job's objects, without a trace on them."""
import weakref


class IdentityMap:
    """Values by the identity of their key, whatever its class thinks of == and hash(). An entry
    goes with its key, which it does not keep alive: no value may hold its key."""

    def __init__(self):
        self._entries = {}

    def get(self, key):
        entry = self._entries.get(id(key))
        return entry[1] if entry is not None and entry[0]() is key else None

    def put(self, key, value):
        """TypeError if `key` is of a kind that cannot be referred to weakly."""
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
