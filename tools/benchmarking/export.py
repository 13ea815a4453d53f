"""Writes results in the formats that benchmark dashboards read.

- github-action-benchmark knows per step whether bigger or smaller is better, so its entries come in two files, for
  `tool: customBiggerIsBetter` and `tool: customSmallerIsBetter`.
- Bencher's Metric Format (`bencher run --adapter json --file ...`) has one object per benchmark; `throughput` and
  `latency` are the measures every project has, in operations per second and in nanoseconds.
"""

import json
import pathlib
import statistics

from benchmarking import results

FORMATS = ("github-action-benchmark", "bencher")

# The metric that a benchmark is about carries its bare key; others are told apart by their name.
_MAIN_METRICS = ("items_per_second", "time_ns")
_BENCHER_MEASURES = {"items_per_second": "throughput", "time_ns": "latency"}


def github_action_benchmark(loaded, bigger_is_better):
    """The entries for one of the two files."""
    entries = []
    commit = loaded.machine.get("commit", "unknown")
    for key, metrics in sorted(loaded.samples.items()):
        for metric in results.compared_metrics(metrics):
            description = results.METRICS[metric]
            if description.bigger_is_better != bigger_is_better:
                continue
            values = metrics[metric]
            entries.append(
                {
                    "name": key if metric in _MAIN_METRICS else f"{key}/{metric}",
                    "unit": description.unit,
                    "value": statistics.median(values),
                    "range": f"± {(max(values) - min(values)) / 2:.6g}",
                    "extra": f"median of {len(values)}\ncommit {commit}",
                }
            )
    return entries


def bencher(loaded):
    """The document in Bencher Metric Format."""
    document = {}
    for key, metrics in sorted(loaded.samples.items()):
        for metric in results.compared_metrics(metrics):
            values = metrics[metric]
            measure = _BENCHER_MEASURES.get(metric, metric.replace("_", "-"))
            document.setdefault(key, {})[measure] = {
                "value": statistics.median(values),
                "lower_value": min(values),
                "upper_value": max(values),
            }
    return document


def write(loaded, export_format, folder):
    """Writes the files of one format into `folder` and returns their paths."""
    if export_format == "bencher":
        documents = {"bencher.json": bencher(loaded)}
    elif export_format == "github-action-benchmark":
        documents = {
            "bigger_is_better.json": github_action_benchmark(loaded, True),
            "smaller_is_better.json": github_action_benchmark(loaded, False),
        }
    else:
        raise results.ResultsError(f"unknown export format \"{export_format}\"; there are {', '.join(FORMATS)}")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, document in documents.items():
        path = folder / name
        path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        paths.append(path)
    return paths
