"""Whether two groups of samples differ by more than chance: the Mann-Whitney U test.

It compares ranks, so it asks nothing of how timings are distributed, and one outlier counts as one sample.
"""

import itertools
import math

# Up to this many ways to split the samples, all are counted; beyond, the normal distribution is close enough.
_EXACT_LIMIT = 200_000


def _ranks(values):
    """The rank of each value, from 1; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for i in range(start, end + 1):
            ranks[order[i]] = (start + end) / 2 + 1
        start = end + 1
    return ranks


def smallest_p(first_count, second_count):
    """The smallest p that groups of these sizes can give: with too few samples nothing is significant."""
    return 1 / math.comb(first_count + second_count, first_count)


def p_first_is_smaller(first, second):
    """How likely it is by chance alone that `first` ranks as low against `second` as it does, or lower. One-sided."""
    if not first or not second:
        raise ValueError("both groups need samples")
    ranks = _ranks(list(first) + list(second))
    observed = sum(ranks[: len(first)])
    splits = math.comb(len(ranks), len(first))
    if splits <= _EXACT_LIMIT:
        # Half a rank is exact in a float, but sums of many deserve a little room.
        as_low = sum(1 for chosen in itertools.combinations(ranks, len(first)) if sum(chosen) <= observed + 1e-9)
        return as_low / splits
    return _normal_approximation(ranks, len(first), len(second), observed)


def _normal_approximation(ranks, first_count, second_count, observed):
    total = first_count + second_count
    u = observed - first_count * (first_count + 1) / 2
    mean = first_count * second_count / 2
    ties = sum(count**3 - count for count in (ranks.count(rank) for rank in set(ranks)))
    variance = first_count * second_count / 12 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    z = (u + 0.5 - mean) / math.sqrt(variance)
    return 0.5 * math.erfc(-z / math.sqrt(2))
