"""Tests of internal_headers.py."""

import unittest

from tidy import internal_headers
from tidy import source_tree

_PUBLIC = 'visibility = ["//visibility:public"]'


def _found(build):
    return [str(found) for found in internal_headers.check(source_tree.FakeTree({"x/BUILD.bazel": build}))]


class InternalHeadersTest(unittest.TestCase):
    """Who may depend on internal headers."""

    def test_finds_a_public_target_with_only_internal_headers(self):
        build = f'fraktor_cc_library(name = "a", hdrs = ["internal/a.h", "internal/b.h"], {_PUBLIC})\n'
        self.assertEqual(_found(build), ["x/BUILD.bazel:1: //x:a is public and has only internal headers"])

    def test_is_quiet_about_a_public_target_that_also_has_a_header_of_the_api(self):
        self.assertEqual(_found(f'fraktor_cc_library(name = "a", hdrs = ["a.h", "internal/b.h"], {_PUBLIC})\n'), [])

    def test_is_quiet_about_internal_headers_of_a_target_that_is_not_public(self):
        self.assertEqual(_found('fraktor_cc_library(name = "a", hdrs = ["internal/a.h"])\n'), [])

    def test_is_quiet_about_a_public_target_without_headers(self):
        self.assertEqual(_found(f'fraktor_cc_library(name = "a", srcs = ["a.cc"], {_PUBLIC})\n'), [])


if __name__ == "__main__":
    unittest.main()
