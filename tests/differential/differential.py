#!/usr/bin/python3
"""Runs random programs without and with Sluice and compares every result, byte and final state.

  differential.py [--first SEED] [--count N] [-j N]     programs of the seeds from SEED on
  differential.py --seed SEED [--listing]               one of them; shrunk if it differs
  differential.py --program FILE                        a program that a failed run has left

README.md says what a program is and how to read what is printed.
"""
import argparse
import collections
import multiprocessing
import os
import queue
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import generate  # noqa: E402
import programs  # noqa: E402
import ground  # noqa: E402

SHRINK_SECONDS = 15
# Differences that are accepted, each with its reason: (name, reason, test of a pair of lines
# (step's words, plain line, line under Sluice)). Never a wrong byte after a local write that ended
# before the open.
ACCEPTED = []

# Left out without --all. In programs of several processes, mounts by a process without the library:
# others learn of them when the optimizer has, a moment later.
NOT_YET = {"bind", "mount", "umount"}
# With these, samples that a program begins itself are left out (`load` has its own): a descriptor that
# was opened within a sample shows the file as it was, not what another process writes in place before
# the sample ends.
NOT_YET_BY_OTHERS = {"writefile", "truncate", "write", "pwrite", "ftruncate", "mwrite", "mmap"}


def is_accepted(program, pair):
    return any(test(program, pair) for _, _, test in ACCEPTED)


def compare(place, program, tries=1):
    """The differences of a program, [] if there are none; the plain run and the one under Sluice.
    What differs between two plain runs, too, is no difference."""
    for _ in range(tries):
        plain = place.run(program, under=False)
        under = place.run(program, under=True)
        found = [pair for pair in plain.differences(under) if not is_accepted(program, pair)]
        if not found:
            continue
        again = place.run(program, under=False)
        if plain.differences(again):
            return None, plain, under
        return found, plain, under
    return [], plain, under


def without_orphans(steps):
    """Steps of actors that are begun."""
    born, left = {0}, []
    for actor, words in steps:
        if actor not in born:
            continue
        if words[0] in programs.BIRTHS:
            born.add(int(words[1]))
        left.append((actor, words))
    return left


