"""Tests of tidy.py."""

import unittest

from tidy import source_tree
from tidy import tidy

_PAGE = {"docs/requirements.md": "", "docs/headers.md": ""}


class TidyTest(unittest.TestCase):
    """What makes the repository untidy."""

    def test_is_quiet_about_a_tidy_tree(self):
        self.assertEqual(list(tidy.problems(source_tree.FakeTree(_PAGE | {"a/a.h": "int a;\n"}), {})), [])

    def test_runs_every_check(self):
        tree = source_tree.FakeTree(_PAGE | {
            "a/a.h": '//   Example();\n#include "fraktor/b/b.h"\n' + "x" * 121 + "\n// Whoever.\n",
            "b/b.h": '#include "fraktor/a/a.h"\nnamespace n {\nstruct T {};\n}\n',
            "b/c.h": "namespace n {\nstruct T {};\n}\n",
            "a/BUILD.bazel": 'cc_library(name = "a", hdrs = ["a.h"])\ncc_library(name = "b", hdrs = ["a.h"])\n',
            "c/BUILD.bazel": 'cc_library(name = "c", hdrs = ["internal/c.h"], visibility = ["//visibility:public"])\n',
            "c/internal/c.h": "int c;\n",
            "actor/d/d.h": "",
            "docs/headers.md": "| `actor/no.h` | do nothing |\n",
            "e/BUILD.bazel": 'cc_library(name = "e", hdrs = ["e.h"], visibility = ["//visibility:public"])\n',
            "e/e.h": "",
            "a/a.md": "[nowhere](nowhere.md)\n",
            "a/a_test.cc": "// SCH-99\nTEST(A, B) {}\n",
        })
        found = [text.partition(":")[0] for text in tidy.problems(tree, {})]
        self.assertEqual(found, [*tidy.COUNTED, "include_cycles", "requirement_tags"])

    def test_names_exceptions_for_checks_that_do_not_exist(self):
        found = list(tidy.problems(source_tree.FakeTree(_PAGE), {"line_lenght": {"a": 1}}))
        self.assertEqual(found, ["tools/tidy/exceptions.json: there is no check line_lenght"])

    def test_reads_which_lines_changed(self):
        diff = "--- a/x.h\n+++ b/x.h\n@@ -3 +3,2 @@\n+a\n+b\n@@ -9,2 +10,0 @@\n"
        diff += "--- a/y.h\n+++ /dev/null\n@@ -1 +0,0 @@\n"
        self.assertEqual(tidy.changed_lines(diff), {("x.h", 3), ("x.h", 4)})


if __name__ == "__main__":
    unittest.main()
