"""Trains a small network on folders of raw files, as ImageFolder would list them, with the loaders of
PyTorch 2. argv: a folder of datasets. Prints every loss exactly."""
import os
import sys

import torch
from torch.utils.data import DataLoader, Dataset

SIDE, CLASSES = 16, 4


class Folder(Dataset):
    def __init__(self, root):
        classes = sorted(os.listdir(root))
        self.samples = [(os.path.join(root, name, file), label) for label, name in enumerate(classes)
                        for file in sorted(os.listdir(os.path.join(root, name)))]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        with open(path, "rb") as file:
            pixels = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
        return pixels[:SIDE * SIDE].float() / 255, label


class Batched(Folder):
    """PyTorch 2 asks such a dataset for a whole batch at once."""

    def __getitems__(self, indices):
        return [self[index] for index in indices]


def train(dataset, workers):
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(SIDE * SIDE, 32), torch.nn.ReLU(),
                                torch.nn.Linear(32, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loader = DataLoader(dataset, batch_size=20, shuffle=True, num_workers=workers,
                        persistent_workers=workers > 0)
    for epoch in range(3):
        for pixels, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(pixels), labels)
            loss.backward()
            optimizer.step()
            print(epoch, float(loss).hex(), flush=True)
    print(torch.initial_seed(), torch.rand(1).item().hex())


def main():
    torch.set_num_threads(1)
    print(torch.__version__)
    for kind in (Folder, Batched):
        for workers in (0, 2):
            name = f"{kind.__name__}-{workers}"
            print(name)
            train(kind(os.path.join(sys.argv[1], name)), workers)


if __name__ == "__main__":
    main()
