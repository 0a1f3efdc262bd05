"""LMDB by PyPI's lmdb, which carries its own LMDB."""
import os

import lmdb
from cases import CLASSES, Training, augmented, case, data, digest, expecting, main, work
from torch.utils.data import DataLoader, Dataset


def path():
    return os.path.join(data(), "records.lmdb")


class Records(Dataset):
    """Opened where it is read. keys: whether it has a list of them."""

    def __init__(self, keys=True, buffers=False, each=False):
        self.path, self.buffers, self.each, self.environment = path(), buffers, each, None
        with lmdb.open(self.path, readonly=True, lock=False) as environment, environment.begin() as transaction:
            self.length = transaction.stat()["entries"]
            if keys:
                self.keys = [bytes(key) for key in transaction.cursor().iternext(values=False)]

    def __len__(self):
        return self.length

    def open(self):
        return lmdb.open(self.path, readonly=True, lock=False, readahead=False, max_spare_txns=2)

    def read(self, environment, index):
        with environment.begin(buffers=self.buffers) as transaction:
            return bytes(transaction.get(b"%05d" % index))

    def __getitem__(self, index):
        if self.each:
            with self.open() as environment:
                raw = self.read(environment, index)
        else:
            if self.environment is None:
                self.environment = self.open()
            raw = self.read(self.environment, index)
        return index, augmented(raw, index), index % CLASSES


class Together(Records):
    """A transaction and a cursor for a batch."""

    def __getitems__(self, indices):
        if self.environment is None:
            self.environment = self.open()
        with self.environment.begin(buffers=self.buffers) as transaction:
            pairs = transaction.cursor().getmulti([b"%05d" % index for index in indices])
            found = {int(bytes(key)): bytes(value) for key, value in pairs}
        return [(index, augmented(found[index], index), index % CLASSES) for index in indices]


class Opened(Records):
    """Opened once, with a transaction that lasts."""

    def __init__(self):
        super().__init__()
        self.environment = self.open()
        self.transaction = self.environment.begin(buffers=True)

    def __getitem__(self, index):
        return index, augmented(bytes(self.transaction.get(b"%05d" % index)), index), index % CLASSES


DATASETS = {"keys": Records, "no-keys": lambda: Records(keys=False), "buffers": lambda: Records(buffers=True),
            "each": lambda: Records(each=True), "together": Together, "together-buffers": lambda: Together(buffers=True)}


def trained(kind, **more):
    loader, training = DataLoader(DATASETS[kind](), batch_size=8, shuffle=True, **more), Training()
    for _ in range(3):
        training.epoch(loader)
    return training.result()


for _kind in DATASETS:
    for _workers in (0, 2):
        case(f"{_kind}-{_workers}", _kind, num_workers=_workers)(trained)
case("spawn", "keys", num_workers=1, persistent_workers=True, multiprocessing_context="spawn")(trained)
case("persistent", "together", num_workers=2, persistent_workers=True)(trained)


@case("opened")
def opened():
    loader, training = DataLoader(Opened(), batch_size=8, shuffle=True), Training()
    return training.epoch(loader).epoch(loader).result()


@case("cursor")
def cursor():
    """Scans, ranges, a step back, and what is not there."""
    found = []
    with lmdb.open(path(), readonly=True, lock=False) as environment:
        with environment.begin(buffers=True) as transaction:
            place = transaction.cursor()
            found.append([(bytes(key), len(value)) for key, value in place])
            found += [place.set_range(b"00050"), bytes(place.key()), place.prev(), bytes(place.key()), place.set_key(b"x"),
                      place.last(), bytes(place.key()), environment.flags(), transaction.get(b"none"),
                      transaction.get(b"none", b"default")]
            found.append([bytes(value) for value in place.iterprev(keys=False)])
        found.append(environment.stat())
    return {"found": digest(found)}


@case("written")
def written():
    """An environment that is written while a reader has an older state."""
    folder, found = os.path.join(work(), "written"), []
    with lmdb.open(folder, map_size=1 << 24, max_dbs=2) as environment:
        other = environment.open_db(b"other")
        for number in range(100):
            with environment.begin(write=True) as transaction:
                transaction.put(b"%03d" % number, bytes([number]) * 3000)
                transaction.put(b"n", b"%d" % number, db=other)
        before = environment.begin(buffers=True)
        with environment.begin(write=True) as transaction:
            found.append([transaction.delete(b"%03d" % number) for number in range(0, 100, 3)])
            transaction.put(b"050", b"new")
        found.append([bytes(value) for _, value in before.cursor()])
        before.abort()
        with environment.begin(db=other) as transaction:
            found.append(transaction.get(b"n"))
        with environment.begin() as transaction:
            found.append([(key, digest(value)) for key, value in transaction.cursor()])
        result = {}
        with expecting(result):
            with environment.begin(write=True) as transaction:
                transaction.put(b"large", bytes(1 << 25))
        found.append(environment.info()["last_pgno"])
    return {**result, "found": digest(found)}


@case("misused")
def misused():
    results = []
    with lmdb.open(path(), readonly=True, lock=False) as environment:
        transaction = environment.begin()
        for act in (lambda: environment.begin(write=True), lambda: transaction.put(b"a", b"b"), lambda: transaction.get(b""),
                    lambda: lmdb.open(path() + ".none", readonly=True), lambda: lmdb.open(path(), readonly=True, lock=False)):
            results.append({})
            with expecting(results[-1]):
                act()
        transaction.abort()
    return {"results": results}


if __name__ == "__main__":
    main()
