"""webdataset: tar files that are read one after the other, in a shuffled order, by one process or by workers."""
import io
import os
import random
import tarfile

import torch
import webdataset
from cases import CLASSES, Training, augmented, case, data, expecting, main, states
from torch.utils.data import DataLoader

SHARDS, SAMPLES = 4, 30


def shards():
    return [os.path.join(data(), "tars", f"{number}.tar") for number in range(SHARDS)]


def make():
    """Adds to the data folder: tar files of samples that are two members each, and one that is cut off."""
    draw = random.Random(8)
    os.mkdir(os.path.join(data(), "tars"))
    for shard, path in enumerate(shards()):
        with tarfile.open(path, "w") as tar:
            for number in range(shard * SAMPLES, (shard + 1) * SAMPLES):
                for name, raw in (("raw", draw.randbytes(40000 + draw.randrange(20000))), ("cls", b"%d" % (number % CLASSES))):
                    member = tarfile.TarInfo(f"{number:05}.{name}")
                    member.size = len(raw)
                    tar.addfile(member, io.BytesIO(raw))
    with open(shards()[0], "rb") as whole, open(os.path.join(data(), "tars", "cut.tar"), "wb") as cut:
        cut.write(whole.read()[:700001])


def sample(found):
    index = int(found["__key__"])
    return index, augmented(found["raw"], index), int(found["cls"])


def dataset(urls=None, shuffle=0, **more):
    made = webdataset.WebDataset(urls or shards(), shardshuffle=SHARDS if shuffle else False, seed=3, empty_check=False,
                                 **more)
    return (made.shuffle(shuffle, rng=random.Random(4)) if shuffle else made).map(sample)


def trained(shuffle=0, workers=0, **more):
    loader, training = DataLoader(dataset(shuffle=shuffle), batch_size=8, num_workers=workers, **more), Training()
    return training.epoch(loader).epoch(loader, 3).epoch(loader).result()


for _workers in (0, 2):
    case(f"in-order-{_workers}", workers=_workers)(trained)
    case(f"shuffled-{_workers}", shuffle=40, workers=_workers)(trained)
case("persistent", shuffle=40, workers=2, persistent_workers=True)(trained)


@case("loader", 0)
@case("loader-workers", 2)
def web_loader(workers):
    """webdataset's own loader, whose workers make the batches, which are mixed again."""
    loader = webdataset.WebLoader(dataset(shuffle=20).batched(6), batch_size=None, num_workers=workers)
    loader, training = loader.unbatched().shuffle(30, rng=random.Random(9)).batched(8), Training()
    for indices, pixels, labels in loader:
        training.step((torch.as_tensor(indices), torch.as_tensor(pixels), torch.as_tensor(labels)))
    return training.result()


@case("cut", False)
@case("cut-ignored", True)
def cut(ignored):
    handler = webdataset.ignore_and_continue if ignored else webdataset.reraise_exception
    files, seen, result = [shards()[1], os.path.join(data(), "tars", "cut.tar"), shards()[2]], [], {}
    with expecting(result):
        for index, pixels, label in dataset(files, handler=handler):
            seen.append([index, pixels.sum().item().hex(), label])
    return {"seen": seen, **result, "states": states()}


if __name__ == "__main__":
    main(make=make)
