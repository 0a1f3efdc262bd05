"""Lists a safetensors file's tensors and reads one of them: open_header.py FILE. Goes on with other work for two
seconds, in which nothing else of the file is read."""
import sys
import time

from safetensors import safe_open
from timed import Load

load = Load()
with safe_open(sys.argv[1], framework="pt") as opened:
    names = list(opened.keys())
    load.tensor(opened.get_tensor(next(name for name in names if "layers.0.mlp" in name)))
    time.sleep(2)
load.end()
