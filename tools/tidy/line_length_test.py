"""Tests of line_length.py."""

import unittest

from tidy import line_length
from tidy import source_tree


def _lines(path, *lines):
    tree = source_tree.FakeTree({path: "\n".join(lines)})
    return [found.line for found in line_length.check(tree)]


class LineLengthTest(unittest.TestCase):
    """Which lines are too long."""

    def test_gives_code_more_columns_than_comments(self):
        self.assertEqual(_lines("a.cc", "x" * 120, "x" * 121, "// " + "x" * 97, "  // " + "x" * 96), [2, 4])
        self.assertEqual(_lines("a.sh", "x" * 120, "x" * 121, "# " + "x" * 98, "# " + "x" * 99), [2, 4])

    def test_counts_a_comment_behind_code_as_code(self):
        self.assertEqual(_lines("a.h", "int i;  // " + "x" * 105), [])

    def test_counts_an_example_in_a_comment_as_code(self):
        self.assertEqual(_lines("a.h", "//   " + "x" * 115, "//   " + "x" * 116), [2])

    def test_leaves_lines_alone_that_cannot_be_broken(self):
        self.assertEqual(_lines("a.h", "// https://" + "x" * 120, "#include \"" + "x" * 120, "// | " + "-" * 120), [])

    def test_knows_tables_and_code_of_markdown(self):
        lines = ["x" * 100, "x" * 101, "| " + "x" * 200, "```", "x" * 120, "x" * 121, "```", "x" * 101]
        self.assertEqual(_lines("a.md", *lines), [2, 6, 8])


if __name__ == "__main__":
    unittest.main()
