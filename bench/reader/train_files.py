"""Trains a small convolutional network on Fashion-MNIST stored as one padded file an image.

train_files.py FOLDER EPOCHS: prints one JSON object: the seconds of each epoch, and the loss of each
batch to the last digit.
"""
import hashlib
import json
import os
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from fashion import SIDE, samples_of

WORKERS, BATCH = 4, 64


class Images(Dataset):
    def __init__(self, root):
        self.samples = samples_of(root)

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        with open(path, "rb") as file:
            pixels = bytearray(file.read()[:SIDE * SIDE])
        return torch.frombuffer(pixels, dtype=torch.uint8).view(1, SIDE, SIDE) / 255.0, label


def main():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2),
                          nn.ReLU(), nn.Flatten(), nn.Linear(16 * 6 * 6, 10))
    descent = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader = DataLoader(Images(sys.argv[1]), batch_size=BATCH, shuffle=True, num_workers=WORKERS)
    passes, losses = [], hashlib.sha256()
    for _ in range(int(sys.argv[2])):
        started, last = time.monotonic(), 0.0
        for images, labels in loader:
            descent.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            descent.step()
            last = loss.item()
            losses.update(last.hex().encode())
        passes.append({"seconds": time.monotonic() - started, "loss": last})
    print(json.dumps({"pid": os.getpid(), "passes": passes, "digest": losses.hexdigest()[:16]}))


if __name__ == "__main__":
    main()
