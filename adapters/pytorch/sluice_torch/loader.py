"""Epochs: publishes the order of a loader's samples before the first is drawn, and compares it with
the draws.

An epoch's order is predicted when its iterator has been created (PyTorch has drawn the base seed by
then, or, with persistent workers, does not draw it), and again at the first sample if the
generator's state has changed in between.
"""
import array
import collections
import functools
import itertools
import operator

import torch

from . import datasets, importance, libraries, orders, ranks, settings, turns
from .bindings import sluice
from .delivery import Delivery
from .identity import IdentityMap

_epochs = IdentityMap()  # by iterator
_links = IdentityMap()   # by loader


class Link:
    """What the epochs of a loader so far imply for its next one.

    serial           identifies the link
    epoch, sampler   the latest epoch and the id of its sampler, which lives as long as the loader
    left             the state in which the sampler of the latest epoch leaves the generator
    words            drawn from the generator between the latest two epochs, None if unknown
    at_epoch         DistributedSampler's epoch in the latest epoch
    ahead            (epoch, order) as published before the epoch began, or None
    batches          of the latest epoch, where it does not fetch all samples, else None
    course           counts the epochs that a selection is made for
    """

    _serials = itertools.count(1)

    def __init__(self):
        self.serial = next(Link._serials)
        self.epoch = self.sampler = self.left = self.words = self.at_epoch = self.ahead = None
        self.batches = None
        self.course = turns.Course()


