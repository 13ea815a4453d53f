"""Tests of build_files.py."""

import unittest

from tidy import build_files
from tidy import source_tree

_BUILD = """
load("//tools/build:cc.bzl", "fraktor_cc_library")

_COMMON = ["common.h"]

fraktor_cc_library(
    name = "a",
    srcs = ["a.cc"] + select({"//conditions:default": []}),
    hdrs = _COMMON + [":a.h", "//other:b.h"],
)

fraktor_cc_library(
    name = "fixture",
    testonly = True,
    hdrs = glob(["*_fixture.h"], exclude = ["old_*"]),
)

fraktor_cc_test(
    name = "a_test",
    srcs = ["a_test.cc", "a.h"],
)
"""

_TREE = source_tree.FakeTree(
    {"x/BUILD.bazel": _BUILD, "x/a.h": "", "x/one_fixture.h": "", "x/old_fixture.h": "", "y/two_fixture.h": ""})


class BuildFilesTest(unittest.TestCase):
    """What is read of a BUILD file."""

    def test_reads_names_and_kinds(self):
        found = [(rule.label, rule.kind) for rule in build_files.rules(_TREE)]
        self.assertEqual(found, [
            ("//x:a", "fraktor_cc_library"), ("//x:fixture", "fraktor_cc_library"), ("//x:a_test", "fraktor_cc_test")])

    def test_resolves_sums_variables_and_globs(self):
        a, fixture, _ = build_files.rules(_TREE)
        self.assertEqual(build_files.files(a, "srcs", _TREE), ["x/a.cc"])
        self.assertEqual(build_files.files(a, "hdrs", _TREE), ["x/common.h", "x/a.h"])
        self.assertEqual(build_files.files(fixture, "hdrs", _TREE), ["x/one_fixture.h"])

    def test_knows_what_only_tests_have(self):
        self.assertEqual(build_files.test_only_files(_TREE), {"x/a_test.cc", "x/one_fixture.h"})


if __name__ == "__main__":
    unittest.main()
