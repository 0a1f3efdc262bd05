#!/usr/bin/python3
"""scan_tree.py FOLDER: lists all files below it and their sizes, as a dataset does before the first batch."""
import hashlib
import json
import os
import sys
import time

begun = time.monotonic_ns()
found = hashlib.sha256()
count = 0
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        path = os.path.join(folder, name)
        found.update(f"{path[len(sys.argv[1]):]} {os.stat(path).st_size}\n".encode())
        count += 1
ended = time.monotonic_ns()
print(json.dumps({"pid": os.getpid(), "started_ns": begun, "ended_ns": ended, "seconds": (ended - begun) / 1e9,
                  "files": count, "digest": found.hexdigest()}))
