"""torch.load of a state dictionary: load_torch.py mmap|read FILE."""
import sys

import torch
from timed import Load

load = Load()
state = torch.load(sys.argv[2], mmap=sys.argv[1] == "mmap", weights_only=True)
for tensor in state.values():
    load.tensor(tensor)
load.end()
