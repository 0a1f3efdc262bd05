"""Describes a program's samples to Sluice: the functions of protocol/sluice.h, for Python 3.6+.

    import sluice

    files = sluice.dataset("train:/data/train", 50000)     # 50,000 samples, numbered from 0
    sluice.locate_files(files, 0, paths)                   # sample i is the whole file paths[i]
    sluice.publish_order(files, epoch, order, whole=True)  # what this epoch reads, in this order
    for index in order:
        with sluice.sample(files, index):                  # reads in this block are sample `index`
            consume(index)

The functions are looked up in the process, into which LD_PRELOAD loads libsluice.so. In a process
without the library `available` is False and every function does nothing and returns 0 (or None or
False, see there), so a program may call them whether it runs under Sluice or not.

All functions send hints: these change no byte that the program reads, and a wrong hint costs speed
only. They may be called from any thread, not from a signal handler. They retain no reference to
their arguments. They may wait for the optimizer, never for storage: 0.25 s for one answer; for
answers that do not come a process waits 0.5 s (SLUICE_PATIENCE), and later on less than 0.5 % of its time. select()
alone waits longer. Unless stated otherwise they return 0 or a negative errno, which may be ignored;
arguments of a wrong type raise TypeError or ValueError, before anything is sent. Indices,
positions, counts and epochs are whole numbers from 0.
"""
import array
import ctypes
import errno
import os

from ._library import absolute, encode, found, integers

__all__ = ["available", "begin", "dataset", "end", "fetch", "fetch_begin", "fetch_end", "importance",
           "locate_extent", "locate_extents", "locate_files", "locate_keys", "locate_parts", "located", "publish_order",
           "rank", "rank_of", "reads_for_others", "report_importance", "sample", "seed", "select", "selection", "serve",
           "substitutes", "take_opens", "tentative_orders", "waited", "wanted", "watch_opens"]

ORDER_WHOLE, ORDER_TENTATIVE = 1, 2  # SLUICE_ORDER_*
NO_LABEL = (1 << 32) - 1
# How a request for a sample is answered: SLUICE_SERVED_* of protocol/sluice.h.
SERVED_H, SERVED_EXACT, SERVED_SUBSTITUTED, SERVED_MISS, SERVED_MISS_OTHER = 0, 1, 2, 4, 5
LARGEST_CALL = 65536  # paths or keys passed in one call: bounds the copies made for it

_OPENS = ctypes.create_string_buffer(32768)
available = bool(found)


def begin(_dataset, _index):
    """begin(dataset, index): the calling thread is about to read sample `index`.

    What the thread opens and reads until end(dataset, index) is what the sample is made of. Cheap:
    less than a microsecond, no message. Begun samples of one thread may overlap, as where a batch
    is read with one call: a read then belongs to one of them, it is not specified to which."""
    return 0


def end(_dataset, _index):
    """end(dataset, index): the calling thread has read sample `index`; see begin."""
    return 0


def fetch_begin(_dataset):
    """fetch_begin(dataset): until fetch_end(dataset) the calling thread reads samples of the
    dataset and processes them as far as that needs their files (decodes a batch, for example).

    Only within a fetch or a begun sample may this thread's opens of the dataset's files lead to
    copies in memory. After the end, reads of a file that is still open read the file itself."""
    return 0


def fetch_end(_dataset):
    """fetch_end(dataset): see fetch_begin."""
    return 0


def wanted():
    """Whether begin and end are useful at present; may change from epoch to epoch. While they are
    not, they do nothing and may be left out."""
    return False


def _untyped(name, result):
    """The C function without declared argument types, for whole numbers from 0 to SMALL - 1: ctypes
    passes plain ints unconverted, in half the time of declared types."""
    function = ctypes.PyDLL(None)[name]
    function.restype = result
    return function


def _quick_next(number, index, previous):
    """sluice_next for a library without it."""
    if previous >= 0:
        quick_end(number, previous)
    quick_begin(number, index)
    return index


SMALL = 1 << 31  # a C int, which is what an int becomes without a declared type
quick_begin, quick_end, quick_next = begin, end, _quick_next

