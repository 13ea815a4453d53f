"""Finds, builds and runs the Google Benchmark programs of the repository.

A suite is one program: `//benchmarks/utils:queue_benchmark` is `utils/queue`, `//benchmarks/limit:limit_benchmark` is
`limit`.
"""

import dataclasses
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from benchmarking import machine
from benchmarking import results

# A benchmark that hangs must not hang the run.
SECONDS_PER_BENCHMARK = 60


class RunError(Exception):
    """A program could not be built or run; the text says which and why."""


def say(text):
    """Progress, beside the output proper."""
    print(f"tools/bench: {text}", file=sys.stderr, flush=True)


def suite_of(label):
    """The name of the suite that a target builds."""
    package, _, target = label.removeprefix("//").partition(":")
    folder = package.removeprefix("benchmarks/").removeprefix("benchmarks")
    stem = target.removesuffix("_benchmark")
    parts = [part for part in folder.split("/") if part]
    return "/".join(parts if parts and parts[-1] == stem else parts + [stem])


def escape(name):
    """`name` as a regular expression of any of the flavours that Google Benchmark is built with."""
    return re.sub(r"([.\[\](){}*+?^$|\\])", r"\\\1", name)


@dataclasses.dataclass
class Suite:
    """A built benchmark program."""

    name: str
    program: pathlib.Path

    def __post_init__(self):
        self._run_names = None
        self._min_time_suffix = None

    def run_names(self):
        """Names as Google Benchmark filters them, by stable name."""
        if self._run_names is None:
            done = self._call(["--benchmark_list_tests=true"], 60)
            if done.returncode != 0:
                raise RunError(f"{self.program} does not list its benchmarks:\n{done.stderr.strip()}")
            self._run_names = {results.stable_name(line): line for line in done.stdout.splitlines() if line}
        return self._run_names

    def run(self, names, min_time):
        """Runs benchmarks, each in a process of its own: what ran before it must not matter. Returns one document."""
        document = None
        for name in names:
            one = self._run_one(self.run_names()[name], min_time)
            if document is None:
                document = one
            else:
                document["benchmarks"].extend(one["benchmarks"])
        return document

    def _run_one(self, run_name, min_time):
        machine.touch_memory()
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out.json"
            done = self._call(
                [
                    f"--benchmark_filter=^{escape(run_name)}$",
                    f"--benchmark_min_time={min_time:g}{self._suffix()}",
                    f"--benchmark_out={out}",
                    "--benchmark_out_format=json",
                ],
                SECONDS_PER_BENCHMARK,
            )
            if done.returncode != 0 or not out.is_file():
                said = done.stderr.strip()[-2000:]
                raise RunError(f"{self.name}/{run_name} ended with code {done.returncode}:\n{said}")
            return json.loads(out.read_text())

    def _suffix(self):
        # Up to 1.7 the flag is a bare number, and anything else is refused; later versions want a unit.
        if self._min_time_suffix is None:
            done = self._call(["--benchmark_list_tests=true", "--benchmark_min_time=0.01s"], 60)
            self._min_time_suffix = "s" if done.returncode == 0 else ""
        return self._min_time_suffix

    def _call(self, arguments, seconds):
        try:
            return subprocess.run(
                [str(self.program)] + arguments, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise RunError(f"{self.name} was ended after {seconds} s") from error
        except OSError as error:
            raise RunError(f"{self.program}: {error}") from error


class Builder:
    """Builds suites with Bazel, optimised as measured code must be."""

    _OPTIONS = ["--config=opt", "--experimental_convenience_symlinks=ignore"]

    def __init__(self, repository, command):
        self._repository = repository
        self._bazel = shlex.split(command)

    def labels(self):
        """The targets of all suites, by suite."""
        # In a tag list, as a query sees it, a tag stands between brackets, commas and spaces.
        query = r'attr("tags", "[\[ ]benchmark[,\]]", kind("cc_binary rule", //...))'
        done = self._call(["query", "--keep_going", "--noshow_progress", query])
        # The links of another output base look like packages.
        labels = [
            line for line in done.stdout.splitlines() if line.startswith("//") and not line.startswith("//bazel-")
        ]
        if not labels:
            raise RunError(f"bazel query found no benchmarks:\n{done.stderr.strip()[-2000:]}")
        broken = set(re.findall(r"error loading package '([^']+)'", done.stderr))
        broken = sorted(package for package in broken if not package.startswith("bazel-"))
        if broken:
            say(f"packages that do not load, so their benchmarks are not found: {', '.join(broken)}")
        return {suite_of(label): label for label in sorted(labels)}

    def build(self, labels):
        """Builds targets and returns their suites. What does not build is named, and the rest goes on."""
        say(f"building {len(labels)} benchmark programs")
        done = self._call(
            ["build", "--keep_going", "--noshow_progress"] + self._OPTIONS + ["--"] + list(labels.values())
        )
        if done.returncode != 0:
            print(done.stderr.strip()[-4000:], file=sys.stderr)
        info = self._call(["info"] + self._OPTIONS + ["bazel-bin"])
        if info.returncode != 0:
            raise RunError(f"bazel info failed:\n{info.stderr.strip()[-2000:]}")
        bin_folder = pathlib.Path(info.stdout.strip())
        suites, failed = {}, []
        for name, label in labels.items():
            package, _, target = label.removeprefix("//").partition(":")
            program = bin_folder / package / target
            # After a failed build an old program may still lie there.
            if program.is_file() and (done.returncode == 0 or self._builds(label)):
                suites[name] = Suite(name, program)
            else:
                failed.append(name)
        return suites, failed

    def _builds(self, label):
        return self._call(["build", "--noshow_progress"] + self._OPTIONS + ["--", label]).returncode == 0

    def _call(self, arguments):
        try:
            return subprocess.run(
                self._bazel + arguments, cwd=self._repository, capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise RunError(f"{self._bazel[0]}: {error}; tools/setup installs it") from error


class Recorder:
    """Collects the documents of repeated runs, one file per suite."""

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)
        self._documents = {}
        self._repetitions = {}

    def add(self, suite, document):
        """Adds the benchmarks of one run, each as one more repetition."""
        for entry in document["benchmarks"]:
            repetition = (suite, entry["name"])
            entry["repetition_index"] = self._repetitions.get(repetition, 0)
            self._repetitions[repetition] = entry["repetition_index"] + 1
        if suite in self._documents:
            self._documents[suite]["benchmarks"].extend(document["benchmarks"])
        else:
            self._documents[suite] = document

    def write(self, described):
        """Writes all files; machine.json goes last, so that a folder which has it is complete."""
        for suite, document in self._documents.items():
            path = self._folder / f"{suite}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(document, indent=1) + "\n")
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / results.MACHINE_FILE).write_text(json.dumps(described, indent=2) + "\n")
