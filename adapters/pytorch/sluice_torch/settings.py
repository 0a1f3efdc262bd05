"""Settings from the environment, and how the adapter switches itself off."""
import os
import sys

_off = False


def is_off():
    return _off


def debug(line):
    """Prints a line on standard error, like the library's, if SLUICE_LOG is debug or trace."""
    if os.environ.get("SLUICE_LOG", "").lower() in ("debug", "trace"):
        try:
            sys.stderr.write("sluice: pytorch: " + line + "\n")
        except Exception:  # closed, or None
            pass


_said = set()


def warn_once(line):
    """Prints a line on standard error, once, unless SLUICE_LOG is off or error."""
    if line in _said or os.environ.get("SLUICE_LOG", "").lower() in ("off", "error"):
        return
    _said.add(line)
    try:
        sys.stderr.write("sluice: pytorch: " + line + "\n")
    except Exception:  # closed, or None
        pass


def switch_off(why):
    """For the rest of the process the adapter does nothing. The first reason is logged."""
    global _off
    if not _off:
        _off = True
        debug("adapter off: " + why)


def guarded(function):
    """Wraps `function`, which is the adapter's and returns None, to be called from the job: an
    exception in it switches the adapter off. KeyboardInterrupt and its like reach the job."""
    def call(*arguments):
        if not _off:
            try:
                function(*arguments)
            except Exception as error:
                switch_off("%s: %s" % (type(error).__name__, error))
    return call
