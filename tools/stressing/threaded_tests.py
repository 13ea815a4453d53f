"""Finds the tests that have threads, from the output of `bazel query --output=xml`.

A test has threads if one of its sources starts some: by the standard library, by the toolbox with threads, by a system
of actors whose options may name no toolbox, or by a library or process that starts them. The sources of a test are its
own and those of the test-only libraries that it depends on, through test-only libraries alone. The rule selects some
tests that have no threads, which costs time and nothing else.
"""

import re
import xml.etree.ElementTree

_STARTS_THREADS = re.compile(
    r"""
      \bstd::j?thread\b | \bstd::async\b | \bpthread_create\b | \bfork\(\)
    | \bStdToolbox\b | \bToolboxKind::kStd\b
    | \bthreads\s*=\s*[1-9]                            # TestKitOptions::threads
    | \bActorSystem::(?:Try)?Create\( | \bActorSystem\s+\w+\s*[({]
    | [Rr]ocks[Dd][Bb] | \bgrpc\b | \bStartGrpcNode\b
    """,
    re.VERBOSE,
)

# Test-only libraries that start threads only if the test says so, in words that are listed above.
_THREADS_ARE_AN_OPTION = ("//actor/testkit", "//cluster/testing", "//persistence/testing")


def starts_threads(source):
    """Whether a text of C++ starts threads."""
    return _STARTS_THREADS.search(source) is not None


def rules(xml_text):
    """The rules of a query, by label: each a dictionary of kind, testonly, and lists of labels."""
    found = {}
    for rule in xml.etree.ElementTree.fromstring(xml_text).iter("rule"):
        lists = {}
        for entry in rule.findall("list"):
            lists[entry.get("name")] = [label.get("value") for label in entry.findall("label")]
        testonly = any(b.get("name") == "testonly" and b.get("value") == "true" for b in rule.findall("boolean"))
        found[rule.get("name")] = {
            "kind": rule.get("class"),
            "testonly": testonly,
            "files": lists.get("srcs", []) + lists.get("hdrs", []) + lists.get("textual_hdrs", []),
            "deps": lists.get("deps", []),
        }
    return found


def _package(label):
    return label.partition(":")[0]


def _files(label, all_rules):
    """The labels of the sources of a test and of its test-only libraries."""
    files, seen, left = [], set(), [label]
    while left:
        current = left.pop()
        rule = all_rules.get(current)
        if rule is None or current in seen:
            continue
        seen.add(current)
        if current != label:
            if not rule["testonly"] or _package(current) in _THREADS_ARE_AN_OPTION:
                continue
        files += rule["files"]
        left += rule["deps"]
    return files


def threaded(all_rules, read):
    """The labels of the C++ tests that have threads, sorted. `read` gives the text of a source by its label."""
    tests = [label for label, rule in all_rules.items() if rule["kind"] == "cc_test"]
    return sorted(
        label
        for label in tests
        if any(starts_threads(read(file)) for file in _files(label, all_rules) if file.endswith((".cc", ".h")))
    )
