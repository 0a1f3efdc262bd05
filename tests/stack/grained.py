"""grain: its DataLoader and its datasets, read by threads or processes."""
import numpy
import torch
from absl import flags
from cases import CLASSES, PIXELS, Plain, Training, case, digest, main
from grain import python as grain


class Source:
    """A random access source of files."""

    def __init__(self):
        self.files = Plain()

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        number, pixels, label = self.files[index]
        return {"index": numpy.int64(number), "pixels": pixels.numpy(), "label": numpy.int64(label)}

    def __repr__(self):
        return "Source"


class Noisy(grain.RandomMapTransform):
    def random_map(self, element, rng):
        return {**element, "pixels": element["pixels"] + rng.random(PIXELS).astype("float32")}


def train(batches, most=None):
    training = Training()
    for number, batch in enumerate(batches, 1):
        training.step([torch.as_tensor(numpy.array(batch[name])) for name in ("index", "pixels", "label")])
        if number == most:
            break
    return training


def loader(workers, shuffle=True, epochs=2, **more):
    source = Source()
    sampler = grain.IndexSampler(len(source), shard_options=grain.NoSharding(), shuffle=shuffle, num_epochs=epochs, seed=7)
    return grain.DataLoader(data_source=source, sampler=sampler, worker_count=workers,
                            operations=[Noisy(), grain.Batch(8, drop_remainder=True)], **more)


def loaded(workers, **more):
    whole = train(loader(workers, **more)).result()
    iterator = iter(loader(workers, **more))
    first = train(iterator, 5).result()
    state = iterator.get_state()
    rest = train(iterator).result()
    again = iter(loader(workers, **more))
    again.set_state(state)
    return {"state": digest(state), "whole": whole, "first": first, "rest": rest, "again": train(again).result()}


def dataset(threads=1, ahead=2, workers=0):
    made = (grain.MapDataset.source(Source()).shuffle(seed=3).random_map(Noisy(), seed=5).repeat(2)
            .batch(8, drop_remainder=False))
    made = made.to_iter_dataset(grain.ReadOptions(num_threads=threads, prefetch_buffer_size=ahead))
    return made.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers)) if workers else made


def mixture():
    parts = [grain.MapDataset.source(Source()).shuffle(seed=seed)[part]
             for seed, part in ((1, slice(0, 90, 2)), (2, slice(60)))]
    return grain.MapDataset.mix(parts, weights=[0.7, 0.3]).repeat(1).batch(8).to_iter_dataset()


def filtered():
    some = grain.MapDataset.source(Source()).filter(lambda element: element["label"] != CLASSES - 1)
    return some.shuffle(seed=2).to_iter_dataset().batch(8)


def datasets(make, **more):
    whole = train(make(**more)).result()
    iterator = iter(make(**more))
    first = train(iterator, 4).result()
    state = iterator.get_state()
    again = iter(make(**more))
    again.set_state(state)
    return {"state": digest(state), "whole": whole, "first": first, "again": train(again).result()}


case("loader-0", 0)(loaded)
case("loader-threads", 0, read_options=grain.ReadOptions(num_threads=8, prefetch_buffer_size=16))(loaded)
case("loader-in-order", 0, shuffle=False, epochs=1)(loaded)
case("loader-workers", 2, worker_buffer_size=1)(loaded)
case("dataset", dataset)(datasets)
case("dataset-threads", dataset, threads=8, ahead=32)(datasets)
case("dataset-no-threads", dataset, threads=0, ahead=0)(datasets)
case("dataset-workers", dataset, workers=2)(datasets)
case("mixture", mixture)(datasets)
case("filtered", filtered)(datasets)

if __name__ == "__main__":
    flags.FLAGS.mark_as_parsed()
    main()
