"""Reads every tensor of a GGUF file: load_gguf.py FILE."""
import sys

from gguf import GGUFReader
from timed import Load

load = Load()
for tensor in GGUFReader(sys.argv[1]).tensors:
    load.array(tensor.data)
load.end()
