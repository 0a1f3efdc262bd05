"""Where a job's data lies: on the disk, read or evicted before, or on a fresh mount. Each is a context
manager that gives the folder as the job sees it."""
import contextlib
import os
import types

from bench.harm.gluster import Gluster
from bench.lib.storage import SlowMount


def below(folder):
    for above, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(above, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def read_all(folder):
    for path in below(folder):
        with open(path, "rb", buffering=0) as file:
            while file.read(8 << 20):
                pass


def evict(folder):
    """Its pages leave the page cache; names and attributes may stay."""
    for path in below(folder):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)  # pages that are not written yet would stay
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


class Grounds:
    """Opens grounds; ends the network file system, which several rows share, on exit."""

    def __init__(self, top):
        self.request = types.SimpleNamespace(data=top)  # for SlowMount: where mounts are made
        self.stack = contextlib.ExitStack()
        self.network = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    @contextlib.contextmanager
    def ready(self, ground, source):
        if ground.kind == "local":
            (read_all if ground.pages == "read" else evict)(source)
            yield source
        elif ground.kind == "slowfs":
            read_all(source)  # its sleeping is the storage
            with SlowMount(self, "harm", source, *ground.options) as mount:
                yield mount.folder
        else:
            if self.network is None:
                self.network = self.stack.enter_context(Gluster(self.request.data, ground.rate))
            with self.network.fresh(source) as folder:
                yield folder
