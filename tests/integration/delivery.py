#!/usr/bin/python3
"""Whatever an optimizer answers, and whatever the sampler draws: an epoch delivers each sample once, and none
that is not the loader's."""
import os
import random
import sys
import types

import harness
from harness import claim

sys.path.insert(0, os.path.join(harness.TOP, "adapters/pytorch"))
import torch  # noqa: E402
from sluice_torch import delivery  # noqa: E402


class Optimizer:
    """Answers what `answer` makes of a question; None: not at all."""

    def __init__(self, answer):
        self.answer, self.questions = answer, 0

    def serve(self, _number, _epoch, _first, requested):
        self.questions += 1
        samples = self.answer(list(requested))
        return None if samples is None else (samples, bytearray(len(samples)))


def selection(allowed):
    return types.SimpleNamespace(epoch=0, allowed=allowed, declare=lambda: True)


def drawn_by(one, draws):
    answers = []
    for index in draws:
        if one.running_out():
            one.extend()
        answers.append(one.take(index))
    return answers


def play(answer, seed, kind):
    chance = random.Random(seed)
    length = chance.choice((1, 7, 300, 3000))
    allowed = bytearray(chance.random() < 0.8 for _ in range(length))
    own = [index for index in range(length) if allowed[index]]
    requested = chance.sample(own, chance.randint(0, len(own)))
    delivery.TOGETHER, delivery.AHEAD = chance.choice(((4, 2), (64, 32), (1 << 14, 1 << 13)))
    delivery.sluice = Optimizer(lambda samples: answer(chance, samples, length))
    one = delivery.Delivery(1, list(requested), selection(allowed))
    one.extend()
    draws = list(requested)
    if kind == "otherwise" and draws:  # from some place on, other samples than were expected
        place = chance.randrange(len(draws))
        rest = [index for index in own if index not in set(draws[:place])]
        draws[place:] = chance.sample(rest, min(len(rest), len(draws) - place))
    delivered = drawn_by(one, draws)
    what = f"{answer.__name__}, {kind}, seed {seed}"
    claim(len(delivered) == len(draws), what)
    claim(len(set(delivered)) == len(delivered), f"{what}: twice")
    claim(all(allowed[sample] for sample in delivered), f"{what}: another's")
    return delivered == draws


def itself(_chance, samples, _length):
    return samples


def any_sample(chance, samples, length):
    return [chance.randrange(length) for _ in samples]


def nonsense(chance, samples, length):
    return [chance.choice((sample, length, 1 << 40, 0)) for sample in samples]


def sometimes(chance, samples, length):
    return None if chance.random() < 0.3 else any_sample(chance, samples, length)


def no_answer(_chance, _samples, _length):
    return None


def test(_place):
    differ = 0
    for seed in range(150):
        claim(play(itself, seed, "as expected"), "the sample itself was chosen, and another is delivered")
        claim(play(no_answer, seed, "as expected"), "no answer, and another is delivered")
        for answer in any_sample, nonsense, sometimes, no_answer, itself:
            for kind in "as expected", "otherwise":
                differ += not play(answer, seed, kind)
    claim(differ > 300, f"hardly any epoch differs: {differ}")
    # A sampler that draws one sample twice is given it twice.
    delivery.sluice = Optimizer(lambda samples: samples)
    one = delivery.Delivery(1, [1, 2], selection(bytearray(b"\1" * 4)))
    one.extend()
    claim([one.take(index) for index in (1, 1, 1)] == [1, 1, 1], "drawn twice")
    # What comes out is of the kind that the sampler draws.
    delivery.sluice = Optimizer(lambda samples: [3] + samples[1:])
    one = delivery.Delivery(1, [1, 2], selection(bytearray(b"\1" * 4)))
    one.extend()
    drawn = torch.tensor([1, 2])
    taken = [one.take(index) for index in drawn]
    claim([type(index) for index in taken] == [torch.Tensor] * 2 and taken == [3, 2], "tensors")
    claim(taken[1].data_ptr() == drawn[1].data_ptr(), "what is delivered unchanged is another object")


if __name__ == "__main__":
    harness.main(test)
