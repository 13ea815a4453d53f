"""Tests of comments.py."""

import unittest

from tidy import comments


class CommentsTest(unittest.TestCase):
    """What is a comment, and what is not."""

    def test_finds_comments_of_cpp(self):
        text = 'int a = 1\'000;  // trailing\n// own line\nauto b = "http://x";\nauto c = R"(\n// raw\n)";\n  // last\n'
        found = list(comments.comments("a.cc", text))
        self.assertEqual(found, [(1, " trailing", False), (2, " own line", True), (7, " last", True)])

    def test_finds_comments_of_scripts(self):
        text = "#!/bin/sh\necho ${#list}  # trailing\n  # own line\n"
        found = list(comments.comments("a.sh", text))
        self.assertEqual(found, [(1, "!/bin/sh", True), (2, " trailing", False), (3, " own line", True)])

    def test_takes_characters_for_no_begin_of_a_text(self):
        self.assertEqual(list(comments.comments("a.h", "char q = '\"';  // quote\n")), [(1, " quote", False)])

    def test_finds_text_literals(self):
        text = '// "no"\nSay("one", "");\nauto raw = R"(raw)";\nSay("two \\"words\\"");\n'
        self.assertEqual(list(comments.literals(text)), [(2, "one"), (4, 'two \\"words\\"')])


if __name__ == "__main__":
    unittest.main()
