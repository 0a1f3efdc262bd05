"""Learns where a dataset's samples are from the first ones that are read: their files, as opened, are compared with
what the dataset has (columns.py), with the sample's number, with the tables that it names and with the order of their
folder (rules.py). What explains them is declared for all samples; it is wrong only if it explained the first by chance,
and then the optimizer discards it.

One process of a job's loader learns: its first worker, or the job itself where it has no workers."""
import _thread
import itertools
import os
import re

from torch.utils.data import _utils

from . import columns, guesses, rules, settings, tree
from .bindings import sluice

MOST_SAMPLES = 1 << 22
ATTEMPTS = (2, 3, 4, 6, 9, 14, 24, 48)  # after so many samples whose files are known
PATIENT = 6  # samples after which what is known is declared, though it is not known for all parts of the dataset
WHOLE_ATTEMPTS = 3  # with batches that are read with one call
CHECKED = 32  # samples that are compared with what was learned, once it is declared
CORRECTIONS = 2
BLANK = 64  # samples of which no file was seen: they come from elsewhere
LOOKS = (1, 2, 5, 20)  # fetches at whose beginning it is asked what is known; the first are spared where it is inherited
SPARED = 2
CURIOUS = 4  # fetches that are watched though it is known: samples may read more than was guessed
KNOWN = 90  # percent of the samples
PROBED, MISSING = 4, 1  # files of a rule that are looked at, of which so many may be missing
TABLES = (".csv", ".tsv", ".txt", ".lst", ".jsonl")
MOST_TABLE = 16 << 20  # bytes
MOST_NAMES, MOST_NATURAL = 1_000_000, 100_000  # names of a folder that are listed, and sorted naturally
PIECE = sluice.LARGEST_CALL  # samples declared at a time


class Learner:
    """For one registered dataset, in one process. It holds no reference to the dataset, which is passed to it."""

    def __init__(self, number, length, located=None):
        worker = _utils.worker.get_worker_info()
        self.number, self.length, self.process = number, length, os.getpid()
        self.seen, self.blank, self.fetches, self.whole = [], 0, 0, 0
        self.done = not 1 < length <= MOST_SAMPLES or worker is not None and worker.id != 0
        self.looks = LOOKS if located is None or located < 0 else LOOKS[SPARED:]
        # At the last look; what the job declared may be refuted later.
        self.known = located is not None and located >= KNOWN
        # Not in the job's own process, which may fork.
        self.may_search = worker is not None
        self.declared = 0  # leaves
        self.learned = None  # the rules of each leaf, once they explained all that was seen
        self.checks, self.corrections = CHECKED, CORRECTIONS

    def begin(self):
        """A fetch begins. Whether it is to be watched: then read() is called for each sample."""
        self.fetches += 1
        if self.done:
            return False
        if self.learned is None and self.fetches in self.looks:
            located = sluice.located(self.number)
            self.known = located >= KNOWN
            self.done = located < 0 or self.known and self.fetches == LOOKS[-1]
        awaits = self.learned is not None or not self.known or self.fetches <= CURIOUS
        return not self.done and awaits and sluice.watch_opens(True)

    def read(self, dataset, indices):
        """The samples `indices` were read."""
        paths = sluice.take_opens()
        if self.done or not indices:
            return
        if not paths:
            self.blank += len(indices)
            self.done = self.blank >= BLANK and not self.seen
            return
        self.seen.append(rules.Seen(indices, paths))
        if self.learned is not None:
            self._check(dataset)
            return
        self.whole += len(indices) > 1
        if self.whole > WHOLE_ATTEMPTS or len(self.seen) > ATTEMPTS[-1]:
            self.done = True
        elif self.whole or len(self.seen) in ATTEMPTS:
            self._attempt(dataset)

    def _check(self, dataset):
        """The latest samples may differ from what was learned, if it explained the first by chance."""
        root = tree.of(dataset)
        for leaf, known in zip(root.leaves(), self.learned):
            leaf.rules = known
        if explains(root, self.seen[-1]):
            self.checks -= len(self.seen[-1].rows)
            if self.checks <= 0:
                self.done, self.learned = True, None
            return
        self.learned, self.known, self.declared = None, False, 0
        self.done = self.corrections == 0
        self.corrections -= 1
        if not self.done:
            self._attempt(dataset)

    def _attempt(self, dataset):
        root = tree.of(dataset)
        if self.known and not (_read_several(self.seen) and guesses.guess(root, self.length)):
            return  # it is not known by a guess, or nothing can be added to that
        by_leaf, found = split(root, self.seen), {}
        rows = dict(guesses.probes(root, self.length))
        for leaf, seen in by_leaf:
            found[leaf] = columns.find(leaf.dataset)
            leaf.rules = [settled(rule, seen) for rule in rules.search(seen, found[leaf], Likely(rows.get(leaf, [])))]
        learned = [leaf for leaf, _ in by_leaf if len(leaf.rules) > self.known]
        all_leaves = len(learned) == len(root.leaves())
        if len(learned) > self.declared and (all_leaves or self.whole or len(self.seen) >= PATIENT):
            self._declare(root, len(learned), all_leaves)
        if self.may_search and not learned and len(self.seen) > ATTEMPTS[0] and len(by_leaf) == len(root.leaves()) == 1:
            self.may_search = False
            [(leaf, seen)] = by_leaf
            _thread.start_new_thread(self._search_files, (root, leaf, seen, found[leaf].words))

    def _declare(self, root, count, all_leaves):
        corrects = self.corrections < CORRECTIONS
        if self.known or corrects or 0 <= sluice.located(self.number) < KNOWN:  # not by another rank
            declare(self.number, root, self.length)
        self.declared = count
        self.learned = [leaf.rules for leaf in root.leaves()] if all_leaves else None

    def _search_files(self, root, leaf, seen, words):
        """In a thread of its own: reads from storage."""
        try:
            for found in beside(seen, words):
                leaf.rules = rules.search(seen, found)
                if leaf.rules:
                    self._declare(root, 1, True)
                    return
        except Exception as error:
            settings.debug("no rule is learned: %s" % error)


