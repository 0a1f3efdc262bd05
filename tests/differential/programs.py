"""A program for the executor, and what its generator believes of the actors and processes of one."""
import dataclasses

import tree

SLOTS, MAPS, ACTORS = 8, 4, 4
SPAN = 1 << 20
BIRTHS = ("thread", "fork", "vfork", "spawn", "outside")


@dataclasses.dataclass
class Program:
    seed: int
    race: bool = False
    wait: bool = True
    member: bool = False  # runs as tree.USER with tree.GROUP; else as the tests' user
    checkpoint: str = "cell"
    steps: list = dataclasses.field(default_factory=list)

    def text(self):
        lines = [f"# seed {self.seed}" + (" member" if self.member else "") +
                 f" checkpoint={self.checkpoint}"]
        lines += ["race"] * self.race + ["wait"] * self.wait
        lines += [f"file {name}" for name in tree.SAMPLES]
        lines += [" ".join([str(actor), *map(str, words)]) for actor, words in self.steps]
        return "\n".join(lines) + "\n"

    def listing(self):
        """The steps alone, numbered as the log numbers them."""
        return "\n".join(f"{number:4} {' '.join([str(actor), *map(str, words)])}"
                         for number, (actor, words) in enumerate(self.steps))

    def with_steps(self, steps):
        return dataclasses.replace(self, steps=list(steps))


def sample(name):
    return tree.SAMPLES.index(name) if name in tree.SAMPLES else 0


class Actor:
    def __init__(self, number, process, outside=False, inside=None):
        self.number, self.process, self.outside = number, process, outside
        self.window = inside  # the sample that it has begun


class Process:
    """What the generator believes of a process."""

    def __init__(self, other=None):
        self.open = set(other.open) if other else set()
        self.writable = set(other.writable) if other else set()
        self.maps = set(other.maps) if other else set()
        self.ended = self.dropped = self.unshared = False
        self.handles = False
