"""Reads an LMDB with py-lmdb: scan, txn (one transaction a record) or random."""
import hashlib
import random
import sys

import lmdb

folder, how = sys.argv[3], sys.argv[4]
env = lmdb.open(folder, readonly=True, lock="nolock" not in sys.argv, readahead=False)
digest = hashlib.sha256()
with env.begin() as txn:
    keys = [bytes(k) for k in txn.cursor().iternext(values=False)]
for epoch in range(2):
    if how == "scan":
        with env.begin(buffers=True) as txn:
            for key, value in txn.cursor():
                digest.update(value)
    elif how == "txn":
        for key in keys:
            with env.begin(write=False) as txn:
                digest.update(txn.get(key))
    else:
        random.seed(5)
        with env.begin() as txn:
            for key in random.choices(keys, k=3000):
                digest.update(txn.get(key))
    print(len(keys), digest.hexdigest())
env.close()
