#!/usr/bin/python3
# test: timeout=400
"""A copy in memory is given in a window on its dataset alone, for reading alone, to a thread that may
read the original, and only as it is now: whatever else is done gets the original.

stage_window [WORD...]: only cases with one of the words in GROUND/CASE.
"""
import os
import signal
import subprocess
import sys

import harness
import stage_testing
from harness import claim
from stage_testing import SETTINGS, Ground, Tally, victim

VICTIMS = ("stage_window", "stage_outside")
# The slow mount is for reading only.
WRITING = ("lock_of_modified_file", "lock_without_free_number", "mapped", "changed_by_another",
           "copied_after_replaced", "copied_after_folder_renamed")
# A hundred thousand opens; what races is the same wherever the files are.
MANY_OPENS = ("stream_closed_while_asked_for_its_name", "numbers_reused_while_asked_for_their_names")
WITH_TEST = ("optimizer_is_gone", "changes_elsewhere")  # the test takes part in these


def ordinary_cases(place, tally, ground, name, wanted):
    for program, case in [(one, case) for one in VICTIMS for case in stage_testing.cases_of(place, one)]:
        what = f"{name}/{case}"
        if case in WITH_TEST or (name == "mount" and case in WRITING + MANY_OPENS):
            continue
        if wanted and not any(word in what for word in wanted):
            continue
        # Each changes the files: of its own, and by an optimizer of its own credentials.
        folder = ground.make(case)
        argv = victim(program, case, folder)
        plain = place.run(argv, library=None, timeout=100)
        folder = ground.make(case)
        tally.compare(what, plain, place.run(argv, timeout=100, **SETTINGS))
        harness.drive.end_optimizer(place.sockets)


def changed_while_gone(place, ground, how):
    """The optimizer is stopped or killed, then another program changes a staged file."""
    outputs = []
    for library in None, harness.LIBRARY:
        argv = victim("stage_outside", "optimizer_is_gone", ground.make("gone"))
        job = place.start(argv, library, stdin=subprocess.PIPE, **(SETTINGS if library else {}))
        claim(job.stdout.readline() == "staged\n", "the job does not begin")
        pids = place.optimizers() if library else []
        claim(bool(pids) == bool(library), f"optimizers: {pids}")
        for pid in pids:
            os.kill(pid, how)
        out, err = job.communicate("go\n", timeout=60)
        for pid in pids:
            if how == signal.SIGSTOP:
                os.kill(pid, signal.SIGCONT)
        claim(job.returncode == 0, err)
        outputs.append(out)
        harness.drive.end_optimizer(place.sockets)
    claim(outputs[0] == outputs[1], f"optimizer gone by {how.name}: "
          + stage_testing.first_difference(*outputs))


def messages_of_changes(place, ground):
    """chmod, rename, utimensat and truncate of other files ask the optimizer nothing."""
    trace = os.path.join(place.work, "trace")
    argv = ["strace", "-f", "-o", trace, "-e", "trace=access,sendto,sendmsg,recvfrom,recvmsg,rename",
            *victim("stage_outside", "changes_elsewhere", ground.make("elsewhere"))]
    done = place.run(argv, timeout=100, **SETTINGS)
    claim(done.returncode == 0, done.stderr)
    with open(trace, encoding="ascii", errors="replace") as text:
        lines = text.read().splitlines()
    begin = next(i for i, line in enumerate(lines) if 'access("begin"' in line)
    end = next(i for i, line in enumerate(lines) if 'access("end"' in line)
    between = lines[begin + 1:end]
    claim(sum("rename(" in line for line in between) == 100, "the trace does not hold the calls")
    asked = [line for line in between if "send" in line or "recv" in line]
    claim(not asked, f"{len(asked)} messages, as {asked[:1]}")


def test(place):
    # Files of several owners and groups, and folders that these must be able to enter.
    os.chmod(place.folder, 0o755)
    tally = Tally()
    wanted = sys.argv[1:]
    grounds = [("disk", None)]
    if stage_testing.slow_mounts():
        grounds.append(("mount", "1"))
    for name, latency in grounds:
        with Ground(place, name, latency) as ground:
            os.chmod(ground.source, 0o755)
            ordinary_cases(place, tally, ground, name, wanted)
            if wanted:
                continue
            if name == "disk":
                with place.impatient():
                    for how in signal.SIGSTOP, signal.SIGKILL:
                        changed_while_gone(place, ground, how)
                messages_of_changes(place, ground)
    tally.end()


if __name__ == "__main__":
    harness.main(test)
