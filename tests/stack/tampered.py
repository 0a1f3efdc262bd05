"""A job that does see another world under Sluice, in one quantity for each case: the comparison must find every one."""
import atexit
import os
import sys

import torch
from cases import _cases, augmented, case, expecting, main, states

UNDER = "libsluice" in os.environ.get("LD_PRELOAD", "")


@case("same")
def same():
    return {"indices": [1, 2, 3], "states": states()}


@case("order")
def order():
    return {"indices": [2, 1, 3] if UNDER else [1, 2, 3], "states": states()}


@case("byte")
def byte():
    raw = bytearray(64)
    raw[63] = 1 if UNDER else 0
    return {"bytes": augmented(bytes(raw), 0).sum().item().hex()}


@case("loss")
def loss():
    value = torch.tensor(1.0)
    return {"losses": (torch.nextafter(value, value * 2) if UNDER else value).item().hex()}


@case("generator")
def generator():
    if UNDER:
        torch.rand(1)
    return {"states": states()}


@case("exception")
def exception():
    result = {}
    with expecting(result):
        raise (KeyError if UNDER else IndexError)("no such sample")
    return result


@case("quantity")
def quantity():
    return {"indices": [], **({"more": 1} if UNDER else {})}


@case("absent" if not UNDER else "added")
def absent():
    return {"indices": []}


@case("spoken")
def spoken():
    if UNDER:
        print("file.py:7: UserWarning: 8 workers", file=sys.stderr)
        print("two\none")
    else:
        print("file.py:6: UserWarning: 9 workers", file=sys.stderr)
        print("one\ntwo")
    return {}


if __name__ == "__main__":
    if "breaks" in sys.argv:
        raise SystemExit("a job that fails in any run")
    if "vanishes" in sys.argv:
        del _cases["same"]
        sys.argv[3:] = ["order"]
    if UNDER:
        atexit.register(os._exit, 3)
    main()
