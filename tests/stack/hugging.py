"""Hugging Face's datasets: Arrow files that are mapped, shuffled by lists of indices, and streams of local files."""
import glob
import os

import datasets
import torch
from cases import CLASSES, PIXELS, Training, augmented, case, data, digest, main, work
from datasets import Dataset, concatenate_datasets, interleave_datasets, load_dataset, load_from_disk
from PIL import Image
from torch.utils.data import DataLoader

ROWS = 160


def files():
    return sorted(glob.glob(os.path.join(data(), "images", "*", "*")))


def make():
    """Adds to the data folder: Arrow and Parquet files in several shards, and images."""
    raws = [open(path, "rb").read() for path in files()]
    whole = Dataset.from_list([{"index": number, "raw": raws[number % len(raws)], "label": number % CLASSES}
                               for number in range(ROWS)])
    whole.save_to_disk(arrow(), num_shards=3)
    os.mkdir(os.path.join(data(), "parquet"))
    for part in range(3):
        whole.shard(3, part).to_parquet(os.path.join(data(), "parquet", f"{part}.parquet"), batch_size=20)
    for number, raw in enumerate(raws[:40]):
        above = os.path.join(data(), "png", f"class-{number % 3}")
        os.makedirs(above, exist_ok=True)
        Image.frombytes("L", (32, 32), raw[:1024]).save(os.path.join(above, f"{number:03}.png"))


def arrow():
    return os.path.join(data(), "arrow")


def collate(rows):
    return (torch.tensor([row["index"] for row in rows]),
            torch.stack([augmented(bytes(row["raw"]), row["index"]) for row in rows]),
            torch.tensor([row["label"] for row in rows]))


def lines(streaming):
    parts = sorted(glob.glob(os.path.join(data(), "lines", "*.jsonl")))
    return load_dataset("json", data_files=parts, split="train", streaming=streaming)


MAPPED = {
    "plain": lambda d: d,
    "shuffled": lambda d: d.shuffle(seed=4),
    "shuffled-twice": lambda d: d.shuffle(seed=4).shuffle(seed=5),
    "selected": lambda d: d.select(range(150, 10, -3)),
    "contiguous": lambda d: d.select(range(20, 90)),
    "flattened": lambda d: d.shuffle(seed=4).flatten_indices(),
    "sharded": lambda d: d.shuffle(seed=4).shard(3, 1),
    "split": lambda d: d.train_test_split(0.3, seed=2)["train"],
    "sorted": lambda d: d.sort("label"),
    "filtered": lambda d: d.filter(lambda row: row["label"] != 1),
    "mapped": lambda d: d.map(lambda row: {"index": row["index"] + 1000}),
    "batch-mapped": lambda d: d.map(lambda rows: {"index": [i + 7 for i in rows["index"]]}, batched=True, batch_size=40),
    "renamed": lambda d: d.add_column("more", list(range(len(d)))).remove_columns("more"),
    "joined": lambda d: concatenate_datasets([d.shuffle(seed=1), d.select(range(30))]),
    "mixed": lambda d: interleave_datasets([d.shuffle(seed=1), d.shuffle(seed=2)], probabilities=[0.6, 0.4], seed=3),
    "numpy": lambda d: d.shuffle(seed=4).with_format("numpy"),
    "transformed": lambda d: d.with_transform(lambda rows: {name: list(reversed(values)) for name, values in rows.items()}),
    "memory": lambda d: load_from_disk(arrow(), keep_in_memory=True).shuffle(seed=4),
}


def trained(dataset, epochs=2, **more):
    training = Training()
    options = {} if isinstance(dataset, torch.utils.data.IterableDataset) else {"shuffle": True}
    loader = DataLoader(dataset, batch_size=8, collate_fn=collate, **options, **more)
    for epoch in range(epochs):
        if hasattr(dataset, "set_epoch"):
            dataset.set_epoch(epoch)
        training.epoch(loader)
    return training.result()


