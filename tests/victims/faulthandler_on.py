"""faulthandler is on: faulthandler_on.py ... HOW. Its report of a crash is part of the output."""
import ctypes
import faulthandler
import mmap
import os
import signal
import sys
import threading

how = sys.argv[4]
if how != "late":
    faulthandler.enable()
with open(sys.argv[1], "rb") as file:
    view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
if how == "late":
    faulthandler.enable()
print(sum(view[::4096]), flush=True)
worker = threading.Thread(target=lambda: print(hash(view[1000:4000000]) != 0, flush=True))
worker.start()
worker.join()
if how == "null" or how == "late":
    ctypes.string_at(0)
elif how == "bus":
    os.kill(os.getpid(), signal.SIGBUS)
elif how == "sent":
    os.kill(os.getpid(), signal.SIGSEGV)
elif how == "write":
    buffer = (ctypes.c_char * 8).from_address(0x10)
    buffer[0] = b"x"
elif how == "off":
    faulthandler.disable()
    print(sum(view[::512]), faulthandler.is_enabled())
    signal.signal(signal.SIGSEGV, lambda number, frame: print("caught", number, flush=True))
    os.kill(os.getpid(), signal.SIGSEGV)
    print(signal.getsignal(signal.SIGSEGV) is not None, sum(view[::256]))
