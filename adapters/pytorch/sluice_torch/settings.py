"""What the environment says, and how the adapter goes out of the job's way."""
import os
import sys

_off = False


def is_off():
    return _off


def debug(line):
    """One line on standard error, as the library's own, with SLUICE_LOG=debug or trace."""
    if os.environ.get("SLUICE_LOG", "").lower() in ("debug", "trace"):
        try:
            sys.stderr.write("sluice: pytorch: " + line + "\n")
        except Exception:  # closed, or None
            pass


_said = set()


def warn_once(line):
    """One line on standard error, once, but with SLUICE_LOG=off or error."""
    if line in _said or os.environ.get("SLUICE_LOG", "").lower() in ("off", "error"):
        return
    _said.add(line)
    try:
        sys.stderr.write("sluice: pytorch: " + line + "\n")
    except Exception:  # closed, or None
        pass


def switch_off(why):
    """For the rest of the process the adapter does nothing. The first reason is told."""
    global _off
    if not _off:
        _off = True
        debug("adapter off: " + why)


def guarded(function):
    """`function`, which is the adapter's own and returns None, made safe to call from the job: an
    exception in it switches the adapter off. KeyboardInterrupt and its like are the job's."""
    def call(*arguments):
        if not _off:
            try:
                function(*arguments)
            except Exception as error:
                switch_off("%s: %s" % (type(error).__name__, error))
    return call
