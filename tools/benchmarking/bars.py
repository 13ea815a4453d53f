"""The bars: what the benchmarks must reach, as a table in bars.json, and the verdicts on results.

A bar holds when any of its conditions does. A condition takes the median of one benchmark's metric (`of`), divides it
by the best of others (`over`, measured in the same results) if there are any, and compares: `at_least`, `at_most` or
`below`. Keys may contain `*`. A bar with `each` stands for one bar per value, which replaces `{each}` in its texts.
"""

import dataclasses
import fnmatch
import json
import pathlib

from benchmarking import compare
from benchmarking import results

PASS, FAIL, NOT_MEASURED = "PASS", "FAIL", "NOT MEASURED"
DEFAULT_FILE = pathlib.Path(__file__).with_name("bars.json")

_COMPARISONS = {
    "at_least": (">=", lambda value, bar: value >= bar),
    "at_most": ("<=", lambda value, bar: value <= bar),
    "below": ("<", lambda value, bar: value < bar),
}
_CONDITION_FIELDS = {"metric", "of", "over"} | set(_COMPARISONS)
_BAR_FIELDS = {"name", "what", "each", "any_of"}


@dataclasses.dataclass(frozen=True)
class Condition:
    """One way to hold a bar."""

    metric: str
    of: str
    over: tuple
    comparison: str
    bar: float

    @property
    def text(self):
        return f"{_COMPARISONS[self.comparison][0]} {compare.human(self.bar)}{'x' if self.over else ''}"


@dataclasses.dataclass(frozen=True)
class Bar:
    """A named bar of a group."""

    group: str
    name: str
    what: str
    conditions: tuple


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A bar, the value of each of its conditions (None: not measured), and the outcome."""

    bar: Bar
    values: tuple
    verdict: str


def _refuse_unknown(where, fields, allowed):
    unknown = sorted(set(fields) - allowed)
    if unknown:
        raise results.ResultsError(f"{where}: unknown {', '.join(unknown)}; known are {', '.join(sorted(allowed))}")


def _condition(where, fields, each):
    _refuse_unknown(where, fields, _CONDITION_FIELDS)
    comparisons = [name for name in _COMPARISONS if name in fields]
    if len(comparisons) != 1:
        raise results.ResultsError(f"{where}: exactly one of {', '.join(_COMPARISONS)} is needed")
    replaced = lambda text: text.replace("{each}", each)
    return Condition(
        fields["metric"],
        replaced(fields["of"]),
        tuple(replaced(key) for key in fields.get("over", ())),
        comparisons[0],
        float(fields[comparisons[0]]),
    )


def parse(document, where):
    """The bars of a document like bars.json."""
    bars = []
    for group, entries in document.items():
        for entry in entries:
            label = f"{where}: {group}: {entry.get('name', 'a bar without a name')}"
            _refuse_unknown(label, entry, _BAR_FIELDS)
            for each in entry.get("each", [""]):
                conditions = tuple(_condition(label, fields, each) for fields in entry["any_of"])
                bars.append(Bar(group, entry["name"].replace("{each}", each), entry["what"], conditions))
    names = [bar.name for bar in bars]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise results.ResultsError(f"{where}: more than one bar is called {', '.join(repeated)}")
    return bars


def load(path=DEFAULT_FILE):
    """The bars of a file."""
    path = pathlib.Path(path)
    return parse(json.loads(path.read_text()), path)


def _median(loaded, pattern, metric):
    keys = [key for key in loaded.samples if fnmatch.fnmatchcase(key, pattern) and metric in loaded.samples[key]]
    if len(keys) > 1:
        raise results.ResultsError(f"\"{pattern}\" means more than one benchmark: {', '.join(sorted(keys))}")
    return loaded.median(keys[0], metric) if keys else None


def _value(loaded, condition):
    value = _median(loaded, condition.of, condition.metric)
    if value is None or not condition.over:
        return value
    others = [_median(loaded, pattern, condition.metric) for pattern in condition.over]
    if any(other is None for other in others):
        return None
    bigger_is_better = condition.metric in results.METRICS and results.METRICS[condition.metric].bigger_is_better
    best = max(others) if bigger_is_better else min(others)
    return value / best if best else None


def judge(loaded, bars):
    """The verdict on each bar."""
    verdicts = []
    for bar in bars:
        values = tuple(_value(loaded, condition) for condition in bar.conditions)
        holds = [
            value is not None and _COMPARISONS[condition.comparison][1](value, condition.bar)
            for value, condition in zip(values, bar.conditions)
        ]
        if any(holds):
            verdict = PASS
        else:
            verdict = NOT_MEASURED if None in values else FAIL
        verdicts.append(Verdict(bar, values, verdict))
    return verdicts


def table(verdicts):
    """The verdicts as text, by group."""
    lines = []
    width = max((len(verdict.bar.name) for verdict in verdicts), default=0)
    shown = lambda value: "-" if value is None else compare.human(value)
    group = None
    for verdict in verdicts:
        if verdict.bar.group != group:
            group = verdict.bar.group
            lines.append(f"{group}:")
        parts = [
            f"{shown(value)} ({condition.text})" for value, condition in zip(verdict.values, verdict.bar.conditions)
        ]
        lines.append(f"  {verdict.verdict:<12}  {verdict.bar.name:<{width}}  {' or '.join(parts)}  {verdict.bar.what}")
    counts = {kind: sum(verdict.verdict == kind for verdict in verdicts) for kind in (PASS, FAIL, NOT_MEASURED)}
    lines.append(f"{counts[PASS]} passed, {counts[FAIL]} failed, {counts[NOT_MEASURED]} not measured")
    return "\n".join(lines)
