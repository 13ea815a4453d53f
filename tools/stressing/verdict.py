"""Reads how often a test failed from what Bazel prints."""

import dataclasses
import re

_LINE = re.compile(
    r"""
    ^(?P<label>//\S+)\s+(?:\([^)]*cached\)\s+)?
    (?P<word>PASSED|FLAKY|FAILED|TIMEOUT|NO\ STATUS|INCOMPLETE|REMOTE\ FAILURE|FAILED\ TO\ BUILD)
    (?:\s+in\s+(?P<failures>\d+)\s+out\s+of\s+\d+)?
    """,
    re.VERBOSE,
)


@dataclasses.dataclass
class Verdict:
    """What became of the runs of one test."""

    passed: bool
    text: str


def verdict(label, runs, output, code):
    """The verdict on a test that Bazel was told to run `runs` times, by its output and exit code."""
    for line in output.splitlines():
        match = _LINE.match(line)
        if not match or match.group("label") != label:
            continue
        if match.group("word") == "PASSED" and code == 0:
            return Verdict(True, f"{runs} runs passed")
        failures = match.group("failures") or ("1" if runs == 1 else "some")
        how = " (timeout)" if match.group("word") == "TIMEOUT" else ""
        return Verdict(False, f"FAILED in {failures} of {runs} runs{how}")
    return Verdict(False, f"FAILED: Bazel ended with code {code} and did not name the test")
