"""Plain reading at depth: read_at_depth.py THREADS FILE... Blocks of 1 MiB, as many at once as threads."""
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy
from timed import Load

BLOCK = 1 << 20
depth, paths = int(sys.argv[1]), sys.argv[2:]
local = threading.local()
lock = threading.Lock()

load = Load()


def read(opened, offset, size):
    if not hasattr(local, "buffer"):
        local.buffer = numpy.empty(BLOCK // 8, numpy.int64)
    local.buffer[(size - 1) // 8:] = 0
    part = memoryview(local.buffer).cast("B")[:size]
    got = 0
    while got < size:
        got += os.preadv(opened, [part[got:]], offset + got)
    total = int(local.buffer[:(size + 7) // 8].sum())
    with lock:
        load.add(size, total)


with ThreadPoolExecutor(depth) as pool:
    for path in paths:
        opened = os.open(path, os.O_RDONLY)
        size = os.fstat(opened).st_size
        list(pool.map(lambda at: read(opened, at, min(BLOCK, size - at)), range(0, size, BLOCK)))
        os.close(opened)
load.end()