if available:  # the C functions themselves, without a Python function around them
    quick_begin, quick_end = _untyped("sluice_begin", None), _untyped("sluice_end", None)
    if "sluice_next" in found:
        quick_next = _untyped("sluice_next", ctypes.c_int)
    found["sluice_begin"].__doc__, found["sluice_end"].__doc__ = begin.__doc__, end.__doc__
    begin, end = found["sluice_begin"], found["sluice_end"]
    found["sluice_fetch_begin"].__doc__ = fetch_begin.__doc__
    found["sluice_fetch_end"].__doc__ = fetch_end.__doc__
    fetch_begin, fetch_end = found["sluice_fetch_begin"], found["sluice_fetch_end"]
    found["sluice_wanted"].__doc__ = wanted.__doc__
    wanted = found["sluice_wanted"]


class sample:  # used like a function: with sample(dataset, index)
    """A context that calls begin when it is entered and end when it is left, also by an error."""

    __slots__ = ("_dataset", "_index")

    def __init__(self, number, index):
        self._dataset, self._index = number, index

    def __enter__(self):
        begin(self._dataset, self._index)
        return self

    def __exit__(self, kind, value, trace):
        end(self._dataset, self._index)
        return False


class fetch:  # used like a function: with fetch(dataset)
    """A context that calls fetch_begin when it is entered and fetch_end when it is left."""

    __slots__ = ("_dataset",)

    def __init__(self, number):
        self._dataset = number

    def __enter__(self):
        fetch_begin(self._dataset)
        return self

    def __exit__(self, kind, value, trace):
        fetch_end(self._dataset)
        return False


def dataset(name, samples):
    """Registers a dataset of `samples` samples; returns its number (> 0) for the other functions.

    `name` (str or bytes, no NUL) identifies the dataset within a run, and in later runs, which use
    what this one learned of it: it should contain the class and what identifies its data. The same
    name gives the same number in every process of the job. 0 without the library."""
    if not available:
        return 0
    return found["sluice_dataset"](encode(name), samples)


def publish_order(number, epoch, indices, first=0, whole=False, tentative=False):
    """Epoch `epoch` reads the samples `indices` at its positions `first`, `first` + 1, ...

    `indices`: anything with a contiguous buffer of 64-bit integers (array('q'), a numpy int64
    array), which is not copied unless it is read-only, or any iterable of whole numbers. Replaces
    what was published for positions from `first` on. `whole`: the epoch ends after `indices`.
    `tentative`: the epoch, the next one, may not come, or in another order; see tentative_orders()."""
    if not available:
        return 0
    buffer, count = integers(indices)
    return found["sluice_order"](number, epoch, first, ctypes.addressof(buffer), count,
                                  (ORDER_WHOLE if whole else 0) | (ORDER_TENTATIVE if tentative else 0))


def tentative_orders():
    """Whether tentative orders are of use: with SLUICE_POLICY=lcache, where what an epoch reads is written to a log in
    the order of the next one."""
    return "sluice_tentative" in found and found["sluice_tentative"]() == 1


def locate_files(number, first, paths):
    """Samples `first`, `first` + 1, ... are the whole files `paths` (str, bytes or os.PathLike).

    Relative paths are resolved against the current directory, now."""
    if not available:
        return 0
    here = os.getcwdb() + b"/"
    for start in range(0, len(paths), LARGEST_CALL):
        encoded = absolute(paths[start:start + LARGEST_CALL], here)
        error = found["sluice_locate_files"](
            number, first + start, (ctypes.c_char_p * len(encoded))(*encoded), len(encoded))
        if error < 0:
            return error
    return 0


