"""A training with PyTorch 2 whose step is compiled by inductor, over samples in memory.

compiled_step.py KIND EPOCHS BATCHES: KIND is what is compiled, the `step` (the network with its loss) or the `network`
alone, whose loss is then computed outside. Prints one JSON object: of each epoch the median of its steps in seconds, each
with the wait for its batch, a digest of all losses, and what Dynamo counted. The first epoch compiles."""
import hashlib
import json
import statistics
import sys
import time

import torch
import torch._dynamo.utils
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH, SIDE, CLASSES, DISTINCT = 64, 32, 10, 512


class Images(Dataset):
    def __init__(self, length):
        generator = torch.Generator().manual_seed(1)
        self.images = [torch.rand(3, SIDE, SIDE, generator=generator) for _ in range(DISTINCT)]
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.images[index % DISTINCT], index % CLASSES


def main():
    kind, epochs, batches = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    torch.manual_seed(2)
    network = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Flatten(),
                            nn.Linear(32 * SIDE * SIDE // 16, CLASSES))
    descent = torch.optim.SGD(network.parameters(), lr=0.01)
    forward = torch.compile(network) if kind == "network" else network

    def with_loss(images, labels):
        return nn.functional.cross_entropy(forward(images), labels)

    step = torch.compile(with_loss) if kind == "step" else with_loss
    loader = DataLoader(Images(batches * BATCH), batch_size=BATCH, shuffle=True)
    passes, digest = [], hashlib.sha256()
    for _ in range(epochs):
        seconds, begun = [], time.perf_counter()
        for images, labels in loader:
            loss = step(images, labels)
            descent.zero_grad()
            loss.backward()
            descent.step()
            digest.update(loss.item().hex().encode())
            seconds.append(time.perf_counter() - begun)
            begun = time.perf_counter()
        passes.append(statistics.median(seconds))
    counters = torch._dynamo.utils.counters
    print(json.dumps({"passes": passes, "digest": digest.hexdigest(),
                      "dynamo": {name: dict(counters[name]) for name in ("frames", "stats", "graph_break", "recompiles")}}))


if __name__ == "__main__":
    main()