def explains(root, one):
    """Whether each file that the tree's rules give for these samples was opened for them."""
    return all(path is None or path in one.paths for files in root.files(one.rows) for path in files)


def _read_several(seen):
    return all(len(set(one.paths)) > len(one.rows) for one in seen)


def declare(number, root, length):
    """Declares where all samples are, as far as the tree's leaves have rules."""
    for first in range(0, length, PIECE):
        sluice.locate_parts(number, first, *root.files(range(first, min(first + PIECE, length))))


def split(root, seen):
    """[(leaf, its rules.Seen)]"""
    own = {}
    for one in seen:
        rows = {}
        for row in one.rows:
            place = root.at(row)
            if place is not None:
                rows.setdefault(place[0], []).append(place[1])
        for leaf, some in rows.items():
            own.setdefault(leaf, []).append(rules.Seen(some, one.paths))
    return list(own.items())


class Likely:
    """Whether most of the files that a rule gives for some samples exist: it may explain the first by chance (all may be
    of one class, whose folder it takes for that of all)."""

    def __init__(self, rows):
        self.there = {}
        step = max((len(rows) - 1) / (PROBED - 1), 1)
        self.rows = [rows[int(probe * step)] for probe in range(min(PROBED, len(rows)))]

    def __call__(self, rule):
        missing = 0
        for path in rule.paths(self.rows):
            if path not in self.there:
                self.there[path] = path is not None and os.path.lexists(path)
            missing += not self.there[path]
            if missing > MISSING:
                return False
        return True


def settled(rule, seen):
    """The rule, or the one with padded numbers if only that one's files exist."""
    other = rules.padded(rule, seen)
    if other is not None:
        wider, row = other
        if os.path.lexists(wider.paths([row])[0]) and not os.path.lexists(rule.paths([row])[0]):
            return wider
    return rule


def beside(seen, words):
    """Columns that are not in memory: of the tables that the dataset names or opens, and of the samples' folder."""
    opened = [path for one in seen for path in one.paths]
    for path in dict.fromkeys([*words, *opened]):
        if path.endswith(TABLES) and os.path.isfile(path) and os.path.getsize(path) <= MOST_TABLE:
            with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
                yield from _of_table(file.read())
    own = [path for path in opened if not path.endswith(TABLES)]
    folders = {os.path.dirname(path) for path in own}
    if len(folders) == 1:
        yield from _of_names(_names(next(iter(folders))), {os.path.splitext(path)[1] for path in own})
    above = {os.path.dirname(folder) for folder in folders}
    if len(above) == 1:
        yield from _of_classes(next(iter(above)))


def _of_table(text):
    lines = text.splitlines()
    for some in (lines, lines[1:]):  # with a header
        yield columns.find(columns.Holder(some))


def _names(folder):
    with os.scandir(folder) as entries:
        return [entry.name for entry in itertools.islice(entries, MOST_NAMES)]


def _natural(name):
    return [int(part) if part.isdigit() else part for part in re.split("([0-9]+)", name)]


def _orders(names):
    yield sorted(names)
    yield names
    yield sorted(names, key=_natural) if len(names) <= MOST_NATURAL else names


def _of_names(names, extensions):
    """The names of a folder in the orders that they may be read in: all, or those with the samples' extension."""
    for some in (names, [name for name in names if os.path.splitext(name)[1] in extensions]):
        for ordered in _orders(some):
            yield columns.find(columns.Holder(ordered))


def _of_classes(folder):
    """The files of a folder's folders."""
    classes = sorted(name for name in _names(folder) if os.path.isdir(os.path.join(folder, name)))
    files = [(name, list(_orders(_names(os.path.join(folder, name))))) for name in classes]
    for order in range(3):
        yield columns.find(columns.Holder(["%s/%s" % (name, file) for name, orders in files for file in orders[order]]))


class Watch:
    """One fetch that a learner watches. It is in no cycle: the dataset goes away when it would without it."""

    def __init__(self, learner, dataset):
        self.learner, self.dataset = learner, dataset

    def note(self, indices):
        """These samples were read."""
        try:
            self.learner.read(self.dataset, indices)
        except Exception as error:
            self.learner.done = True
            settings.debug("no files are learned: %s: %s" % (type(error).__name__, error))

    def end(self):
        sluice.watch_opens(False)


def watching(known, dataset):
    """A Watch, if this process is to learn in this fetch of a registered dataset where its samples are, else None.
    `known`: its datasets.Registration."""
    learner = known.learner
    if learner is None or learner.process != os.getpid():
        learner = known.learner = Learner(known.number, known.length, known.located)
    return Watch(learner, dataset) if learner.begin() else None
