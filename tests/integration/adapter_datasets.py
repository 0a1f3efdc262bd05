#!/usr/bin/python3
# test: timeout=240
"""What the adapter says of datasets: their names, their files; and what it leaves alone."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "adapters"))
import recorded  # noqa: E402
from recorded import claim  # noqa: E402

JOB = os.path.join(recorded.TOP, "tests", "adapters", "odd.py")
SAMPLES = 6
UNTOLD = ("unsized", "plain_list")
# Located with the files of these samples, in this order.
LOCATED = {
    "listed": range(6), "imgs": range(6), "relative": range(6), "bytes": range(6),
    "pathlike": range(6), "equal": range(6), "together": range(6), "subset": (3, 1, 1, 0),
    "nested": (2, 4), "joined": (0, 1, 2, 3, 4, 5, 4), "subset_together": (2, 0, 1),
    "failing": range(6), "negative": range(6), "texts": (), "wrong_length": range(5), "numbered": range(6),
    "hostile": range(6), "after_hostile": range(6),
}

# It takes less than a second; ten are allowed, for a machine that is busy with other tests.
MILLION = """
import time, torch
from torch.utils.data import DataLoader, Dataset
class Many(Dataset):
    def __init__(self):
        self.samples = [("/etc/passwd", i) for i in range(1000000)]
    def __len__(self):
        return len(self.samples)
    def __getitem__(self, index):
        return index
loader = DataLoader(Many(), batch_size=64, shuffle=True)
for _ in range(3):
    started = time.perf_counter()
    batches = iter(loader)
    print(round((time.perf_counter() - started) * 1000, 1))
    next(batches)
"""


def check_odd(folder):
    files = os.path.join(folder, "files")
    os.mkdir(files)
    for number in range(SAMPLES):
        with open(os.path.join(files, f"f{number}"), "w", encoding="ascii") as file:
            file.write(str(number))
    record = os.path.join(folder, "record")
    plain = recorded.run(["-W", "ignore", JOB, files], cwd=folder)
    under = recorded.run(["-W", "ignore", JOB, files], record, cwd=folder)
    claim(plain.returncode == under.returncode == 0, plain.stderr + under.stderr)
    claim(plain.stdout == under.stdout, f"not the same:\n{plain.stdout}\n{under.stdout}")
    claim("changed" not in plain.stdout and plain.stdout.count("untouched") > 20, plain.stdout)
    own, rest = recorded.notes(under)
    claim(rest == plain.stderr, rest)
    claim(not [line for line in own if "adapter off" in line or "not located" in line], f"{own}")
    read = recorded.Record(record)
    for case in UNTOLD:
        claim(read.of_case(case) is None, f"{case} is not left alone")
    for case, samples in LOCATED.items():
        data = read.of_case(case)
        claim(data is not None, f"{case}: nothing was published")
        expected = {i: f"{files}/f{s}" for i, s in enumerate(samples)}
        claim(data.files == expected, f"{case}: {data.files}")
    check_brackets(read)


def check_brackets(read):
    for case in ("listed", "together", "subset_together", "failing", "equal"):
        claim(not any(read.of_case(case).open.values()), f"{case}: begun and not ended")
    claim(sorted(read.of_case("together").begun) == list(range(SAMPLES)), "a batch is not published")
    claim(read.of_case("failing").begun == [0, 1, 2, 3], "a failing sample is not published")
    claim(read.of_case("failing_worker").begun[:4] == [0, 1, 2, 3], "a worker published nothing")
    claim(not read.of_case("named").begun and not read.of_case("named").order, "named are numbered")
    claim(read.of_case("negative").begun == [0, 1, 0, 1][:len(read.of_case("negative").begun)],
          "a negative index is published")
    claim(read.of_case("generators").begun, "batches of a generator are not bracketed")


def check_million(folder):
    record = os.path.join(folder, "million")
    done = recorded.run(["-c", MILLION], record, RECORDER_BRIEF="1")
    claim(done.returncode == 0, done.stderr)
    first, *later = map(float, done.stdout.split())
    print(f"a million samples: located and published in {first} ms, published in {min(later)} ms")
    claim(first < 10000 and min(later) < 1000, "too slow")
    with open(record, encoding="ascii") as lines:
        words = [line.split()[1] for line in lines]
    # Of the three epochs, and of the one that would be next.
    claim(words.count("files") == 16 and words.count("order") == 4, f"{words}")


def main():
    recorded.skip_without_torch()
    with tempfile.TemporaryDirectory(prefix="sv-") as folder:
        check_odd(folder)
        check_million(folder)


if __name__ == "__main__":
    try:
        main()
    except recorded.Failure as failure:
        sys.exit(f"adapter_datasets: {failure}")