class Epoch:
    """One pass of a loader. order: as predicted, None where the job's batches are published as they
    are drawn; position: samples drawn so far; plan: the rank's ranks.Plan, or None."""

    def __init__(self, registration, loader, link, plan):
        self.registration, self.link = registration, link
        self.number, self.epoch = registration.number, registration.epochs
        registration.epochs += 1
        self.alone, registration.last = registration.last in (None, link.serial), link.serial
        self.batched = loader._auto_collation
        self.recipe, self.batch, self.wrapped = _recipe(loader)
        self.words = orders.words_of(loader, self.recipe)
        # The generator's state and DistributedSampler's epoch that determine the order; a clone of
        # the generator in its state after the epoch.
        self.state = self.at_epoch = self.after = None
        self.chosen = None  # by sample, 1 for those that the epoch fetches; None: all
        self.batches = self.selection = self.delivery = self.turn = None
        self.plan = plan
        if plan is not None:  # set_epoch() may be called until the first draw
            importance.epoch_ends(registration)
        elif importance.selects():
            self.turn, self.selection = importance.selection_for(registration, link.course, loader)
            if self.selection is not None:
                self.chosen, self.batches = self.selection.chosen, self.selection.batches
            link.batches = self.batches
        # Batches that were drawn and not returned yet, to attribute losses to samples.
        self.pending = collections.deque() if importance.observes() else None
        self.order, self.position, self.published = None, 0, False
        self.begun = self.done = self.silent = False

    def predict(self, publish=True):
        """Predicts the whole order from the current state, and publishes it."""
        try:
            self.state, self.at_epoch = self._state(), self.recipe.epoch()
            generator = None
            if self.state is not None:
                generator = orders.clone(self.state)
            drawn = self.recipe.replay(generator)
            if self.plan is not None:
                self.selection, self.chosen = importance.selection_of_rank(self.registration, self.plan, drawn.tolist())
            self.order = self._whole(drawn)
            if self.recipe.given and not self._exist(self.order):
                raise orders.Unknown("not numbered from 0 to the dataset's length")
            self.after = generator
        except Exception as error:  # malformed weights, lists or lengths
            settings.debug("order not predicted: %s" % error)
            self.recipe = self.order = None
            return
        self.published = publish or self.selection is not None
        if self.selection is not None:
            return  # substitutions are decided when the epoch begins
        ahead = self.link.ahead
        if publish and not (ahead and ahead[0] == self.epoch and ahead[1] == self.order.tobytes()):
            self.publish(self.order, 0, True)

    def _state(self):
        generator = self.recipe.generator
        return None if generator is None else generator.get_state()

    def _whole(self, order):
        """The order without samples that are not fetched or that drop_last drops."""
        if self.chosen is not None:
            order = orders.flat([index for index in order.tolist() if self.chosen[index]])
        if self.wrapped is not None:
            return self.wrapped(order)
        return order[:len(order) // self.batch * self.batch] if self.batch else order

    def _exist(self, indices):
        return len(indices) == 0 or min(indices) >= 0 and max(indices) < self.registration.length

    def publish(self, indices, first, whole):
        sluice.publish_order(self.number, self.epoch, indices, first, whole)

    def begin(self, iterator):
        """The first index is about to be drawn."""
        self.begun = True
        if self.recipe is None:
            return
        skipped = libraries.skipped(iterator)
        # What is skipped may have been drawn, from the state that the order was predicted from.
        if self.recipe.see(iterator) or self.order is None or self._moved() and not skipped:
            self.predict(publish=not skipped)
        if self.order is not None and (skipped or not self.published):
            self.order = self.order[skipped:]
            self.publish(self.order, 0, True)
        if self.recipe is not None:
            self._look_ahead()
        # Chunks decide no rest of an epoch.
        if self.order is not None and self.selection is not None and not (skipped and importance.decides_all()):
            requested = self.order.tolist()
            self.order = array.array("q", requested)  # a private copy: it is modified
            self.delivery = Delivery(self.number, requested, self.selection)
            self._decide_more()

    def _decide_more(self):
        """Gets decisions for more positions, and publishes what will be read at them."""
        first, delivery = len(self.delivery.delivered), self.delivery
        samples = delivery.extend()
        after = first + len(samples)
        self.order[first:after] = samples
        self.publish(samples, first, after == len(delivery.requested))

    def deliver(self, index):
        """The sampler has drawn `index`: returns the sample to read for it. Called by the job's own
        iterator."""
        try:
            if self.delivery.running_out():
                self._decide_more()
            return self.delivery.take(index)
        except Exception as error:
            settings.switch_off("%s: %s" % (type(error).__name__, error))
            return index

    def _moved(self):
        """Whether something that decides the order has changed since it was predicted."""
        state = self._state()
        if state is not None:
            return not torch.equal(state, self.state)
        return self.recipe.epoch() != self.at_epoch

    def _look_ahead(self):
        """Publishes the next epoch's order where the latest step from epoch to epoch is likely to be made again: set_epoch
        went up by at most one, or little was drawn from the generator since the sampler had left it, and as much as in
        the step before, if there was one. An order that turns out otherwise is replaced when its epoch begins."""
        link, recipe = self.link, self.recipe
        if self.plan is not None or importance.selects():
            return  # which samples the next epoch fetches is decided when it begins
        same = (self.alone and link.sampler == id(recipe.sampler) and link.epoch == self.epoch - 1)
        first, link.ahead = link.epoch is None, None
        upcoming = None
        if isinstance(recipe, orders.Fixed):
            at = self.at_epoch
            step = 0 if at is None or link.at_epoch is None else at - link.at_epoch
            if same and step in (0, 1):
                upcoming = recipe.at_epoch(at + step) if at is not None else recipe
            link.at_epoch, generator = at, None
        elif recipe.alike:
            words = orders.words_between(link.left, self.state) if same and link.left is not None else None
            again = words is not None and link.words in (None, words)
            link.left, link.words, generator = self.after.get_state(), words, self.after
            if again:
                orders.skip(generator, words)
                upcoming = recipe
        link.sampler, link.epoch = id(recipe.sampler), self.epoch
        if upcoming is not None:
            order = self._whole(upcoming.replay(generator))
            sluice.publish_order(self.number, self.epoch + 1, order, 0, True)
            link.ahead = (self.epoch + 1, order.tobytes())
        elif first and self.alone and self.registration.epochs == self.epoch + 1 and sluice.tentative_orders():
            self._expect()

    def _expect(self):
        """Publishes tentatively what the second epoch is after a usual step: set_epoch goes up by one, or none but the
        loader draws from the generator."""
        recipe, at, generator = self.recipe, self.at_epoch, self.after
        try:
            if recipe.alike:
                orders.skip(generator, self.words)
            elif not isinstance(recipe, orders.Fixed):
                return
            elif at is not None:
                recipe = recipe.at_epoch(at + 1)
            order = self._whole(recipe.replay(generator))
        except Exception as error:
            settings.debug("no order expected: %s" % error)
            return
        sluice.publish_order(self.number, self.epoch + 1, order, 0, True, tentative=True)

    def compare(self, index):
        """`index` was drawn: a batch of indices, or one where the loader does not batch."""
        if self.silent:
            return
        first, drawn = self.position, index if self.batched else [index]
        if self.order is not None and type(drawn) is list:
            last = first + len(drawn)
            if self.order[first:last].tolist() == drawn:
                self.position = last
                return
        drawn = _numbers(drawn)
        if drawn is None or not self._exist(drawn):  # these cannot be published
            self.silent, self.order = True, None
            return
        last = self.position = first + len(drawn)
        if self.order is not None:
            if self.order[first:last].tolist() == drawn:
                return
            if self._predict_rest(first, drawn):
                self.publish(self.order[first:], first, True)
                return
            self.order = None
        self.publish(drawn, first, False)

    def _predict_rest(self, first, drawn):
        """Predicts the order anew from `first` on, and returns whether it agrees with `drawn`:
        other code drew from the sampler's generator before this batch, whose draws start in
        `self.state`."""
        chunk = self.recipe.chunk
        if not chunk or self.chosen is not None or self.wrapped is not None:
            return False
        start = -(-first // chunk) * chunk
        rest = self.recipe.replay(orders.clone(self.state), start).tolist()
        order = self.order[:start].tolist()
        if len(order) < start:  # drop_last dropped some of the chunk
            return False
        self.order = self._whole(orders.flat(order + rest))
        return self.order[first:first + len(drawn)].tolist() == drawn

    def end(self):
        """The sampler is exhausted."""
        if not self.done and not self.silent:
            self.done = True
            if self.order is None or self.position != len(self.order):
                self.publish((), self.position, True)


def _numbers(drawn):
    """The indices of a batch as plain numbers; None if they are no numbers, or if they may be
    iterated over only once."""
    if not isinstance(drawn, (list, tuple)):
        if not hasattr(drawn, "tolist"):
            return None
        drawn = drawn.tolist()
    try:
        return [operator.index(i) for i in drawn]
    except TypeError:
        return None


def _recipe(loader):
    """(recipe, batch, wrapped): the recipe of the sampler under `loader`, None if unknown; the size of its batches if an
    incomplete last one is dropped, else 0; what maps the sampler's order to that of the batches, if not the identity."""
    sampler, batch, wrapped = loader._index_sampler, 0, None
    try:
        if loader._auto_collation:
            sampler, wrappers = libraries.unwrapped(sampler)
            if libraries.is_batch_sampler(sampler):
                if wrappers:
                    wrapped = functools.partial(libraries.wrapped, wrappers, sampler)
                elif sampler.drop_last:
                    batch = sampler.batch_size
                sampler = sampler.sampler
            elif type(sampler) in (list, tuple) and set(map(type, sampler)) <= {list, tuple} and not wrappers:
                sampler = [index for indices in sampler for index in indices]
            else:
                return None, 0, None
        return libraries.known(sampler) or orders.known(sampler), batch, wrapped
    except Exception as error:  # raised by its length or its attributes
        settings.debug("%s is not known: %s" % (type(sampler).__name__, error))
        return None, 0, None


def _start(iterator, loader):
    _epochs.drop(iterator)
    registration = datasets.registration_of(loader.dataset)
    if registration is None:
        return
    link = _links.get(loader)
    if link is None:
        link = Link()
        _links.put(loader, link)
    epoch = Epoch(registration, loader, link, ranks.plan_of(iterator))
    _epochs.put(iterator, epoch)
    if epoch.plan is None and epoch.recipe is not None and (epoch.recipe.eager or loader.num_workers == 0):
        epoch.recipe.see(iterator)
        # torchdata's loader resumes an epoch after this.
        epoch.predict(publish=vars(loader).get("next_iter_state") is None)


def created(iterator, arguments, named):
    """_BaseDataLoaderIter.__init__ has run."""
    _start(iterator, arguments[0] if arguments else named["loader"])


def reset(iterator, arguments, named):
    """_BaseDataLoaderIter._reset has run: persistent workers begin another epoch or, the first
    time, continue the one that __init__ began."""
    first = arguments[1] if len(arguments) > 1 else named.get("first_iter", False)
    if not first:
        created(iterator, arguments, named)


def before(iterator):
    """An index is about to be drawn."""
    epoch = _epochs.get(iterator)
    if epoch is None:
        return
    if not epoch.begun:
        epoch.begin(iterator)
        substitute = epoch.deliver if epoch.delivery is not None else None
        if epoch.plan is not None:
            epoch.plan.answered = epoch.selection is not None
            epoch.plan.chosen, epoch.plan.substitute = epoch.chosen, substitute
        elif epoch.chosen is not None or substitute is not None:
            importance.select_from(iterator, epoch.chosen, substitute)
    elif epoch.order is not None and epoch.recipe.chunk:
        epoch.state = epoch.recipe.generator.get_state()


def taken(iterator, index):
    """An index, or a batch of them, was drawn."""
    epoch = _epochs.get(iterator)
    if epoch is not None:
        epoch.compare(index)
        if epoch.pending is not None:
            epoch.pending.append(_numbers(index) if epoch.batched else None)


def given_out(iterator):
    """The iterator is about to return its next batch."""
    epoch = _epochs.get(iterator)
    if epoch is None:
        importance.given_out(None, None)
        return
    if epoch.turn is not None:
        epoch.turn.give()
    ordered = getattr(iterator, "_in_order", True)
    importance.given_out(epoch.registration, epoch.pending.popleft() if epoch.pending and ordered else None)


def failed(iterator):
    """The iterator has raised an exception: it is not known which batch it returns next."""
    epoch = _epochs.get(iterator)
    if epoch is not None:
        epoch.pending = None
    importance.given_out(None, None)


def finished(iterator):
    """The iterator has no more batches."""
    epoch = _epochs.get(iterator)
    if epoch is not None:
        if epoch.turn is not None:
            epoch.turn.end()
        importance.epoch_ends(epoch.registration)


def length(loader):
    """The number of batches of the loader's latest epoch if that does not fetch all samples, else
    None."""
    link = _links.get(loader)
    return None if link is None else link.batches


def length_left(iterator):
    """The same for the epoch of an iterator."""
    epoch = _epochs.get(iterator)
    return None if epoch is None else epoch.batches


def ended(iterator):
    """The iterator's sampler has no index left."""
    epoch = _epochs.get(iterator)
    if epoch is not None:
        epoch.end()
