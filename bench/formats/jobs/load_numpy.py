"""Reads a mapped .npy file in batches of rows: load_numpy.py FILE."""
import sys

import numpy
from timed import Load

BATCH = 1024  # rows

load = Load()
weights = numpy.load(sys.argv[1], mmap_mode="r")
for first in range(0, len(weights), BATCH):
    load.array(weights[first:first + BATCH])
load.end()
