#!/usr/bin/python3
"""SLUICE_CALLSITES, SLUICE_CRASH_TRACE, SLUICE_OFF, SLUICE_REPORT, and a relative LD_PRELOAD."""
import json
import os
import shutil

import harness
from harness import claim


def callsites(place):
    done = place.run(harness.victim("map_scan"), SLUICE_CALLSITES="1")
    lines = [li for li in harness.sluice_lines(done) if "callsite" in li]
    claim(lines and "map_scan" in lines[0], f"no call site of map_scan: {done.stderr}")
    megabytes = sum(float(li.split("callsite ")[1].split(" MB")[0]) for li in lines)
    size = os.path.getsize(os.path.join(harness.DATA, "scan.bin")) / 1e6
    claim(megabytes > size * 0.9, f"{megabytes} MB of {size} attributed: {lines}")
    plain = place.run(harness.victim("map_scan"))
    claim("callsite" not in plain.stderr, "reported without being requested")


def crash_trace(place):
    argv = harness.victim("crash", "null")
    plain = place.run(argv, library=None)
    done = place.run(argv, SLUICE_CRASH_TRACE="1")
    claim(done.returncode == plain.returncode == -11, f"status {done.returncode}")
    claim(done.stdout == plain.stdout, "standard output differs")
    frames = [li for li in harness.sluice_lines(done) if "crash #" in li]
    claim(any("/crash(" in li for li in frames), f"the crashing program is not in {frames}")
    silent = place.run(argv)
    claim("crash #" not in silent.stderr, "reported without being requested")
    # libunwind is loaded on request only.
    maps = ["/usr/bin/python3", "-c", "print('libunwind.so' in open('/proc/self/maps').read())"]
    claim(place.run(maps).stdout == "False\n", "libunwind is loaded unasked")
    claim(place.run(maps, SLUICE_CRASH_TRACE="1").stdout == "True\n", "libunwind is not loaded")


def off_and_report(place):
    path = os.path.join(place.work, "report.json")
    done = place.run(harness.victim("map_scan"), SLUICE_OFF="1", SLUICE_REPORT=path)
    claim(done.returncode == 0 and not harness.sluice_lines(done), done.stderr)
    claim(not os.path.exists(path), "a report of nothing")
    done = place.run(harness.victim("map_scan"), SLUICE_REPORT=path)
    with open(path, encoding="utf-8") as report:
        figures = json.load(report)
    claim(figures["checkpoints_hit"] > 100 and figures["mappings_armed"] == 2, str(figures))
    # A report that cannot be written costs a line, not the job.
    done = place.run(harness.victim("map_scan"), SLUICE_REPORT="/nonexistent/report.json")
    claim(done.returncode == 0 and "SLUICE_REPORT" in done.stderr, done.stderr)


def mistyped_variable(place):
    """Said once for a job, with what was meant; names that are nearly none of ours are another program's."""
    argv = ["sh", "-c", "env | grep -E '^SLUICE_(S.?Z|H)' | sort; /bin/true; /bin/true"]
    done = place.run(argv, SLUICE_SZIE="1M", SLUICE_HOME="/opt/sluice", SLUICE_SIZE="2M")
    claim(done.stdout.split() == ["SLUICE_HOME=/opt/sluice", "SLUICE_SIZE=2M"], done.stdout)
    claim(done.stderr == "sluice: SLUICE_SZIE is not an option; did you mean SLUICE_SIZE?\n", done.stderr)
    silent = place.run(argv, SLUICE_SZIE="1M", SLUICE_LOG="error")
    claim(silent.stderr == "", silent.stderr)


def relative_preload(place):
    shutil.copy(harness.LIBRARY, os.path.join(place.work, "libsluice.so"))
    os.mkdir(os.path.join(place.work, "elsewhere"))
    done = place.run(["bash", "-c", "cd elsewhere && /bin/true && echo $LD_PRELOAD"],
                     library="./libsluice.so")
    claim(done.returncode == 0 and "cannot be preloaded" not in done.stderr, done.stderr)
    claim(done.stdout == os.path.join(place.work, "libsluice.so") + "\n", done.stdout)


def test(place):
    callsites(place)
    crash_trace(place)
    off_and_report(place)
    mistyped_variable(place)
    relative_preload(place)


if __name__ == "__main__":
    harness.main(test)
