"""Trains a small network on all of Fashion-MNIST, one file an image, and says how good it became.

train_accuracy.py FOLDER MODEL EPOCHS SEED: MODEL is `shufflenet` (grouped 1 x 1 convolutions, channel shuffle, depthwise
3 x 3), `resnet` (residual blocks) or `vgg` (plain convolutions), of a size that one processor trains. Prints one JSON
object: the top-1 accuracy on the test images after the last epoch in percent, and the seconds and the samples of each
epoch.
"""
import gzip
import json
import os
import sys
import time

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

from fashion import SIDE, samples_of

SOURCE = "/usr/share/datasets/fashion-mnist"
BATCH, GROUPS, RATE = 256, 4, 0.1


class Images(Dataset):
    def __init__(self, root):
        self.samples = samples_of(root)

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        with open(path, "rb", buffering=0) as file:
            pixels = bytearray(file.read(SIDE * SIDE))
        return torch.frombuffer(pixels, dtype=torch.uint8).view(1, SIDE, SIDE), label


class ShuffleUnit(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.before = nn.Sequential(nn.Conv2d(channels, channels, 1, groups=GROUPS, bias=False),
                                    nn.BatchNorm2d(channels), nn.ReLU())
        self.after = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False),
            nn.BatchNorm2d(channels),
            nn.Conv2d(channels, channels, 1, groups=GROUPS, bias=False), nn.BatchNorm2d(channels))

    def forward(self, values):
        inner = self.before(values)
        count, channels, height, width = inner.shape
        inner = inner.view(count, GROUPS, channels // GROUPS, height, width).transpose(1, 2)
        return torch.relu(values + self.after(inner.reshape(count, channels, height, width)))


class Residual(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(inside, outside, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outside), nn.ReLU(),
            nn.Conv2d(outside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside))
        self.outer = nn.Identity() if inside == outside and stride == 1 else nn.Sequential(
            nn.Conv2d(inside, outside, 1, stride=stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, values):
        return torch.relu(self.inner(values) + self.outer(values))


def model_of(name):
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    if name == "shufflenet":
        return nn.Sequential(nn.Conv2d(1, 24, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(24),
                             nn.ReLU(), nn.AvgPool2d(2), ShuffleUnit(24), ShuffleUnit(24),
                             ShuffleUnit(24), *head, nn.Linear(24, 10))
    if name == "vgg":
        return nn.Sequential(nn.Conv2d(1, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                             nn.Conv2d(16, 32, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
                             nn.Flatten(), nn.Linear(32 * 7 * 7, 10))
    return nn.Sequential(nn.Conv2d(1, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8),
                         nn.ReLU(), Residual(8, 8, 1), Residual(8, 16, 2), *head, nn.Linear(16, 10))


def scaled(images):
    return (images.float() / 255 - 0.286) / 0.353


def test_images():
    with gzip.open(os.path.join(SOURCE, "t10k-images-idx3-ubyte.gz")) as file:
        images = torch.frombuffer(bytearray(file.read()[16:]), dtype=torch.uint8)
    with gzip.open(os.path.join(SOURCE, "t10k-labels-idx1-ubyte.gz")) as file:
        labels = torch.frombuffer(bytearray(file.read()[8:]), dtype=torch.uint8)
    return images.view(-1, 1, SIDE, SIDE), labels.long()


def accuracy(model):
    images, labels = test_images()
    model.eval()
    with torch.no_grad():
        right = sum((model(scaled(some)).argmax(1) == own).sum().item()
                    for some, own in zip(images.split(1000), labels.split(1000)))
    return 100 * right / len(labels)


def main():
    folder, name, epochs, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    # On a processor in half the time of the other layout.
    model = model_of(name).to(memory_format=torch.channels_last)
    descent = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9, weight_decay=5e-4)
    # By epochs, which has as many steps whatever an epoch fetches.
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(descent, epochs)
    loader = DataLoader(Images(folder), batch_size=BATCH, shuffle=True)
    passes = []
    for _ in range(epochs):
        started, samples = time.monotonic(), 0
        model.train()
        for images, labels in loader:
            descent.zero_grad()
            cross_entropy(model(scaled(images)), labels).backward()
            descent.step()
            samples += len(labels)
        schedule.step()
        passes.append({"seconds": time.monotonic() - started, "samples": samples})
    print(json.dumps({"pid": os.getpid(), "top1": accuracy(model), "passes": passes}))


if __name__ == "__main__":
    main()
