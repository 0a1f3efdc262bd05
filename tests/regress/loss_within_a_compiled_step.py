#!/usr/bin/python3
# test: timeout=240
"""A loss within a function that torch.compile compiles was observed while it was traced, with tensors without values:
the observation ended, and what remained of it could have ended in the graph."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))
import harness  # noqa: E402
from harness import claim  # noqa: E402

JOB = """
import torch
import torch._dynamo.utils
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((4,), float(index)), index % 2

torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Linear(4, 2)

def forward(values, labels):
    return torch.nn.functional.cross_entropy(model(values), labels)

compiled = torch.compile(forward, backend="aot_eager", fullgraph=True)
for epoch in range(2):
    for values, labels in DataLoader(Numbers(), batch_size=8, shuffle=True):
        loss = compiled(values, labels)
        loss.backward()
        print(loss.item().hex())
counters = torch._dynamo.utils.counters
print({name: dict(counters[name]) for name in ("frames", "stats", "graph_break", "recompiles", "aot_autograd")})
"""
LINE = "sluice: pytorch: losses within a function that torch.compile compiled are not observed"


def test(place):
    argv = [harness.torch2(), "-W", "ignore", "-c", JOB]
    plain = place.run(argv, library=None, timeout=200)
    claim(plain.returncode == 0 and "unique_graphs': 1" in plain.stdout, plain.stderr + plain.stdout)
    under = place.run(argv, timeout=200, SLUICE_IMPORTANCE="loss")
    harness.same(plain, under)
    lines = [line for line in harness.sluice_lines(under) if "pytorch" in line]
    claim(lines == [LINE], f"the adapter has other things to say: {lines}")


if __name__ == "__main__":
    harness.main(test)
