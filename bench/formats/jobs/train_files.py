"""The first epoch over a dataset of files: train_files.py KIND FOLDER."""
import sys

import torch
from file_datasets import KINDS
from timed import Load
from torch.utils.data import DataLoader

torch.set_num_threads(1)
torch.manual_seed(3)
dataset = KINDS[sys.argv[1]](sys.argv[2])
loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=8)
load = Load()
for batch in loader:
    sizes, sums = (batch["size"], batch["sum"]) if isinstance(batch, dict) else batch[:2]
    load.add(int(sizes.sum()), int(sums.sum()))
load.end()
