"""What LCache, Brand and iCache's packages publish, and beside it what was measured here, live."""
import os

from bench.lib import figures
from bench.lib.icache_picture import beside

# Titles, units, and names of figures, what they are called, and the papers' values: LCache's text and abstract, Brand's on one
# host (LibriSpeech at 16 %, ImageNet-1k at 35 %), iCache's Figure 16.
PANELS = (
    ("LCache: epochs, over", "speed-up",
     (("lcache_over_plain_ssd", "PyTorch,\nall cached", 9.4), ("lcache_over_nopfs_policy", "NoPFS,\nall cached", 7.8),
      ("lcache_partial_48", "PyTorch,\n48 % cached", 1.45))),
    ("Brand: epochs, over", "speed-up",
     (("brand_over_plain_16", "PyTorch,\n16 %", 1.77), ("brand_over_plain_35", "PyTorch,\n35 %", 2.13),
      ("brand_over_coordl_16", "CoorDL,\n16 %", 1.64), ("brand_over_coordl_35", "CoorDL,\n35 %", 1.45))),
    ("iCache with packages, by memory", "hit ratio",
     tuple((f"icache_live_hit_{percent}", f"{percent} %", paper)
           for percent, paper in ((20, 0.37), (40, 0.55), (60, 0.69), (80, 0.83)))))


def draw(pyplot, folder, path):
    found = figures.load(os.path.join(os.path.dirname(folder), "bench.json"))
    if not any(name in found for _, _, rows in PANELS for name, _, _ in rows):
        return False
    figure, axes = pyplot.subplots(1, len(PANELS), figsize=(14, 4.5))
    for one, (title, unit, rows) in zip(axes, PANELS):
        beside(one, rows, found, title, unit)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    return True
