"""Results of benchmark runs: what is in a folder or file of them, under which names.

A folder of results holds machine.json and one Google Benchmark JSON file per suite; `utils/queue.json` holds the suite
`utils/queue`. A summary file, such as a baseline, holds the same samples in one small JSON.

Every sample has a key, `<suite>/<benchmark>`, and a metric. Keys are stable: dashboards, baselines and bars refer to
them.
"""

import dataclasses
import json
import pathlib
import re
import statistics

SUMMARY_FORMAT = "fraktor-benchmark-summary-1"
MACHINE_FILE = "machine.json"
EXPORT_FOLDER = "export"


class ResultsError(Exception):
    """What was asked for cannot be read; the text says why."""


@dataclasses.dataclass(frozen=True)
class Metric:
    """How to read one figure of a benchmark."""

    unit: str
    bigger_is_better: bool


# What is compared and exported. Other counters are kept, and bars may use them, but nobody can say which way is better.
METRICS = {
    "items_per_second": Metric("items/s", True),
    "bytes_per_second": Metric("bytes/s", True),
    "time_ns": Metric("ns", False),
    "p50_us": Metric("us", False),
    "p95_us": Metric("us", False),
    "p99_us": Metric("us", False),
    "delivered": Metric("share", True),
    "cores": Metric("cores", False),
    "bytes_per_actor": Metric("bytes", False),
    "growth": Metric("share", False),
    "ratio": Metric("times", True),
    "growth_mib": Metric("MiB", False),
    "bytes_more": Metric("bytes", False),
    "of_bare": Metric("x", True),
    "of_asks": Metric("x", True),
    "mean_batch": Metric("events", True),
    "over_mean": Metric("x", False),
}

# Where one of these is reported, the time of an iteration says the same again, or nothing.
_INSTEAD_OF_TIME = ("items_per_second", "bytes_per_second", "p50_us", "delivered", "bytes_per_actor", "growth")

_TIME_UNIT_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}

# What Google Benchmark reports besides counters.
_NOT_COUNTERS = {
    "repetitions",
    "repetition_index",
    "threads",
    "iterations",
    "real_time",
    "cpu_time",
    "family_index",
    "per_family_instance_index",
    "items_per_second",
    "bytes_per_second",
}

# How a benchmark is measured is no part of its name; how many threads it uses is, and comes last.
_MEASURING = re.compile(
    r"(/manual_time|/real_time|/process_time|/iterations:\d+|/repeats:\d+|/min(_warmup)?_time:[0-9.]+s?)+"
    r"(?=(/threads:\d+)?$)"
)


def stable_name(run_name):
    """The name of a benchmark without what Google Benchmark adds about how it is measured."""
    return _MEASURING.sub("", run_name)


