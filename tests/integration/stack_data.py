#!/usr/bin/python3
# test: timeout=900 turns
"""Jobs with PyPI's lmdb, grain, webdataset and datasets see with Sluice what they see without: see tests/stack."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "stack"))
import compare  # noqa: E402

if __name__ == "__main__":
    compare.test("lmdb", "grain", "webdataset", "datasets", count=6)
