"""Tests of header_examples.py."""

import unittest

from tidy import header_examples
from tidy import source_tree

_HEADER = """\
// Counter: counts.
//
//   Counter counter;
//   counter.Add(1);
//
//   counter.Clear();
//
// Thread safety: one thread.
//
//   Another(part);
#ifndef A_H_
"""


def _found(source):
    tree = source_tree.FakeTree({"a/a.h": _HEADER, "docs/x_test.cc": source})
    return [found.path for found in header_examples.check(tree)]


class HeaderExamplesTest(unittest.TestCase):
    """Which examples are compiled."""

    def test_reads_the_first_example(self):
        self.assertEqual(header_examples.example(_HEADER),
                         [["Counter counter;", "counter.Add(1);"], ["counter.Clear();"]])

    def test_takes_no_list_for_an_example(self):
        header = "// - One that\n//   goes on.\n// 2. Two\n//    and on.\n//\n//   A();\n"
        self.assertEqual(header_examples.example(header), [["A();"]])

    def test_finds_an_example_in_a_source(self):
        source = "void F() {\n  Counter counter;\n  counter.Add(1);\n}\nvoid G() {\n  counter.Clear();\n}\n"
        self.assertEqual(_found(source), [])

    def test_misses_lines_that_do_not_follow_each_other(self):
        source = "  Counter counter;\n  Use(counter);\n  counter.Add(1);\n  counter.Clear();\n"
        self.assertEqual(_found(source), ["a/a.h"])

    def test_leaves_headers_without_an_example_alone(self):
        tree = source_tree.FakeTree({"a/a.h": "// Counter: counts.\n#ifndef A_H_\n"})
        self.assertEqual(list(header_examples.check(tree)), [])


if __name__ == "__main__":
    unittest.main()
