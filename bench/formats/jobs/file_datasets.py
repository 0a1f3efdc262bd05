"""Datasets of image files, each written as people write them. All have the same samples: (sum of the file's words,
its class)."""
import csv
import os

import numpy
import torch
from torch.utils.data import ConcatDataset, Dataset, Subset


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    return len(data), int(numpy.frombuffer(data, numpy.uint8, len(data) // 8 * 8).view(numpy.int64).sum())


class Listed(Dataset):
    """A list of paths, under a name of its own."""

    def __init__(self, root):
        with open(os.path.join(root, "labels.csv"), newline="", encoding="utf-8") as table:
            rows = list(csv.DictReader(table))
        self.files = [os.path.join(root, "images", row["file"]) for row in rows]
        self.labels = [int(row["label"]) for row in rows]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return *read(self.files[index]), self.labels[index]


class Mapped(Dataset):
    """A dict of records by number."""

    def __init__(self, root):
        with open(os.path.join(root, "labels.csv"), newline="", encoding="utf-8") as table:
            self.records = {number: {"label": int(row["label"]), "image": row["file"]}
                            for number, row in enumerate(csv.DictReader(table))}
        self.folder = os.path.join(root, "images")

    def __len__(self):
        return len(self.records)

    def __getitem__(self, index):
        record = self.records[index]
        return *read(os.path.join(self.folder, record["image"])), record["label"]


class Framed(Dataset):
    """A data frame, as PyTorch's own tutorial has it."""

    def __init__(self, root):
        import pandas
        self.img_labels = pandas.read_csv(os.path.join(root, "labels.csv"))
        self.img_dir = os.path.join(root, "images")

    def __len__(self):
        return len(self.img_labels)

    def __getitem__(self, index):
        return *read(os.path.join(self.img_dir, self.img_labels.iloc[index, 0])), int(self.img_labels.iloc[index, 1])


class Ruled(Dataset):
    """Files by number: the dataset has their folder alone."""

    def __init__(self, root):
        self.root = os.path.join(root, "numbered")
        self.count = len(os.listdir(self.root))

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return *read(f"{self.root}/{index:06d}.bmp"), 0


class Tabled(Dataset):
    """The rows of a CSV file, as text, and the folder beside it."""

    def __init__(self, root):
        with open(os.path.join(root, "labels.csv"), encoding="utf-8") as table:
            self.lines = table.read().splitlines()[1:]
        self.root = root

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        name, label = self.lines[index].split(",")
        return *read(os.path.join(self.root, "images", name)), int(label)


class ImageFolder(Dataset):
    """What torchvision's class of this name has, for where there is no torchvision."""

    def __init__(self, root):
        self.root = root
        self.classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        self.samples = [(os.path.join(root, name, file), self.class_to_idx[name]) for name in self.classes
                        for file in sorted(os.listdir(os.path.join(root, name)))]
        self.targets = [target for _, target in self.samples]
        self.imgs = self.samples
        self.loader = read

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, target = self.samples[index]
        return *self.loader(path), target


class Halved(ImageFolder):
    """A subclass that gives a part of the files, by an index of its own."""

    def __init__(self, root):
        super().__init__(os.path.join(root, "classes"))
        self.part = [number for number, target in enumerate(self.targets) if target % 2 == 0]

    def __len__(self):
        return len(self.part)

    def __getitem__(self, index):
        return super().__getitem__(self.part[index])


class Transformed(Dataset):
    """A wrapper around another dataset."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        return self.dataset[index]


def nested(root):
    whole = Listed(root)
    order = torch.randperm(len(whole), generator=torch.Generator().manual_seed(5)).tolist()
    third = len(order) // 3
    return ConcatDataset([Subset(Transformed(whole), order[:third]),
                          Transformed(Subset(whole, order[third:]))])


class Decoded:
    """Takes the pixels of Hugging Face's images for what read() gives of files."""

    def __call__(self, batch):
        sums = [numpy.asarray(image).reshape(-1) for image in batch["image"]]
        return {"size": [pixels.nbytes for pixels in sums],
                "sum": [int(pixels[:pixels.nbytes // 8 * 8].view(numpy.int64).sum()) for pixels in sums],
                "label": batch["label"]}


def imagefolder(root):
    import datasets
    datasets.disable_progress_bars()
    loaded = datasets.load_dataset("imagefolder", data_dir=os.path.join(root, "classes"), split="train")
    return loaded.with_transform(Decoded())


KINDS = {"list": Listed, "dict": Mapped, "frame": Framed, "rule": Ruled, "csv": Tabled, "subclass": Halved,
         "imagefolder": imagefolder, "nested": nested}
