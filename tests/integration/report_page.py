#!/usr/bin/python3
# test: timeout=180
"""The pages of sluice report as a browser shows them, 1280 and 400 pixels wide and narrower: all of
the text on the page, legible, nothing over anything else, curves and bars where they belong, and
nothing asked of the network."""
import json
import os
import sys
import tempfile

import browser
import report_data

WORK = os.environ.get("TEST_DIR") or tempfile.mkdtemp(prefix="sluice-page-")
WIDTHS = (1280, 900, 700, 400, 320)
SMALLEST = 11.5  # CSS pixels of type
CONTRAST = 4.5   # WCAG 2.1, 1.4.3
CHARTS = ["timeline", "queue", "bandwidth", "stall", "budget"]
HEADINGS = ["Sluice: a run", "Reader against frontier", "Hit, late, miss", "Queue depth",
            "Bandwidth", "Stall", "Memory budget", "All figures"]


class Wrong(Exception):
    pass


def claim(truth, what):
    if not truth:
        raise Wrong(what)


def luminance(color):
    parts = [c / 255 for c in color[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def overlaps(texts):
    """Pairs of lines of text that lie over each other."""
    ordered = sorted(texts, key=lambda t: t["top"])
    for at, one in enumerate(ordered):
        for other in ordered[at + 1:]:
            if other["top"] >= one["bottom"] - 2:
                break
            across = min(one["right"], other["right"]) - max(one["left"], other["left"])
            if across > 1:
                yield f"'{one['text']}' and '{other['text']}'"


def inside(inner, outer, slack=2.5):
    return (inner["left"] >= outer["left"] - slack and inner["right"] <= outer["right"] + slack and
            inner["top"] >= outer["top"] - slack and inner["bottom"] <= outer["bottom"] + slack)


def check_layout(seen, width, path):
    claim(seen["width"] == width, f"the browser is {seen['width']} wide")
    claim(seen["scrollWidth"] <= width, f"the page is {seen['scrollWidth']} wide")
    claim(len(seen["texts"]) > 20, f"only {len(seen['texts'])} lines of text")
    for text in seen["texts"]:
        claim(text["left"] >= 0 and text["right"] <= width, f"sticks out: {text}")
        claim(text["size"] >= SMALLEST, f"too small: {text}")
        ratio = contrast(text["color"], text["ground"])
        claim(ratio >= CONTRAST, f"contrast {ratio:.2f}: {text}")
    over = list(overlaps(seen["texts"]))
    claim(not over, f"over each other: {over[:5]}")
    claim(seen["requests"] == ["file://" + path], f"requested {seen['requests']}")
    claim(not seen["complaints"], f"the browser complains: {seen['complaints']}")


def check_charts(seen, width):
    claim([chart["id"] for chart in seen["charts"]] == CHARTS, f"charts: {seen['charts']}")
    for chart in seen["charts"]:
        claim(chart["right"] - chart["left"] > (200 if width < 500 else 300), f"narrow: {chart}")
        claim(chart["bottom"] - chart["top"] >= 150, f"low: {chart}")
        for shape in chart["lines"] + chart["areas"]:
            claim(inside(shape, chart), f"{chart['id']}: a curve outside: {shape}")
            claim(shape["right"] - shape["left"] > 0.97 * (chart["right"] - chart["left"]),
                  f"{chart['id']}: does not cover the time: {shape}")


def check_run(seen, width):
    for text in HEADINGS + ["4 GiB", "98 %", "1.5 s", "31.42 s", "4,123,456,789 bytes", "980",
                            "too few VMAs left", "epoch 3", "256 MiB"]:
        claim(text in seen["visible"], f"'{text}' is not to be seen")
    claim("events_dropped" not in seen["visible"], "zeros are not folded away")
    check_charts(seen, width)
    timeline = seen["charts"][0]
    high = timeline["bottom"] - timeline["top"]
    reader = next(line for line in timeline["lines"] if "blue" in line["name"])
    front = next(line for line in timeline["lines"] if "teal" in line["name"])
    # 4 GiB of an axis to 5 GiB, from the bottom; the frontier 16 MiB or more ahead of it.
    claim(abs((reader["bottom"] - reader["top"]) - 0.8 * high) < 4, f"reader: {reader} in {timeline}")
    claim(front["top"] < reader["top"] + 2, f"frontier: {front}, reader: {reader}")
    claim(len(timeline["marks"]) == 4, f"epochs: {timeline['marks']}")
    bars = {bar["row"]: bar for bar in seen["bars"]}
    claim(set(bars) == {f"epoch {n}" for n in range(4)}, f"bars: {sorted(bars)}")
    check_parts(bars["epoch 0"], {"gray": 1.0})
    check_parts(bars["epoch 2"], {"teal": 0.98, "amber": 0.015, "red": 0.005})


def check_substitutions(seen, _):
    for text in ["Trained in place of others", "12,000 times a sample", "512 of them", "20-40 %", "2,400", "40k"]:
        claim(text in seen["visible"], f"'{text}' is not to be seen")
    picture = next(chart for chart in seen["charts"] if chart["id"] == "substitutions")
    claim(picture["bottom"] - picture["top"] >= 150, f"low: {picture}")
    dots = picture["dots"][0]
    claim(inside(dots, picture), f"dots outside: {dots}")
    claim(dots["right"] - dots["left"] > 0.7 * (picture["right"] - picture["left"]), f"dots: {dots}")


def check_parts(bar, shares):
    whole = bar["right"] - bar["left"]
    got = {part["name"]: (part["right"] - part["left"]) / whole for part in bar["parts"]}
    claim(set(got) == set(shares), f"{bar['row']}: {got}")
    for name, share in shares.items():
        claim(abs(got[name] - share) < 0.01, f"{bar['row']}: {name} is {got[name]}, not {share}")


def check_bench(seen, _):
    for text in ["Sluice: benchmarks", "Figures and goals", "lmdb_link_share", "0.9815", "≥ 0.97",
                 "0.975 – 0.985", "missed", "met", "reported", "468,608", "1,700.5", "-0.31"]:
        claim(text in seen["visible"], f"'{text}' is not to be seen")
    made = report_data.bench()
    bars = {bar["row"]: bar for bar in seen["bars"]}
    claim(set(bars) == {n for n, e in made.items() if e["goal"] is not None}, f"bars: {set(bars)}")
    for name, bar in bars.items():
        whole = bar["right"] - bar["left"]
        part, goal = bar["parts"][0], bar["goal"][0]
        want = min(1, max(0, 0.6 * made[name]["value"] / made[name]["goal"]))
        share = (part["right"] - part["left"]) / whole
        claim(abs(share - want) < 0.01, f"{name}: a bar of {share}, not {want}")
        at = ((goal["left"] + goal["right"]) / 2 - bar["left"]) / whole
        claim(abs(at - 0.6) < 0.01, f"{name}: the goal at {at}")


def only_layout(*_):
    pass


def cases():
    odd = report_data.run(epochs=3)
    odd["history"]["read_bytes"][-1] = 10 ** 18
    slow = report_data.run(epochs=60)
    slow["history"]["time_ns"] = [t * 4000 for t in slow["history"]["time_ns"]]
    slow["epochs"]["begin_ns"] = [t * 4000 for t in slow["epochs"]["begin_ns"]]
    slow["epochs"]["seen"] = 80
    long_name = "x" * 300
    return {"run": (report_data.run(), check_run),
            "substitutions": ({**report_data.run(), "substitutions": report_data.substitutions()}, check_substitutions),
            "bytes": (report_data.run(samples=False), check_charts),
            "epochs": (slow, check_charts),
            "odd": (odd, check_charts),
            "short": ({"stall_ns": 5, "passed_refused": 1}, only_layout),
            "bench": (report_data.bench(), check_bench),
            "words": ({long_name: {"value": 1e300, "unit": long_name, "goal": 1e-300, "low": -1e300,
                                   "high": 1e300}}, only_layout)}


def main():
    if browser.program() is None:
        print("chromium is not installed (scripts/setup check)")
        return 77
    with browser.Browser() as chromium:
        for name, (content, check) in cases().items():
            source, path = (os.path.join(WORK, name + end) for end in (".json", ".html"))
            with open(source, "w", encoding="utf-8") as out:
                json.dump(content, out)
            done = report_data.report(source, "--out", path)
            claim(done.returncode == 0, done.stderr)
            for width in WIDTHS:
                for dark in (False, True):
                    seen = chromium.show(path, width, dark)
                    where = f"{name}, {width} wide, {'dark' if dark else 'light'}"
                    try:
                        check_layout(seen, width, path)
                        check(seen, width)
                    except Wrong as why:
                        picture = os.path.join(WORK, f"{name}-{width}.png")
                        chromium.picture(picture)
                        print(f"{where}: {why}\npicture: {picture}")
                        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
