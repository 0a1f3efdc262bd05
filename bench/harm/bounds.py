"""Means and bounds of ratios of paired runs, on their logarithms."""
import math
import statistics

# Student's t, two-sided 95 %, by degrees of freedom; beyond them the normal distribution's is near enough.
T95 = [0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
       2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045]


def geometric_mean(ratios):
    return math.exp(statistics.fmean(math.log(one) for one in ratios))


def interval(ratios):
    """(low, mean, high): the 95 % interval of the geometric mean. One ratio alone has no bounds: 0 and
    infinity."""
    logs = [math.log(one) for one in ratios]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return 0.0, math.exp(mean), math.inf
    freedom = len(logs) - 1
    t = T95[freedom] if freedom < len(T95) else 2.0
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean - half), math.exp(mean), math.exp(mean + half)


def epochs_of(rounds, side):
    """{epoch: ratios} of a row; `side` is "sluice" or "again", both over the plain run of their round."""
    found = {}
    for one in rounds:
        pairs = [*zip(one[side]["epochs"], one["plain"]["epochs"]), (one[side]["whole"], one["plain"]["whole"])]
        names = [*range(1, len(pairs)), "all"]
        for name, (over, under) in zip(names, pairs):
            found.setdefault(name, []).append(over / under)
    return found


def worst_of(rounds, side):
    """(low, mean, high, epoch) of the epoch with the largest lower bound."""
    return max(((*interval(ratios), name) for name, ratios in epochs_of(rounds, side).items()),
               key=lambda one: one[:2])


def worst_rows(results, count):
    """Names of the rows to measure again: half of them those with the largest lower bounds, which are most
    likely harmed; the others those with the largest means, whose spread may hide more."""
    by_bound = sorted(results, key=lambda name: worst_of(results[name], "sluice")[0], reverse=True)
    by_mean = sorted(results, reverse=True, key=lambda name: max(
        geometric_mean(ratios) for ratios in epochs_of(results[name], "sluice").values()))
    chosen = by_bound[:count // 2]
    return chosen + [name for name in by_mean if name not in chosen][:count - len(chosen)]
