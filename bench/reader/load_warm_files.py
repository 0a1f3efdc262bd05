"""A loader-only PyTorch job over a folder of files: shuffled, 4 workers, batches of 64, no decoding.

load_warm_files.py FOLDER: reads one epoch for each line of input and prints a JSON object for each: its
seconds and digest, and whether Sluice's adapter is there.
"""
import hashlib
import json
import sys
import time

import torch
from torch.utils.data import DataLoader

from whole_files import Files, check

WORKERS, BATCH = 4, 64


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    loader = DataLoader(Files(sys.argv[1]), batch_size=BATCH, shuffle=True, num_workers=WORKERS,
                        collate_fn=check, persistent_workers=True)
    for _ in sys.stdin:
        digest, started = hashlib.sha256(), time.monotonic()
        for batch in loader:
            digest.update(repr(batch).encode())
        print(json.dumps({"seconds": time.monotonic() - started,
                          "digest": digest.hexdigest()[:16],
                          "adapter": "sluice_torch.loader" in sys.modules}), flush=True)


if __name__ == "__main__":
    main()
