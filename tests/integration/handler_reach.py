#!/usr/bin/python3
# test: timeout=120
"""What the fault handler reaches, by the calls in the built library: no function of libc's that allocates, locks or
formats, and beyond preload/handler/ only what docs/signal-safety.md names. Calls through pointers are not seen."""
import collections
import os
import re
import subprocess

import harness
from harness import claim

HANDLERS = ("sluice::preload::fault_handler(", "sluice::preload::shadow_handler(")
# Nothing here throws; a thread that is cancelled unwinds through it after the handler has returned.
NOT_FOLLOWED = {"_Unwind_Resume"}
OF_LIBC = {"__errno_location", "memcpy", "memmove", "memset"}
ROOMS = ("preload/handler/", "preload/base/", "preload/session/events.", "preload/session/waits.",
         "preload/startup/fork.cc", "protocol/", "/usr/include/")
# What a fork that no hook saw makes new is reset by whoever has it; each is a handful of stores.
RESETS = re.compile(r"sluice::preload::(\w+_after_fork|connections|time_namespace)\(")
# Followed from there, an observed mapping is reported anew: an event.


def calls(library):
    """function: the functions that it calls or jumps to"""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-C", library], capture_output=True, text=True,
                          check=True).stdout
    found, current, where = collections.defaultdict(set), None, {}
    for line in text.splitlines():
        head = re.match(r"([0-9a-f]+) <(.+)>:$", line)
        if head:
            current = head.group(2)
            where[current] = head.group(1)
            continue
        call = re.search(r"\s(?:call|jmp)\s+[0-9a-f]+ <(.+?)(?:\+0x[0-9a-f]+)?>", line)
        if call and current:
            found[current].add(call.group(1))
    return found, where


def reached(found, starts):
    """function: its first caller"""
    parents = dict.fromkeys(starts)
    waiting = list(starts)
    while waiting:
        function = waiting.pop(0)
        for called in sorted(found.get(function, ())):
            if called not in parents and called not in NOT_FOLLOWED:
                parents[called] = function
                waiting.append(called)
    return parents


def way(parents, function):
    steps = []
    while function is not None:
        steps.append(function)
        function = parents[function]
    return " <- ".join(steps)


def sources(library, addresses):
    done = subprocess.run(["addr2line", "-e", library, *addresses], capture_output=True, text=True, check=True)
    return [line.split(":")[0] for line in done.stdout.splitlines()]


def test(_):
    for tool in ("objdump", "addr2line"):
        if subprocess.run(["which", tool], capture_output=True, check=False).returncode:
            harness.skip(f"no {tool} here")
    found, where = calls(harness.LIBRARY)
    starts = [name for name in where if name.startswith(HANDLERS)]
    claim(len([name for name in starts if "clone" not in name]) == 2, f"handlers: {starts}")
    parents = reached(found, starts)
    claim(len(parents) > 30, f"only {len(parents)} functions are reached: calls are not seen")
    for function in parents:
        if function.endswith("@plt"):
            claim(function[:-len("@plt")] in OF_LIBC, f"of libc: {way(parents, function)}")
    own = [name for name in parents if name in where and not name.endswith("@plt") and name != "_init"]
    for function, source in zip(own, sources(harness.LIBRARY, [where[name] for name in own])):
        path = os.path.relpath(source, harness.TOP) if source.startswith(harness.TOP) else source
        claim(path.startswith(ROOMS) or RESETS.match(function) or RESETS.match(parents[function] or ""),
              f"{path}: {way(parents, function)}")


if __name__ == "__main__":
    harness.main(test)