def shrink(place, program):
    """The program with as few steps as still differ."""
    deadline = time.monotonic() + SHRINK_SECONDS
    tries = 4 if program.race else 2
    steps, piece = list(program.steps), max(1, len(program.steps) // 2)
    while piece and time.monotonic() < deadline:
        at, before = 0, len(steps)
        while at < len(steps) and time.monotonic() < deadline:
            fewer = without_orphans(steps[:at] + steps[at + piece:])
            if fewer and compare(place, program.with_steps(fewer), tries)[0]:
                steps = fewer
            else:
                at += piece
        if piece == 1 and len(steps) == before:
            break
        piece = max(1, piece // 2) if piece > 1 else (1 if len(steps) < before else 0)
    return program.with_steps(steps)


def describe(place, program, first, options):
    """Text about a difference: the least program, how it differs, how to see it again. `first`: how
    the whole program differed, which is all that is known of one that does not do so again."""
    least = program if options.no_shrink else shrink(place, program)
    found = compare(place, least, 6)[0]
    if not found:
        least, found = program, [("not again in six tries; what differed once:", ""), *first]
    path = os.path.join(os.environ.get("TEST_DIR", "/tmp"), f"differential-{program.seed}")
    with open(path, "w", encoding="ascii") as out:
        out.write(least.text())
    lines = [f"seed {program.seed} differs; {len(least.steps)} of {len(program.steps)} steps, "
             f"{'race, ' * least.race}{'member, ' * least.member}{least.checkpoint}:", least.listing()]
    for plain, under in found[:4]:
        lines += [f"  plain: {plain}", f"  under: {under}"]
    lines += [f"again: tests/differential/differential.py --program {path}",
              f"or:    tests/differential/differential.py --seed {program.seed}" +
              " --all" * options.all]
    return "\n".join(lines)


def program_of(seed, options):
    program = generate.program_of(seed, os.geteuid() == 0)
    if options.all:
        return program
    left_out, has = set(), {words[0] for _, words in program.steps}
    if has & set(programs.BIRTHS[1:]):
        if "outside" in has:
            left_out |= NOT_YET
        if has & NOT_YET_BY_OTHERS:
            left_out |= {"begin", "end"}
    if not program.race:
        program = program.with_steps(s for s in program.steps if s[1][0] not in left_out)
    return program


def worker(options, following, results):
    place = None
    try:
        place = ground.Ground()
        while True:
            with following.get_lock():
                seed = following.value
                following.value += 1
            if seed >= options.first + options.count:
                break
            program = program_of(seed, options)
            found, plain, under = compare(place, program)
            text = describe(place, program, found, options) if found else None
            broken = plain.errors if plain.status == 98 else None
            results.put((seed, found is None, text, broken, len(program.steps), tuple(under.counts),
                         under.report))
    except BaseException:  # the parent must learn of it, whatever it is
        results.put((None, False, None, traceback.format_exc(), 0, (0, 0, 0), {}))
    finally:
        if place:
            place.end()
        results.put(None)


def run_all(options):
    following = multiprocessing.Value("q", options.first)
    results = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=worker, args=(options, following, results))
               for _ in range(options.j)]
    for one in workers:
        one.start()
    left, done, differ, unsteady, failed = len(workers), 0, [], [], False
    sums, seen, steps = collections.Counter(), [0, 0, 0], 0
    while left:
        try:
            got = results.get(timeout=600)
        except queue.Empty:
            print("no program ended within 600 s")
            failed = True
            break
        if got is None:
            left -= 1
            continue
        seed, plain_differs, text, broken, count, counts, report = got
        if broken:
            print(f"seed {seed}: the tester itself failed: {broken}", flush=True)
            failed = True
        if plain_differs:
            unsteady.append(seed)
        if text:
            differ.append(seed)
            print(text + "\n", flush=True)
        done += seed is not None
        steps += count
        seen = [one + more for one, more in zip(seen, counts)]
        sums.update(report)
    for one in workers:
        one.join(60)
    print(f"{done} programs from seed {options.first}, {steps} steps: {len(differ)} differ"
          f"{': ' * bool(differ)}{' '.join(map(str, differ))}")
    if unsteady:
        print(f"{len(unsteady)} differ between plain runs: {' '.join(map(str, unsteady[:20]))}")
    print(f"{seen[2]} files were staged, {seen[1]} of {seen[0]} opens within samples gave a copy; "
          f"{sums['mappings_armed']:.0f} mappings armed, {sums['checkpoints_hit']:.0f} checkpoints, "
          f"{sums['mappings_observed']:.0f} observed, {sums['streamed_bytes'] / 1e6:.0f} MB streamed")
    # A library that does nothing differs in nothing.
    idle = [what for what, much in (("copies", seen[1]), ("armed", sums["mappings_armed"]),
                                    ("checkpoints", sums["checkpoints_hit"]),
                                    ("streams", sums["streamed_bytes"])) if not much]
    if idle and done >= 100:
        print(f"Sluice did not do its work: no {' and no '.join(idle)}")
        failed = True
    if len(unsteady) * 100 > done:
        print("too many programs differ from themselves")
        failed = True
    return 1 if differ or failed else 0


def read_program(path):
    """A program as describe() has written it."""
    program = programs.Program(0)
    with open(path, encoding="ascii") as lines:
        for line in lines:
            words = line.split()
            if words[:2] == ["#", "seed"]:
                program.seed, program.member = int(words[2]), "member" in words
                program.checkpoint = words[-1].partition("=")[2]
            elif words == ["race"]:
                program.race = True
            elif words and words[0].isdigit():
                program.steps.append((int(words[0]), words[1:]))
    program.wait = any(line.strip() == "wait" for line in open(path, encoding="ascii"))
    return program


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed-base", help="any text, a commit's name: another part of the seeds")
    parser.add_argument("-j", type=int, default=2, help="programs at a time (2)")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--program")
    parser.add_argument("--listing", action="store_true", help="print the program only")
    parser.add_argument("--all", action="store_true", help="also what is known to differ")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--log", action="store_true", help="print both logs of one program")
    options = parser.parse_args()
    if options.seed_base:
        options.first += int.from_bytes(options.seed_base.encode()[:6], "big") % (1 << 40)
    if options.seed is None and options.program is None:
        return run_all(options)
    program = read_program(options.program) if options.program else program_of(options.seed, options)
    if options.listing:
        print(program.listing())
        return 0
    place = ground.Ground()
    try:
        found, plain, under = compare(place, program, 10 if options.program else 2)
        if options.log:
            print("\n".join(plain.log), "\n", "\n".join(under.log))
            print(f"status {plain.status} {under.status} {under.counts} {under.report}")
        if found and not options.no_shrink and not options.program:
            print(describe(place, program, found, options))
        for one, other in found or []:
            print(f"  plain: {one}\n  under: {other}")
        print("the plain runs differ" if found is None else f"{len(found)} differences")
        return 1 if found else 0
    finally:
        place.end()


if __name__ == "__main__":
    sys.exit(main())
