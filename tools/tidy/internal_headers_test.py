"""Tests of internal_headers.py."""

import unittest

from tidy import internal_headers
from tidy import source_tree

_PUBLIC = 'visibility = ["//visibility:public"]'


def _found(build):
    return [str(found) for found in internal_headers.check(source_tree.FakeTree({"x/BUILD.bazel": build}))]


def _found_in(path, included):
    tree = source_tree.FakeTree({path: f'#include <vector>\n#include "fraktor/{included}"\n'})
    return [str(found) for found in internal_headers.check(tree)]


class InternalHeadersTest(unittest.TestCase):
    """Who may depend on internal headers, and who may include them."""

    def test_finds_a_public_target_with_only_internal_headers(self):
        build = f'fraktor_cc_library(name = "a", hdrs = ["internal/a.h", "internal/b.h"], {_PUBLIC})\n'
        self.assertEqual(_found(build), ["x/BUILD.bazel:1: //x:a is public and has only internal headers"])

    def test_is_quiet_about_a_public_target_that_also_has_a_header_of_the_api(self):
        self.assertEqual(_found(f'fraktor_cc_library(name = "a", hdrs = ["a.h", "internal/b.h"], {_PUBLIC})\n'), [])

    def test_is_quiet_about_internal_headers_of_a_target_that_is_not_public(self):
        self.assertEqual(_found('fraktor_cc_library(name = "a", hdrs = ["internal/a.h"])\n'), [])

    def test_is_quiet_about_a_public_target_without_headers(self):
        self.assertEqual(_found(f'fraktor_cc_library(name = "a", srcs = ["a.cc"], {_PUBLIC})\n'), [])

    def test_finds_a_source_that_includes_an_internal_header_of_another_room(self):
        found = _found_in("store/log/log.cc", "actor/cell/internal/names.h")
        self.assertEqual(found, ["store/log/log.cc:2: actor/cell/internal/names.h is internal to actor"])

    def test_lets_the_rooms_include_internal_headers_of_utils_but_no_header_of_the_api(self):
        self.assertEqual(_found_in("store/log/log.cc", "utils/queue/internal/ring.h"), [])
        self.assertEqual(len(_found_in("store/log/log.h", "utils/queue/internal/ring.h")), 1)
        self.assertEqual(len(_found_in("examples/log/log.cc", "utils/queue/internal/ring.h")), 1)

    def test_finds_a_header_of_the_api_that_includes_an_internal_header_of_another_folder(self):
        found = _found_in("actor/tree/tree.h", "actor/cell/internal/names.h")
        self.assertEqual(found, [
            "actor/tree/tree.h:2: actor/cell/internal/names.h is internal to actor/cell, and programs include tree.h"])

    def test_knows_the_headers_that_inline_the_way_of_a_message(self):
        path, included = next(iter(internal_headers.INLINED.items()))
        text = "".join(f'#include "fraktor/{header}"\n' for header in included)
        self.assertEqual(list(internal_headers.check(source_tree.FakeTree({path: text}))), [])
        found = [str(found) for found in internal_headers.check(source_tree.FakeTree({path: ""}))]
        self.assertEqual(found[0], f"{path}: does not include {included[0]}; remove it from INLINED")
        self.assertEqual(len(found), len(included))

    def test_is_quiet_about_includes_inside_of_a_room(self):
        for path in ("actor/tree/tree.cc", "actor/tree/tree_test.cc", "actor/tree/internal/tree.h", "actor/cell/cell.h",
                     "actor/cell/internal/cell.cc"):
            self.assertEqual(_found_in(path, "actor/cell/internal/names.h"), [])

    def test_is_quiet_about_headers_that_only_tests_include(self):
        tree = source_tree.FakeTree({
            "actor/tree/BUILD.bazel": 'fraktor_cc_library(name = "a", testonly = True, hdrs = ["fixture.h"])\n',
            "actor/tree/fixture.h": '#include "fraktor/actor/cell/internal/names.h"\n'})
        self.assertEqual(list(internal_headers.check(tree)), [])

    def test_is_quiet_about_headers_of_the_api_and_tests_of_examples(self):
        self.assertEqual(_found_in("store/log/log.cc", "actor/cell/names.h"), [])
        self.assertEqual(_found_in("docs/examples_test.cc", "actor/cell/internal/names.h"), [])

    def test_is_quiet_about_benchmarks(self):
        self.assertEqual(_found_in("benchmarks/actor/names_benchmark.cc", "actor/cell/internal/names.h"), [])


if __name__ == "__main__":
    unittest.main()
