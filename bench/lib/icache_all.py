"""The figures of importance: simulated hit ratios, epochs beside other systems, and what it costs."""
from bench.lib import icache, icache_jobs, icache_speed, icache_training

PARTS = (icache, icache_training, icache_jobs, icache_speed)
PROVIDES = [name for part in PARTS for name in part.PROVIDES]


def run(bench):
    for part in PARTS:
        if bench.wants(*part.PROVIDES):
            part.run(bench)
