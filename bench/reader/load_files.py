"""A loader-only PyTorch job over a folder of classes of files: shuffled, whole files, no decoding.

load_files.py FOLDER EPOCHS SEED [WORKERS [own]]: before each epoch it says so and waits for a line of input;
at the end it prints one JSON object: seconds, bytes and digest of each epoch. The dataset says where
its samples are as ImageFolder does (`samples`). `own`: the sampler has a generator of its own, so that each
epoch's order follows from the one before.
"""
import hashlib
import json
import os
import sys
import time

import torch
from torch.utils.data import DataLoader

from whole_files import Files, check

WORKERS, BATCH = 4, 64  # workers, if it is not said how many


def main():
    torch.manual_seed(int(sys.argv[3]))
    torch.set_num_threads(1)
    workers = int(sys.argv[4]) if len(sys.argv) > 4 else WORKERS
    own = torch.Generator().manual_seed(int(sys.argv[3])) if sys.argv[5:] == ["own"] else None
    loader = DataLoader(Files(sys.argv[1]), batch_size=BATCH, shuffle=True, num_workers=workers,
                        generator=own, collate_fn=check)
    passes = []
    for epoch in range(int(sys.argv[2])):
        print(f"ready {epoch}", file=sys.stderr, flush=True)
        sys.stdin.readline()
        digest, size, started = hashlib.sha256(), 0, time.monotonic()
        for batch in loader:
            digest.update(repr(batch).encode())
            size += sum(one[0] for one in batch)
        passes.append({"seconds": time.monotonic() - started, "bytes": size,
                       "digest": digest.hexdigest()[:16]})
    print(json.dumps({"pid": os.getpid(), "passes": passes}))


if __name__ == "__main__":
    main()
