"""Made-up inputs of `sluice report`, and its pages' text by parts, for the tests of it."""
import html.parser
import math
import os
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get("B", "build"))
MIB = 1 << 20
VOID = {"meta", "br", "img", "link", "input", "hr"}


def report(*words, **options):
    return subprocess.run([os.path.join(BUILD, "sluice"), "report", *words], capture_output=True,
                          text=True, timeout=60, check=False, **options)


def run(epochs=4, points=400, samples=True):
    """As the library writes it: `epochs` epochs of 10 s and 1 GiB each, the first without samples
    known, late ones and misses thereafter."""
    seconds = 10.0 * epochs
    history = {name: [] for name in (
        "time_ns", "read_bytes", "ahead_bytes", "precached_bytes", "late_bytes", "stall_ns",
        "outstanding_bytes", "budget_bytes", "in_flight", "depth", "bandwidth", "sample_hits",
        "sample_late", "sample_misses", "epoch")}
    for i in range(points):
        share = i / max(1, points - 1)
        ahead = int(96 * MIB * abs(math.sin(9 * share)) + 16 * MIB)
        values = {
            "time_ns": seconds * share * 1e9, "read_bytes": share * epochs * 1024 * MIB,
            "ahead_bytes": ahead, "precached_bytes": share * epochs * 1024 * MIB + ahead,
            "late_bytes": share * 7 * MIB, "stall_ns": 1.5e9 * share ** 2,
            "outstanding_bytes": ahead + 8 * MIB, "budget_bytes": 256 * MIB,
            "in_flight": i * 7 % 33, "depth": 32, "bandwidth": 400e6,
            "sample_hits": share * 3000, "sample_late": share * 40, "sample_misses": share * 9,
            "epoch": int(share * epochs * 0.999)}
        for name, value in values.items():
            history[name].append(int(value))
    numbers = range(epochs)
    table = {
        "seen": epochs, "epoch": list(numbers),
        "begin_ns": [int(e * 10e9) for e in numbers],
        "end_ns": [int((e + 1) * 10e9 - 25e7) for e in numbers],
        "sample_hits": [980 if samples and e else 0 for e in numbers],
        "sample_late": [15 if samples and e else 0 for e in numbers],
        "sample_misses": [5 if samples and e else 0 for e in numbers],
        "sample_unknown": [1000 if samples and not e else 0 for e in numbers],
        "read_bytes": [1024 * MIB for _ in numbers],
        "memory_bytes": [1000 * MIB for _ in numbers],
        "late_bytes": [20 * MIB for _ in numbers]}
    return {"precached_bytes": 4123456789, "precached_used_bytes": 4100000000,
            "precached_unused_bytes": 23456789, "stall_avoided_ns": 31415926535,
            "stall_ns": 1500000000, "read_errors": 0, "events_seen": 12345, "checkpoints_hit": 678,
            "streamed_bytes": 0, "passed_no_optimizer": 0, "passed_vma_limit": 3,
            "history": {"interval_ns": 80000000, **history}, "epochs": table}


def substitutions():
    places = range(512)
    return {"seen": 12000, "parts": 5, "counts": [480] * 25, "requested": [place * 97 % 50000 for place in places],
            "trained": [place * 8191 % 50000 for place in places]}


def bench():
    return {
        "lmdb_cold_over_warm_pfs": {"value": 1.0123, "unit": "ratio", "goal": 1.03, "low": 1.01,
                                    "high": 1.02},
        "lmdb_link_share": {"value": 0.9815, "unit": "ratio", "goal": 0.97, "low": 0.975,
                            "high": 0.985},
        "stream_link_share": {"value": 0.61, "unit": "ratio", "goal": 0.97, "low": 0.6,
                              "high": 0.62},
        "start_cost_us": {"value": 1700.5, "unit": "us", "goal": 500, "low": 1650, "high": 1800},
        "noncached_bytes_cell": {"value": 468608, "unit": "bytes", "goal": 524288, "low": 450560,
                                 "high": 491520},
        "arm_1tib_ms": {"value": -0.31, "unit": "ms", "goal": 5, "low": -0.4, "high": 0.2},
        "a_figure_that_has_a_rather_long_name_and_no_goal_of_its_own": {
            "value": 123456789012, "unit": "count", "goal": None, "low": 123456789000,
            "high": 123456789999}}


class Page(html.parser.HTMLParser):
    """Checks that elements are closed as they were opened; collects text and cells of tables."""

    def __init__(self, path):
        super().__init__()
        self.open, self.bad, self.text, self.rows, self.links = [], [], [], [], []
        self.cell = None
        with open(path, encoding="utf-8") as source:
            self.source = source.read()
        self.feed(self.source)
        self.close()
        self.bad += [f"<{tag}> is not closed" for tag in self.open]
        self.all = " ".join(" ".join(self.text).split())

    def handle_starttag(self, tag, attrs):
        self.links += [f"{tag} {name}={value}" for name, value in attrs
                       if name in ("src", "href", "srcset", "action", "data") or
                       (name.startswith("on")) or "url(" in (value or "")]
        if tag in VOID:
            return
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.cell = []

    def handle_startendtag(self, tag, attrs):
        pass  # of SVG

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.bad.append(f"</{tag}> closes something else")
        if tag in ("td", "th") and self.cell is not None:
            self.rows[-1].append(" ".join("".join(self.cell).split()))
            self.cell = None

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            return
        self.text.append(data)
        if self.cell is not None:
            self.cell.append(data)

    def row(self, name):
        return next((row for row in self.rows if row and row[0] == name), None)
