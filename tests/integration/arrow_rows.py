#!/usr/bin/python3
# test: timeout=400 turns
"""Rows of mapped Arrow tables, of several files and in columns of every layout, are located where their bytes are; and in
a job's first epoch they are in memory in time, whatever it reads being as without Sluice. By PyTorch 2."""
import json
import os
import subprocess

import harness
import stage_testing
from harness import claim
from stage_testing import Ground

PYTHON = os.path.join(harness.BUILD, "venv", "bin", "python3")
ROWS, FILES, BATCH_ROWS = 600, 3, 40
# argv: folder. Files of ROWS / FILES rows, in batches, of the column's layouts; what the rows hold, by index.
TABLES = f"""
import os, sys
import numpy, pyarrow
draw = numpy.random.default_rng(3)
sizes = draw.integers(20_000, 60_000, {ROWS})
texts = [draw.bytes(int(size)) for size in sizes]
numbers = [draw.integers(0, 1 << 40, 2000 + at % 9) for at in range({ROWS})]
fixed = [draw.integers(0, 1 << 40, 1024) for _ in range({ROWS})]
same = [draw.bytes(4000) for _ in range({ROWS})]
KINDS = {{"binary": (texts, pyarrow.binary()), "large": (texts, pyarrow.large_binary()),
         "list": (numbers, pyarrow.list_(pyarrow.int64())), "vector": (fixed, pyarrow.list_(pyarrow.int64(), 1024)),
         "blob": (same, pyarrow.binary(4000)),
         "image": ([{{"path": "x", "bytes": text}} for text in texts],
                   pyarrow.struct([("path", pyarrow.string()), ("bytes", pyarrow.binary())]))}}

def bytes_of(value):
    value = value["bytes"] if isinstance(value, dict) else value
    return value if isinstance(value, bytes) else value.tobytes()

def write(folder, kind):
    values, column = KINDS[kind]
    each = {ROWS} // {FILES}
    for number in range({FILES}):
        part = slice(number * each, (number + 1) * each)
        table = pyarrow.table({{"label": list(range({ROWS}))[part], "data": pyarrow.array(values[part], column)}})
        with pyarrow.OSFile(os.path.join(folder, f"{{kind}}-{{number}}.arrow"), "wb") as file, \\
                pyarrow.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table, max_chunksize={BATCH_ROWS})

def mapped(folder, kind):
    return pyarrow.concat_tables([pyarrow.ipc.open_stream(pyarrow.memory_map(os.path.join(folder, f"{{kind}}-{{at}}.arrow")))
                                  .read_all() for at in range({FILES})])
"""
PLACES = TABLES + f"""
sys.path[:0] = [{os.path.join(harness.TOP, "adapters/pytorch")!r}, {os.path.join(harness.TOP, "adapters/python")!r}]
import torch
from sluice_torch import arrow

class Data:
    pass

def check(table, wanted, samples, what):
    data = Data()
    data.rows = table
    found = arrow.rows(data, table.num_rows)
    assert found is not None, what
    seen = {{}}
    for first, path, offsets, lengths in found.runs(samples):
        with open(path, "rb") as file:
            for at, (offset, length) in enumerate(zip(offsets, lengths)):
                file.seek(int(offset))
                seen[first + at] = file.read(int(length))
    assert len(seen) == len(samples), what
    for at, sample in enumerate(samples):
        assert seen[at] == bytes_of(wanted[sample]), (what, at)

folder = sys.argv[1]
for kind, (values, _) in KINDS.items():
    write(folder, kind)
    table = mapped(folder, kind)
    check(table, values, range({ROWS}), kind)
    check(table, values, [int(at) for at in draw.permutation({ROWS})], kind + " shuffled")
    check(table.slice(70, 440), values[70:510], range(440), kind + " in part")
data = Data()
data.rows = pyarrow.table({{"data": texts}})
assert arrow.rows(data, {ROWS}) is None, "a table in memory has places"
data.rows = mapped(folder, "binary").slice(0, 2)
assert arrow.rows(data, 2) is None, "a small table has places"
data.rows = pyarrow.table({{"data": [None, None]}})
assert arrow.rows(data, 2) is None, "a table without bytes has places"
"""
JOB = TABLES + """
import hashlib
import torch
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __init__(self):
        self.rows = mapped(sys.argv[1], "binary")
    def __len__(self):
        return self.rows.num_rows
    def __getitem__(self, index):
        return index, hashlib.sha256(self.rows.column("data")[index].as_py()).hexdigest()

torch.manual_seed(5)
whole = hashlib.sha256()
for epoch in range(2):
    for batch in DataLoader(Images(), batch_size=16, shuffle=True, num_workers=2, collate_fn=list):
        whole.update(repr(batch).encode())
print(whole.hexdigest())
"""


def test(place):
    if subprocess.run([PYTHON, "-c", "import torch, pyarrow"], capture_output=True, check=False).returncode:
        harness.skip("no PyTorch 2 with pyarrow (scripts/setup formats)")
    stage_testing.need_slow_mounts()
    report = os.path.join(place.work, "report.json")
    with Ground(place, "mount", 5) as ground:
        done = place.run([PYTHON, "-c", PLACES, ground.source], library=None)
        claim(done.returncode == 0, done.stderr)
        argv = [PYTHON, "-W", "ignore", "-c", JOB]
        plain = place.run([*argv, ground.source], library=None)
        done = place.run([*argv, ground.path], timeout=300, **stage_testing.by_default(report))
        claim(done.returncode == 0 and done.stdout == plain.stdout, done.stdout + done.stderr)
        harness.drive.end_optimizer(place.sockets)
    with open(report, encoding="utf-8") as text:
        found = json.load(text)
    unknown = found["epochs"]["sample_unknown"][0]
    claim(unknown == 0, f"{unknown} of {ROWS} samples were not located in the first epoch: {found}")
    claim(found["sample_hits"] + found["sample_late"] > ROWS // 2, f"few were read ahead: {found}")


if __name__ == "__main__":
    harness.main(test)