def mapped(kind, **more):
    dataset = MAPPED[kind](load_from_disk(arrow()))
    return {"length": len(dataset), **trained(dataset, **more)}


def streamed(make_stream, **more):
    dataset = make_stream(load_from_disk(arrow()))
    found = trained(dataset, **more)
    return {"first": [row["index"] for row in dataset.take(5)], **found}


STREAMED = {
    "stream": lambda d: d.to_iterable_dataset(num_shards=4),
    "stream-shuffled": lambda d: d.to_iterable_dataset(num_shards=4).shuffle(seed=3, buffer_size=30),
    "stream-part": lambda d: d.to_iterable_dataset(num_shards=2).shuffle(seed=3, buffer_size=10).skip(7).take(90),
    "stream-mapped": lambda d: d.to_iterable_dataset(num_shards=2).map(lambda row: {"label": (row["label"] + 1) % CLASSES}),
}
for _kind in MAPPED:
    for _workers in (0, 2) if _kind in ("plain", "shuffled", "flattened", "joined", "filtered") else (0,):
        case(f"{_kind}-{_workers}", _kind, num_workers=_workers)(mapped)
for _kind, _make in STREAMED.items():
    for _workers in (0, 2):
        case(f"{_kind}-{_workers}", _make, num_workers=_workers)(streamed)


@case("torch-0", 0)
@case("torch-2", 2)
def formatted(workers):
    """Its own __getitems__, with tensors."""
    numbers = range(len(files()))
    rows = {"pixels": [list(open(path, "rb").read(PIXELS)) for path in files()], "label": [i % CLASSES for i in numbers],
            "index": list(numbers)}
    dataset = Dataset.from_dict(rows)
    dataset.save_to_disk(os.path.join(work(), f"torch-{workers}"))
    dataset = load_from_disk(os.path.join(work(), f"torch-{workers}")).shuffle(seed=9).with_format("torch")
    loader, training = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=workers), Training()
    for _ in range(2):
        for batch in loader:
            training.step((batch["index"], batch["pixels"].float() / 255, batch["label"]))
    return training.result()


@case("json-mapped", False)
@case("json-streamed", True)
def texts(streaming):
    dataset = lines(streaming)
    shuffled = dataset.shuffle(seed=2, buffer_size=50) if streaming else dataset.shuffle(seed=2)
    rows = [[row["number"], row["text"]] for row in shuffled]
    return {"rows": digest(rows), "first": rows[:3], "batches": digest([len(batch["text"]) for batch in shuffled.iter(32)])}


@case("parquet-mapped", False)
@case("parquet-streamed", True)
def parquet(streaming):
    dataset = load_dataset("parquet", data_files=sorted(glob.glob(os.path.join(data(), "parquet", "*"))), split="train",
                           streaming=streaming)
    dataset = dataset.shuffle(seed=3, **({"buffer_size": 40} if streaming else {}))
    return trained(dataset, num_workers=2)


@case("resumed")
def resumed():
    """A stream that goes on from its state."""
    dataset, rows = STREAMED["stream-shuffled"](load_from_disk(arrow())), []
    for number, row in enumerate(dataset):
        rows.append(row["index"])
        if number == 70:
            state = dataset.state_dict()
            break
    again = STREAMED["stream-shuffled"](load_from_disk(arrow()))
    again.load_state_dict(state)
    return {"rows": rows, "state": digest(state), "rest": [row["index"] for row in again]}


@case("images")
def images():
    """A folder of images of classes."""
    dataset = load_dataset("imagefolder", data_dir=os.path.join(data(), "png"), split="train")
    rows = [[row["label"], digest(row["image"].tobytes())] for row in dataset.shuffle(seed=1)]
    return {"rows": digest(rows), "names": dataset.features["label"].names, "count": len(rows)}


def begin():
    datasets.disable_progress_bars()
    datasets.disable_caching()  # else it writes beside the data, which is read only


if __name__ == "__main__":
    main(before=begin, make=make)
