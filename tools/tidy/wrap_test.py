"""Tests of wrap.py."""

import unittest

from tidy import wrap

_LONG = " ".join(["word"] * 23)  # 114 columns


class WrapCommentsTest(unittest.TestCase):
    """Which comments are wrapped, and how."""

    def test_wraps_a_paragraph_as_a_whole(self):
        lines = ["  // " + _LONG, "  // and the rest.", "  int i;"]
        new = wrap.wrap_comments(lines)
        self.assertTrue(all(len(line) <= 100 for line in new))
        self.assertEqual(" ".join(line.strip().removeprefix("// ") for line in new[:-1]), _LONG + " and the rest.")
        self.assertEqual(new[-1], "  int i;")

    def test_keeps_breaks_that_are_there_on_purpose(self):
        lines = ["// SCH-4, A62", "// " + _LONG, "// end."]
        new = wrap.wrap_comments(lines)
        self.assertEqual(new[0], "// SCH-4, A62")
        self.assertEqual(len(new), 3)
        self.assertTrue(new[2].endswith("end."))

    def test_leaves_other_lines_alone(self):
        for line in ("//   Example(" + _LONG, "int i;  // " + _LONG, "// https://x.y " + _LONG,
                     "#!" + _LONG):
            self.assertEqual(wrap.wrap_comments([line, "// short text"]), [line, "// short text"])

    def test_leaves_short_paragraphs_alone(self):
        lines = ["// One sentence.", "// Another one."]
        self.assertEqual(wrap.wrap_comments(lines), lines)

    def test_wraps_comments_of_scripts(self):
        self.assertEqual(len(wrap.wrap_comments(["# " + _LONG])), 2)

    def test_wraps_entries_of_lists(self):
        new = wrap.wrap_comments(["// - " + _LONG, "//   and the rest", "// - short", "//   Example();"])
        self.assertEqual([line[:9] for line in new], ["// - word", "//   word", "// - shor", "//   Exam"])
        self.assertTrue(new[1].endswith("word and the rest"))

    def test_wraps_only_what_changed(self):
        lines = ["// " + _LONG, "int i;", "// " + _LONG]
        self.assertEqual(len(wrap.wrap_comments(lines, {3})), 4)
        self.assertEqual(wrap.wrap_comments(lines, {2}), lines)


class WrapMarkdownTest(unittest.TestCase):
    """Which lines of a page are wrapped, and how."""

    def test_wraps_paragraphs_and_lists(self):
        new = wrap.wrap_markdown([_LONG, "", "- " + _LONG, "  1. " + _LONG])
        self.assertEqual([line[:8] for line in new],
                         ["word wor", "word wor", "", "- word w", "  word w", "  1. wor", "     wor"])

    def test_leaves_tables_headings_and_code_alone(self):
        lines = ["| " + _LONG, "# " + _LONG, "```", _LONG, "```"]
        self.assertEqual(wrap.wrap_markdown(lines), lines)


if __name__ == "__main__":
    unittest.main()