def locate_parts(number, first, *files):
    """Sample `first` + i is the whole files files[0][i], files[1][i], ...: up to four sequences of paths, as for
    locate_files, of equal length (of images and their masks, say). "" and None are no file; a sample without any stays
    unknown."""
    if "sluice_locate_parts" not in found or not files:
        return 0
    each, count = len(files), len(files[0])
    if any(len(some) != count for some in files):
        raise ValueError("not as many files of each kind")
    here = os.getcwdb() + b"/"
    for start in range(0, count, LARGEST_CALL // each):
        some = [part[start:start + LARGEST_CALL // each] for part in files]
        paths = some[0] if each == 1 else [path for parts in zip(*some) for path in parts]
        if None in paths:
            paths = [path or "" for path in paths]
        encoded = absolute(paths, here)
        error = found["sluice_locate_parts"](
            number, first + start, (ctypes.c_char_p * len(encoded))(*encoded), len(encoded) // each, each)
        if error < 0:
            return error
    return 0


def located(number):
    """The percentage of the dataset's samples whose location is known by now, rounded down: declared, learned from
    what was read, or stored by an earlier run. Asks the optimizer."""
    return found["sluice_located"](number) if "sluice_located" in found else 0


def watch_opens(on):
    """Collects, or no longer, the names of the files that the calling thread opens for reading, as far as they may be
    samples: on a mount that is staged. False if that is not possible: one thread of a process at a time can."""
    return "sluice_watch_opens" in found and found["sluice_watch_opens"](1 if on else 0) == 0


def take_opens():
    """The absolute paths, as str, that were collected for the calling thread since the last call, in their order."""
    size = found["sluice_take_opens"](_OPENS, len(_OPENS))
    return os.fsdecode(ctypes.string_at(_OPENS, size)).split("\0")[:-1] if size > 0 else []


def locate_extent(number, index, path, offset, length):
    """Sample `index` is the `length` bytes from byte `offset` on of the file `path`."""
    if not available:
        return 0
    return found["sluice_locate_extent"](
        number, index, os.path.abspath(encode(path)), offset, length)


def locate_extents(number, first, path, offsets, lengths):
    """Sample `first` + i is the `lengths[i]` bytes from byte `offsets[i]` on of the file `path`; a
    length of 0 skips the sample. `offsets` and `lengths`: sequences of whole numbers, of equal
    length; a sample's length is below 4 GiB."""
    if not available:
        return 0
    offsets, lengths = array.array("Q", offsets), array.array("I", lengths)
    if len(offsets) != len(lengths):
        raise ValueError("not as many lengths as offsets")
    return found["sluice_locate_extents"](
        number, first, os.path.abspath(encode(path)), offsets.buffer_info()[0],
        lengths.buffer_info()[0], len(offsets))


def locate_keys(number, first, path, keys):
    """Samples `first`, `first` + 1, ... are the records with the keys `keys` (a sequence of bytes)
    of the LMDB file `path` (data.mdb); an empty key skips its sample."""
    if not available:
        return 0
    path = os.path.abspath(encode(path))
    for start in range(0, len(keys), LARGEST_CALL):
        part = keys[start:start + LARGEST_CALL]
        lengths = (ctypes.c_uint32 * len(part))(*map(len, part))
        error = found["sluice_locate_keys"](number, first + start, path, b"".join(part),
                                             ctypes.addressof(lengths), len(part))
        if error < 0:
            return error
    return 0


def waited(nanoseconds):
    """The calling thread, a loop that takes what workers read, has waited so long, up to now, for
    its next batch. The stall of a job that calls this is these waits, otherwise its read times."""
    return found["sluice_waited"](nanoseconds) if "sluice_waited" in found else 0


def reads_for_others():
    """This process and those it forks read for a loop in another process that calls waited()."""
    return found["sluice_reads_for_others"]() if "sluice_reads_for_others" in found else 0


def importance():
    """The mode in SLUICE_IMPORTANCE: 0 off, 1 loss, 2 iis."""
    return found["sluice_importance"]() if "sluice_importance" in found else 0


def substitutes():
    """Whether the optimizer decides the order in which an epoch reads all its samples: SLUICE_SUBSTITUTE=any with
    SLUICE_POLICY=brand or pool."""
    return "sluice_substitutes" in found and found["sluice_substitutes"]() == 1


def _decides():
    return importance() >= 2 or substitutes()


class _Rule(ctypes.Structure):  # sluice_selection_rule
    _fields_ = (("warm_up", ctypes.c_uint32), ("full_every", ctypes.c_uint32), ("share", ctypes.c_double))


def selection():
    """(warm_up, full_every, share): how many samples epochs are to fetch. Those before epoch
    `warm_up`, and every `full_every`-th of the later ones (0: none), fetch all, the others `share`
    of them on average. None unless SLUICE_IMPORTANCE is iis. Ranks that need equally many batches
    follow it."""
    rule = _Rule()
    if "sluice_selection" not in found or found["sluice_selection"](ctypes.addressof(rule)) < 0:
        return None
    return rule.warm_up, rule.full_every, rule.share


def rank_of(name):
    """Declares this process a rank of the job `name` (str or bytes, no NUL): ranks on one host with
    the same name train one model and share importance values. Call it before reporting any."""
    return found["sluice_rank_of"](encode(name)) if "sluice_rank_of" in found else 0


def rank(number, ranks, on_host):
    """Declares this process rank `number` (from 0) of `ranks`, `on_host` of them on this host, that each train their own
    part of every epoch: where substitutes() is true, its part are its own chunks. Call it before select() and serve(),
    which are as the rank declared last. Below 0: it is none."""
    return found["sluice_rank"](number, ranks, on_host) if "sluice_rank" in found else -errno.ENOTSUP


def seed(value):
    """The seed of the job's own random numbers, from which select() chooses samples unless the user
    has specified another. Its lowest 64 bits are used. Call it before the first select()."""
    return found["sluice_seed"](value % (1 << 64)) if "sluice_seed" in found else 0


def report_importance(number, ids, values, labels=None):
    """The samples `ids` were trained, with the importance `values`: usually losses; higher is more.

    `ids`: as indices elsewhere; `values`: anything with a contiguous buffer of 64-bit floats, or
    any iterable of numbers, as many. A value replaces the sample's previous one; NaN and infinite
    ones are ignored. `labels`: the samples' classes, as many whole numbers, below 0 where not
    known; SLUICE_IMPORTANCE=iis:substitute=class uses them. No effect in mode off."""
    if not importance():
        return 0
    indices, count = integers(ids)
    values = array.array("d", values)
    if len(values) != count:
        raise ValueError("not as many values as ids")
    where = ctypes.addressof(indices), values.buffer_info()[0]
    if labels is None:
        return found["sluice_report_importance"](number, *where, count)
    labels = array.array("I", [label if 0 <= label < NO_LABEL else NO_LABEL for label in labels])
    if len(labels) != count:
        raise ValueError("not as many labels as ids")
    return found["sluice_report_labelled"](number, *where, labels.buffer_info()[0], count)


def select(number, epoch, candidates):
    """Which of the dataset's samples epoch `epoch` is to fetch: a bytearray with 1 or 0 for each.
    None: all of them, because SLUICE_IMPORTANCE is not iis and substitutes() is false, or the optimizer did not answer.
    `candidates`: a bytearray as long as the dataset, 0 for samples outside the job's part. It waits
    while the optimizer works on its answer: some 0.2 s for a million samples, five seconds at most."""
    if not candidates or not _decides():
        return None
    chosen = bytearray(candidates)
    buffer = (ctypes.c_uint8 * len(chosen)).from_buffer(chosen)
    error = found["sluice_select"](number, epoch, ctypes.addressof(buffer), len(chosen))
    return chosen if error == 0 else None


def serve(number, epoch, first, requested):
    """(samples, how): what is to be read and trained at positions `first`, `first` + 1, ... of
    epoch `epoch`, where the job's order has `requested`; how: a SERVED_* for each, in a bytearray.
    Call it after select(), for the epoch's positions in order, each once, some thousands at a time.
    An epoch gets no sample twice unless it requests one twice. None: train what was requested,
    because neither is so, or the optimizer did not answer."""
    if "sluice_serve" not in found or not _decides():
        return None
    samples = array.array("Q", requested)
    how = bytearray(len(samples))
    if not samples:
        return samples, how
    buffer = (ctypes.c_uint8 * len(how)).from_buffer(how)
    error = found["sluice_serve"](number, epoch, first, samples.buffer_info()[0],
                                   ctypes.addressof(buffer), len(samples))
    return (samples, how) if error == 0 else None
