"""Random programs whose actors run at the same time."""
import tree
from programs import SPAN, Actor, sample


class Race:
    """Actors that run at the same time. Actor 0 opens, begins the others, reads, and sums up."""

    def __init__(self, generator):
        self.draw, self.generator, self.program = generator.draw, generator, generator.program
        self.program.race = True

    def make(self):
        draw, add = self.draw, self.generator.add
        names = [n for n in tree.FILES if len(tree.FILES[n][0]) > 3000 and tree.FILES[n][1] == 0o644
                 and not n.startswith("grp/")]
        first = Actor(0, 0)
        name = draw.choice(names)
        add(first, "begin", sample(name))
        add(first, "open", 0, name, draw.choice(("r", "re")))
        add(first, "read", 0, 100)
        if draw.random() < 0.5:
            add(first, "end", sample(name))
        add(first, "open", 1, tree.MAPPED, "r")
        add(first, "mmap", 0, 1, SPAN, 0, draw.choice(("s", "p")))
        shared = draw.random() < 0.3
        others = [Actor(n, 0) for n in range(1, draw.choice((2, 3, 4)))]
        forked = draw.random() < 0.3
        for other in others:
            add(first, "fork" if forked and other.number == 1 else "thread", other.number)
        if shared:
            add(first, "share", 0, draw.choice((16, 64, 500)))
        else:
            self.reads(first, name)
        for other in others:
            if shared and (other.number == 1 or draw.random() < 0.5):
                add(other, "share", 0, draw.choice((16, 64, 500)))
            elif draw.random() < 0.75:
                kind = draw.choice(("fork", "fork", "spawn", "link", "link", "dup", "stat", "lock",
                                    "map", "pread", "xattr"))
                rounds = {"fork": 40, "spawn": 10}.get(kind, 1000)
                add(other, "disturb", draw.choice((0, 2, 2, other.number + 1)), kind, rounds)
            else:
                self.reads(other, draw.choice(names))
        add(first, "sumup", *(other.number for other in others))
        return self.program

    def reads(self, actor, name):
        draw, add = self.draw, self.generator.add
        slot = actor.number + 2
        way = draw.random()
        piece = draw.choice((64, 64, 500, 4096))
        if actor.number == 0 and way < 0.3:
            add(actor, "slurp", 0, piece, draw.choice((1, 5, 20)))
        elif way < 0.7:
            add(actor, "slurpopen", slot, sample(name), name, piece, draw.choice((5, 10, 30)))
        elif way < 0.85:
            add(actor, "slurpfile", slot, sample(name), name, 0, draw.choice((1, 10, 30)))
        else:
            add(actor, "scan", 0, draw.choice((1, 3)))
