"""Random programs for the executor, each from a seed alone.

A program is a list of (actor, words). What a step means is in README.md; which slots hold what is
followed roughly, so that most steps meet an open descriptor and some do not.
"""
import random

import tree
from programs import ACTORS, MAPS, SLOTS, SPAN, Actor, Process, Program, sample
from races import Race


class Generator:
    def __init__(self, seed, as_root):
        self.draw = random.Random(seed)
        draw = self.draw
        self.as_root = as_root
        self.program = Program(seed, member=as_root and draw.random() < 0.3,
                               wait=draw.random() < 0.8,
                               checkpoint=draw.choice(("cell", "cell", "page", "observe")))
        self.next_actor = 1
        self.process = {0: Process()}
        self.actors = [Actor(0, 0)]
        # Steps meet where they are about few names.
        names = [n for n in tree.FILES if n not in ("closed",)]
        self.names = draw.sample(names, draw.choice((2, 3, 4)))
        if draw.random() < 0.3:
            self.names.append(draw.choice(("link", "hard", "dirlink/g1", "deep/up", "grp/p1",
                                           "grp/p2", "own", "group", "closed")))
        self.signals = draw.random() < 0.35

    # What steps are made of.

    def name(self):
        if self.draw.random() < 0.92:
            return self.draw.choice(self.names)
        return self.draw.choice([*tree.FILES, "link", "dangling", "deep/up", "nothing", "new0", "hard",
                                 tree.MAPPED, tree.STREAMED])

    def path(self):
        name = self.name()
        return self.draw.choice((name, name, name, "@" + name, "sub/../" + name))

    def slot(self, actor):
        known = sorted(self.process[actor.process].open)
        if known and self.draw.random() < 0.94:
            return self.draw.choice(known)
        return self.draw.randrange(SLOTS)

    def size(self):
        return self.draw.choice((1, 10, 100, 1000, 4096, 5000, 20000, 70000))

    def offset(self):
        return self.draw.choice((0, 0, 1, 7, 100, 4095, 4096, 9000, 60000))

    def add(self, actor, *words):
        self.program.steps.append((actor.number, list(words)))

    # Families of steps. Each takes an actor and adds one or a few.

    def do_window(self, actor):
        if actor.window is not None and self.draw.random() < 0.6:
            self.add(actor, "end", actor.window)
            actor.window = None
        elif actor.window is None:
            actor.window = sample(self.draw.choice(self.names))
            self.add(actor, "begin", actor.window)

    def do_open(self, actor):
        process = self.process[actor.process]
        if actor.window is None and self.draw.random() < 0.6:
            self.do_window(actor)
        slot = self.draw.randrange(SLOTS)
        way = self.draw.random()
        flags = self.draw.choice(("r", "r", "re", "re", "rn", "rN", "p", "r"))
        if way < 0.7:
            self.add(actor, self.draw.choice(("open", "open", "open64")), slot, self.path(), flags)
        elif way < 0.8:
            name = self.draw.choice(self.names)
            folder, _, leaf = name.rpartition("/")
            self.add(actor, "openat", slot, folder or ".", leaf, flags)
        elif way < 0.87:
            self.add(actor, "openat2", slot, self.path(), "r", self.draw.choice((0, 0, 4, 8)))
        elif way < 0.94:
            self.add(actor, "reopen", slot, self.slot(actor), self.draw.choice(("r", "r", "b", "p")))
        else:
            self.add(actor, "open", slot, self.path(), self.draw.choice(("b", "w", "ba", "bc")))
            process.writable.add(slot)
        process.open.add(slot)

    def do_read(self, actor):
        slot, size, offset = self.slot(actor), self.size(), self.offset()
        self.add(actor, *self.draw.choice((
            ("read", slot, size), ("read", slot, size), ("readv", slot, size),
            ("pread", slot, size, offset), ("preadv", slot, size, offset),
            ("readrest", slot, self.draw.choice((100, 4096, 65536))),
            ("uring", slot, size, self.draw.choice((0, -1, offset))),
            ("lseek", slot, offset, self.draw.choice(("set", "cur", "end", "data", "hole"))),
            ("sendfile", slot, size, self.draw.choice((-1, offset))),
            ("splice", slot, size, self.draw.choice((-1, offset))),
            ("copyrange", slot, size, "new1", self.draw.choice((-1, offset))))))

    def do_load(self, actor):
        name = self.name()
        if self.draw.random() < 0.6 or name in tree.LARGE:
            self.add(actor, "load", sample(name), name)
        else:
            self.add(actor, "fload", sample(name), name, self.draw.choice(("r", "rb", "re", "r+")),
                     self.draw.choice((7, 100, 5000)))

    def do_copy(self, actor):
        process = self.process[actor.process]
        source, slot = self.slot(actor), self.draw.randrange(SLOTS)
        number = self.draw.randrange(40, 60)
        self.add(actor, *self.draw.choice((
            ("dup", slot, source), ("dup2", slot, source, number),
            ("dup3", slot, source, number, self.draw.randrange(2)), ("dupover", slot, source),
            ("dupfd", slot, source, number, self.draw.randrange(2)))))
        process.open.add(slot)

    def do_close(self, actor):
        process = self.process[actor.process]
        slot = self.slot(actor)
        process.open.discard(slot)
        self.add(actor, "close", slot)

    def do_close_all(self, actor):
        first, last = self.draw.choice(((3, 100), (3, 5), (40, 60), (3, 0xffffffff)))
        if (first, last) == (3, 100):
            self.process[actor.process].open.clear()
        self.add(actor, "closerange", first, last, self.draw.choice((0, 0, 4)))

    def do_ask(self, actor):
        slot = self.slot(actor)
        self.add(actor, *self.draw.choice((
            ("fstat", slot), ("fstatat", slot), ("statxfd", slot), ("stat", self.path()),
            ("lstat", self.path()), ("statx", self.path()), ("readlinkfd", slot),
            ("readlinkfd", slot), ("fstatfs", slot), ("getfl", slot),
            ("setfl", slot, self.draw.randrange(2)), ("setfd", slot, self.draw.randrange(2)),
            ("access", self.path(), self.draw.choice((0, 4, 2, 1))),
            ("eaccess", self.path(), 4), ("list", self.draw.choice((".", "sub", "grp"))))))

    def do_lock(self, actor):
        slot = self.slot(actor)
        how = self.draw.choice("rwu?")
        place = (self.draw.choice((0, 5, 100)), self.draw.choice((0, 10, 1000)))
        self.add(actor, *self.draw.choice((
            ("flock", slot, self.draw.choice("seu")), ("setlk", slot, how, *place),
            ("ofdlk", slot, how, *place))))

    def do_map(self, actor):
        process = self.process[actor.process]
        if process.maps and self.draw.random() < 0.65:
            place = self.draw.choice(sorted(process.maps))
            size, offset = self.size(), self.offset()
            self.add(actor, *self.draw.choice((
                ("mread", place, offset, size), ("mread", place, offset, size),
                ("mread", place, offset, size), ("mpipe", place, offset, size),
                ("mwrite", place, offset, size, 77), ("mpreadinto", place, offset, size, self.slot(actor)),
                ("madvise", place, self.draw.choice((4, 3, 1, 2))),
                ("mprotect", place, self.draw.randrange(2)), ("mremap", place, 131072),
                ("munmap", place))))
            return
        slot, place = self.slot(actor), self.draw.randrange(MAPS)
        self.add(actor, "mmap", place, slot, self.draw.choice((4096, 20000, 65536)),
                 self.draw.choice((0, 0, 4096)), self.draw.choice(("s", "s", "p", "sp", "pw", "sw")))
        process.maps.add(place)

    def do_large(self, actor):
        """The mapped and the streamed file."""
        process = self.process[actor.process]
        slot, place = self.draw.randrange(SLOTS), self.draw.randrange(MAPS)
        if self.draw.random() < 0.6:
            self.add(actor, "open", slot, tree.MAPPED, self.draw.choice(("r", "re", "r", "b")))
            self.add(actor, "mmap", place, slot, SPAN, 0, self.draw.choice(("s", "s", "p", "pw")))
            process.maps.add(place)
            for _ in range(self.draw.randrange(1, 6)):
                offset = self.draw.randrange(SPAN)
                self.add(actor, *self.draw.choice((
                    ("mread", place, offset, 30), ("mread", place, offset, 200000),
                    ("mpipe", place, offset, 20000), ("mread", place, 0, 200000))))
        else:
            self.add(actor, "open", slot, tree.STREAMED, "r")
            for _ in range(self.draw.randrange(2, 12)):
                self.add(actor, "read", slot, self.draw.choice((65536, 100000, 262144)))
        process.open.add(slot)

    def do_change(self, actor):
        name, other = self.name(), self.draw.choice(self.names + ["new0", "sub/new2"])
        size, offset, byte = self.size(), self.offset(), self.draw.randrange(256)
        self.add(actor, *self.draw.choice((
            ("writefile", name, size, offset, byte), ("writefile", name, size, 0, byte),
            ("writefile", name, size, 0, byte), ("replacefile", name, size, byte),
            ("replacefile", name, size, byte), ("rename", name, other), ("exchange", name, other),
            ("unlink", name), ("link", name, other), ("symlink", self.draw.choice(self.names), "new3"),
            ("truncate", name, size), ("truncate", name, 0),
            ("chmod", name, self.draw.choice((0o600, 0o644, 0o444, 0))),
            ("utimens", name, byte), ("rename", "sub", "moved"), ("rename", "moved", "sub"),
            ("mkdir", "new4"), ("chdir", self.draw.choice(("sub", "."))))))
        # Seen at once, by whoever opens it next.
        if self.draw.random() < 0.5 and self.reader():
            self.add(self.reader(), "load", sample(name), name)

    def reader(self):
        found = [a for a in self.actors if not a.outside]
        return self.draw.choice(found) if found else None

    def do_write(self, actor):
        process = self.process[actor.process]
        if not process.writable:
            slot = self.draw.randrange(SLOTS)
            self.add(actor, "open", slot, self.draw.choice(self.names), "b")
            process.writable.add(slot)
            process.open.add(slot)
        slot = self.draw.choice(sorted(process.writable))
        size, offset, byte = self.size(), self.offset(), self.draw.randrange(256)
        self.add(actor, *self.draw.choice((
            ("write", slot, size, byte), ("pwrite", slot, size, offset, byte),
            ("pwrite", slot, size, offset, byte), ("ftruncate", slot, size),
            ("fchmod", slot, self.draw.choice((0o600, 0o644))), ("futimens", slot))))

    def do_birth(self, actor):
        number = self.next_actor
        if number >= ACTORS:
            self.add(actor, "forkexit", self.draw.randrange(3))
            return
        self.next_actor += 1
        kind = self.draw.choice(("thread", "fork", "fork", "vfork", "spawn", "outside"))
        slot = self.slot(actor)
        if kind == "thread":
            self.add(actor, "thread", number)
            self.actors.append(Actor(number, actor.process))
            return
        if kind == "vfork":
            self.add(actor, "vfork", number, slot, self.draw.choice((0, 0, 10, -1)))
        elif kind == "spawn":
            self.add(actor, "spawn", number, slot, self.draw.choice((0, 61)))
        else:
            self.add(actor, kind, number)
        fresh = Process(self.process[actor.process])
        fresh.dropped = self.process[actor.process].dropped
        if kind != "fork":
            fresh.maps.clear()
        self.process[number] = fresh
        self.actors.append(Actor(number, number, kind == "outside",
                                 actor.window if kind == "fork" else None))

    def do_pass(self, actor):
        slot = self.slot(actor)
        self.add(actor, "sendfd", slot)
        taker, into = self.draw.choice(self.actors), self.draw.randrange(SLOTS)
        self.add(taker, "recvfd", into)
        self.process[taker.process].open.add(into)
        self.add(taker, self.draw.choice(("read", "readrest", "fstat")), into, 500)

    # Steps that belong together: by themselves they seldom meet.

    def other(self, actor):
        """Another actor if there is one, another process rather than a thread, an outsider rather
        than either."""
        found = [a for a in self.actors if a is not actor]
        return max(found, key=lambda a: (a.outside, a.process != actor.process)) if found else actor

    def do_locked_change(self, actor):
        """A file that is open is changed and locked by another."""
        slot, theirs = self.draw.sample(range(SLOTS), 2)
        name, other = self.draw.choice(self.names), self.other(actor)
        self.do_window(actor)
        self.add(actor, "open", slot, name, "r")
        self.add(other, "open", theirs, name, "b")
        change = self.draw.choice((("pwrite", theirs, 500, 0, 7), ("ftruncate", theirs, 300), None))
        if change:
            self.add(other, *change)
        kind = self.draw.choice(("flock", "setlk", "ofdlk"))
        self.add(other, kind, theirs, *(("e",) if kind == "flock" else ("w", 0, 0)))
        self.add(actor, kind, slot, *(("s",) if kind == "flock" else ("r", 0, 0)))
        self.add(actor, "pread", slot, 1000, 0)
        self.process[actor.process].open.add(slot)
        self.process[other.process].open.add(theirs)

    def do_mapped_change(self, actor):
        """What a mapping shows of a write that comes later."""
        slot, place = self.draw.randrange(SLOTS), self.draw.randrange(MAPS)
        name, other = self.draw.choice(self.names), self.draw.choice((actor, self.other(actor)))
        self.do_window(actor)
        self.add(actor, "open", slot, name, "r")
        self.add(actor, "mmap", place, slot, 20000, 0, "s")
        self.add(actor, "mread", place, 0, 300)
        if self.draw.random() < 0.5:
            self.do_window(actor)
        self.add(other, "writefile", name, 500, 0, self.draw.randrange(256))
        self.add(actor, "mread", place, 0, 300)
        self.add(actor, "read", slot, 300)
        self.process[actor.process].open.add(slot)
        self.process[actor.process].maps.add(place)

    def do_shared_offset(self, actor):
        """An offset that processes share."""
        slot, name = self.draw.randrange(SLOTS), self.draw.choice(self.names)
        self.do_window(actor)
        self.add(actor, "open", slot, name, "r")
        self.add(actor, "read", slot, self.draw.choice((10, 100)))
        self.process[actor.process].open.add(slot)
        before = self.next_actor
        self.do_birth(actor)
        for one in [a for a in self.actors if a.number == before and not a.outside] + [actor]:
            self.add(one, "read", slot, 50)
        self.add(actor, "readrest", slot, 4096)

    def do_rights(self, actor):
        process = self.process[actor.process]
        if self.program.member:
            self.add(actor, "setgroups", self.draw.choice((0, tree.GROUP)))
        elif self.as_root and not process.dropped:
            self.add(actor, "setgroups", self.draw.choice((0, tree.GROUP)))
            if self.draw.random() < 0.5:
                self.add(actor, "setgid", tree.USER)
            self.add(actor, "setuid", tree.USER, self.draw.randrange(2))
            process.dropped = True
        elif process.dropped:
            self.add(actor, "seteuid", self.draw.choice((0, tree.USER)))
        for name in self.draw.sample(["grp/p0", "grp/p1", "own", "group", *self.names], 2):
            self.add(actor, "load", sample(name), name)

    def do_mount(self, actor):
        if not self.as_root or self.program.member:
            return
        if self.draw.random() < 0.6:
            self.add(actor, "unshare")
        name = self.draw.choice(self.names)
        other = self.draw.choice(("other/g1", "other/g2", "f10"))
        self.add(actor, *self.draw.choice((("bind", "other", "sub"), ("bind", other, name),
                                           ("mount", "sub"), ("umount", "sub"))))
        seen = self.draw.choice((name, "sub/g1", "sub/g2"))
        for one in {actor.number: actor, **({self.reader().number: self.reader()} if self.reader()
                                            else {})}.values():
            self.add(one, "load", sample(seen), seen)

    def do_signal(self, actor):
        process = self.process[actor.process]
        way = self.draw.random()
        signal = self.draw.choice((11, 11, 10, 12))
        if way < 0.35 or not process.handles:
            kind = self.draw.choice(("count", "mask", "mask", "jump", "exit", "reads", "nested"))
            if kind == "nested":
                self.add(actor, "sigaction", 12, "count", "")
            self.add(actor, "sigaction", signal, kind, self.draw.choice(("-", "o", "d", "r", "od", "t")),
                     self.draw.choice((0, 0, 1, 4, 31)))
            process.handles = True
        elif way < 0.5:
            self.add(actor, "sigmask", self.draw.choice(("block", "unblock", "set")),
                     self.draw.choice((1, 4, 5, 31, 0)), self.draw.randrange(2))
        elif way < 0.6:
            self.add(actor, "altstack", self.draw.choice((0, 16384, 65536)))
        elif way < 0.7:
            self.add(actor, *self.draw.choice((("sigpending",), ("sigtake", 1), ("sigtake", 4))))
        elif way < 0.85:
            self.add(actor, "fault")
            if self.draw.random() < 0.5:
                self.add(actor, "fault")
        else:
            self.add(actor, "raise", signal)

    def do_exhaust(self, actor):
        self.add(actor, "exhaust", self.draw.choice(self.names), self.draw.choice((1, 2, 4)))

    def do_exit(self, actor):
        if actor.process == 0:
            return
        self.add(actor, "exit", self.draw.randrange(3), self.draw.randrange(2))
        self.end_process(actor.process)

    def end_process(self, process):
        self.actors = [a for a in self.actors if a.process != process]

    WEIGHTS = {"window": 6, "open": 20, "read": 26, "load": 10, "copy": 6, "close": 4,
               "close_all": 0.5, "ask": 9, "lock": 4, "map": 10, "large": 4, "change": 11,
               "write": 5, "birth": 6, "pass": 2.5, "rights": 1.2, "mount": 1, "signal": 0,
               "exhaust": 0.5, "exit": 0.7, "locked_change": 1.5, "mapped_change": 1.2,
               "shared_offset": 1.5}

    def make(self):
        if self.draw.random() < 0.15:
            return Race(self).make()
        weights = dict(self.WEIGHTS)
        if self.signals:
            weights["signal"] = 14
        families = list(weights)
        for _ in range(self.draw.choice((6, 10, 16, 24))):
            if not self.actors:
                break
            actor = self.draw.choice(self.actors)
            family = self.draw.choices(families, [weights[f] for f in families])[0]
            getattr(self, "do_" + family)(actor)
        return self.program


def program_of(seed, as_root=True):
    return Generator(seed, as_root).make()
