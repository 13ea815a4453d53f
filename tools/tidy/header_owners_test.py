"""Tests of header_owners.py."""

import unittest

from tidy import header_owners
from tidy import source_tree


class HeaderOwnersTest(unittest.TestCase):
    """Who owns a header."""

    def test_finds_a_header_of_two_libraries(self):
        build = """
fraktor_cc_library(name = "all", hdrs = ["a.h", "b.h"])
fraktor_cc_library(name = "a", hdrs = ["a.h"])
fraktor_cc_test(name = "a_test", srcs = ["a.h"])
"""
        tree = source_tree.FakeTree({"x/BUILD.bazel": build, "x/a.h": "", "x/b.h": ""})
        self.assertEqual([str(found) for found in header_owners.check(tree)],
                         ["x/BUILD.bazel:3: a.h belongs to //x:all, //x:a"])

    def test_is_quiet_if_an_umbrella_exports_others(self):
        build = 'cc_library(name = "all", deps = [":a"])\ncc_library(name = "a", hdrs = ["a.h"])\n'
        self.assertEqual(list(header_owners.check(source_tree.FakeTree({"x/BUILD.bazel": build, "x/a.h": ""}))), [])


if __name__ == "__main__":
    unittest.main()
