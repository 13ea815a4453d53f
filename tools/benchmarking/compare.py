"""Compares two sets of results, benchmark by benchmark."""

import dataclasses
import math
import statistics

from benchmarking import results
from benchmarking import significance

SAME, BETTER, WORSE = "same", "better", "WORSE"


@dataclasses.dataclass(frozen=True)
class Row:
    """One figure of one benchmark, before and after."""

    key: str
    metric: str
    old: float
    new: float
    worse_by: float  # a share of the old value; negative when it got better
    p: float  # one-sided, towards the side it moved to; None when there are too few samples to tell
    verdict: str


@dataclasses.dataclass(frozen=True)
class Comparison:
    """All rows, the keys that only one side has, and what else there is to say."""

    rows: list
    only_old: list
    only_new: list
    failing: dict  # what the new results have an error instead of figures for, and the old ones had figures
    machines: list  # in what the machines differ: name, old, new

    @property
    def worse(self):
        return [row for row in self.rows if row.verdict == WORSE]

    @property
    def better(self):
        return [row for row in self.rows if row.verdict == BETTER]


def _worse_by(old, new, bigger_is_better):
    if old == new:
        return 0.0
    if old == 0:
        return -math.inf if bigger_is_better == (new > 0) else math.inf
    change = new / old - 1
    return -change if bigger_is_better else change


def _row(key, metric, old_samples, new_samples, threshold, alpha):
    bigger_is_better = results.METRICS[metric].bigger_is_better
    old, new = statistics.median(old_samples), statistics.median(new_samples)
    worse_by = _worse_by(old, new, bigger_is_better)
    p = None
    if significance.smallest_p(len(old_samples), len(new_samples)) <= alpha:
        low, high = (new_samples, old_samples) if new < old else (old_samples, new_samples)
        p = significance.p_first_is_smaller(low, high)
    verdict = SAME
    if abs(worse_by) > threshold and (p is None or p <= alpha):
        verdict = WORSE if worse_by > 0 else BETTER
    return Row(key, metric, old, new, worse_by, p, verdict)


def compare(old, new, threshold, alpha):
    """Rows for every benchmark and metric that both have.

    A row is better or worse when the medians differ by more than `threshold` and chance alone would do that with a
    probability of at most `alpha`. With too few samples for such a statement the medians decide.
    """
    rows = []
    for key in sorted(old.samples.keys() & new.samples.keys()):
        before, after = old.samples[key], new.samples[key]
        for metric in results.compared_metrics(before):
            if metric in after:
                rows.append(_row(key, metric, before[metric], after[metric], threshold, alpha))
    missing = old.samples.keys() - new.samples.keys()
    failing = {key: new.errors[key] for key in sorted(missing & new.errors.keys())}
    machines = [
        (name, old.machine[name], new.machine[name])
        for name in ("cpu_model", "cores", "compiler")
        if name in old.machine and name in new.machine and old.machine[name] != new.machine[name]
    ]
    return Comparison(
        rows, sorted(missing - failing.keys()), sorted(new.samples.keys() - old.samples.keys()), failing, machines
    )


def human(value):
    """A figure in four digits and a power of thousand."""
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.4g} {suffix}"
    return f"{value:.4g}"


def table(comparison, threshold):
    """The comparison as text, the worst first."""
    order = {WORSE: 0, BETTER: 1, SAME: 2}
    rows = sorted(comparison.rows, key=lambda row: (order[row.verdict], -row.worse_by, row.key))
    width = max([len("benchmark")] + [len(row.key) for row in rows])
    lines = [f"{'benchmark':<{width}}  {'metric':<16}  {'old':>10}  {'new':>10}  {'change':>8}  {'p':>7}  verdict"]
    for row in rows:
        p = "n/a" if row.p is None else f"{row.p:.4f}"
        change = f"{100 * (row.new / row.old - 1):+.1f} %" if row.old else ("0 %" if row.new == 0 else "new")
        lines.append(
            f"{row.key:<{width}}  {row.metric:<16}  {human(row.old):>10}  {human(row.new):>10}  {change:>8}  {p:>7}"
            f"  {row.verdict}"
        )
    for name, before, after in comparison.machines:
        lines.append(f"not the same machine: {name} {before}, now {after}; take the changes as hints")
    for key, message in comparison.failing.items():
        lines.append(f"FAILS in the new results: {key}: {message}")
    for keys, where in ((comparison.only_old, "old"), (comparison.only_new, "new")):
        if keys:
            lines.append(f"only in the {where} results: {', '.join(keys)}")
    lines.append(
        f"{len(rows)} compared, {len(comparison.worse)} worse and {len(comparison.better)} better by more than "
        f"{100 * threshold:g} %"
    )
    return "\n".join(lines)