def figures_of(entry):
    """The figures of one entry of Google Benchmark's JSON, by metric."""
    figures = {
        name: float(value)
        for name, value in entry.items()
        if name not in _NOT_COUNTERS and isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    for rate in ("items_per_second", "bytes_per_second"):
        if rate in entry:
            figures[rate] = float(entry[rate])
    if "real_time" in entry:
        scale = _TIME_UNIT_NS[entry.get("time_unit", "ns")]
        run_name = entry.get("run_name", entry["name"])
        by_wall_clock = "/real_time" in run_name or "/manual_time" in run_name
        figures["real_time_ns"] = entry["real_time"] * scale
        figures["time_ns"] = (entry["real_time"] if by_wall_clock else entry["cpu_time"]) * scale
    return figures


def compared_metrics(figures):
    """The metrics among `figures` by which a benchmark is judged."""
    names = [name for name in METRICS if name in figures]
    if any(name in figures for name in _INSTEAD_OF_TIME) and "time_ns" in names:
        names.remove("time_ns")
    return names


@dataclasses.dataclass
class Results:
    """Samples by key and metric, and the machine they come from."""

    machine: dict = dataclasses.field(default_factory=dict)
    samples: dict = dataclasses.field(default_factory=dict)
    errors: dict = dataclasses.field(default_factory=dict)

    def add_suite(self, suite, document):
        """Adds what Google Benchmark wrote about one suite."""
        for entry in document["benchmarks"]:
            if entry.get("run_type", "iteration") != "iteration":
                continue
            key = f"{suite}/{stable_name(entry.get('run_name', entry['name']))}"
            if entry.get("error_occurred") or entry.get("skipped"):
                self.errors[key] = entry.get("error_message") or entry.get("skip_message") or "skipped"
                continue
            metrics = self.samples.setdefault(key, {})
            for name, value in figures_of(entry).items():
                metrics.setdefault(name, []).append(value)

    def merge(self, other):
        """Adds the samples of `other`; its machine counts where this has none."""
        self.machine = self.machine or other.machine
        self.errors.update(other.errors)
        for key, metrics in other.samples.items():
            own = self.samples.setdefault(key, {})
            for name, values in metrics.items():
                own.setdefault(name, []).extend(values)

    def median(self, key, metric):
        """The median of a figure, or None if it was not measured."""
        values = self.samples.get(key, {}).get(metric)
        return statistics.median(values) if values else None

    def summary(self):
        """A small document with the machine and all compared samples; load() reads it back."""
        benchmarks = {
            key: {name: [float(f"{value:.6g}") for value in metrics[name]] for name in compared_metrics(metrics)}
            for key, metrics in sorted(self.samples.items())
        }
        return {"format": SUMMARY_FORMAT, "machine": self.machine, "benchmarks": benchmarks}


def format_summary(summary):
    """A summary as text, one benchmark a line, so that a change of one shows as a change of one."""
    lines = [f"    {json.dumps(key)}: {json.dumps(metrics)}" for key, metrics in summary["benchmarks"].items()]
    machine = json.dumps(summary["machine"], indent=2, sort_keys=True).replace("\n", "\n  ")
    return (
        f'{{\n  "format": {json.dumps(summary["format"])},\n  "machine": {machine},\n  "benchmarks": {{\n'
        + ",\n".join(lines)
        + "\n  }\n}\n"
    )


def _read_json(path):
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ResultsError(f"{path} is not JSON, or not all of it: {error}; measure again") from error


def _check_summary(path, document):
    """A summary that was cut or edited is refused here, and not in the middle of a comparison."""
    for field in ("machine", "benchmarks"):
        if not isinstance(document.get(field), dict):
            raise ResultsError(f'{path} is no whole summary: its "{field}" is not an object')
    for key, metrics in document["benchmarks"].items():
        for name, values in metrics.items() if isinstance(metrics, dict) else [("its figures", None)]:
            if not isinstance(values, list) or not values or not all(_is_number(value) for value in values):
                raise ResultsError(f'{path} is no whole summary: {name} of "{key}" is not a list of numbers')


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def load(path):
    """Reads a folder that `tools/bench run` or `peers` wrote, or a summary file."""
    path = pathlib.Path(path)
    results = Results()
    if path.is_file():
        document = _read_json(path)
        if not isinstance(document, dict) or document.get("format") != SUMMARY_FORMAT:
            raise ResultsError(f'{path} is not a summary of benchmark results: its "format" is not "{SUMMARY_FORMAT}"')
        _check_summary(path, document)
        results.machine = document["machine"]
        results.samples = document["benchmarks"]
        return results
    if not path.is_dir():
        raise ResultsError(f"{path} does not exist; tools/bench run --out {path} makes it")
    for file in sorted(path.rglob("*.json")):
        relative = file.relative_to(path)
        if relative.parts[0] == EXPORT_FOLDER:
            continue
        document = _read_json(file)
        if relative.as_posix() == MACHINE_FILE:
            if not isinstance(document, dict):
                raise ResultsError(f"{file} does not describe a machine: it is not an object")
            results.machine = document
        elif isinstance(document, dict) and isinstance(document.get("benchmarks"), list):
            try:
                results.add_suite(relative.with_suffix("").as_posix(), document)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise ResultsError(f"{file} is not Google Benchmark's JSON: {error!r} in an entry") from error
        else:
            raise ResultsError(f'{file} is not Google Benchmark\'s JSON: it has no list of "benchmarks"')
    if not results.samples and not results.errors:
        raise ResultsError(f"{path} holds no benchmark results; tools/bench run --out {path} puts some there")
    return results
