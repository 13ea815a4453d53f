"""Tests of words.py."""

import unittest

from tidy import source_tree
from tidy import words


def _lines(path, text):
    return [found.line for found in words.check(source_tree.FakeTree({path: text}))]


class WordsTest(unittest.TestCase):
    """Which phrases are found, and where."""

    def test_finds_sentences_without_a_subject(self):
        text = "// What is null is not there.\n// Null. Who waits hears it.\n// So many may wait.\n// Of the slot.\n"
        self.assertEqual(sorted(set(_lines("a.h", text))), [1, 2, 3, 4])

    def test_leaves_other_sentences_alone(self):
        text = "// A null member is off: what the test expects.\n// What happens then? Nothing.\n// One of the slots.\n"
        self.assertEqual(_lines("a.h", text), [])

    def test_finds_phrases_and_says_what_to_write(self):
        found = list(words.check(source_tree.FakeTree({"a.h": "int i;  // Tells whoever listens.\n"})))
        self.assertEqual(len(found), 1)
        self.assertEqual(str(found[0]), 'a.h:1: "whoever"; better: name the caller, the sender or the thread')

    def test_reads_texts_of_the_product_and_not_of_tests(self):
        text = 'return absl::InternalError("it does not say what it is at");\n'
        self.assertEqual(_lines("a.cc", text), [1])
        self.assertEqual(_lines("a_test.cc", text), [])

    def test_leaves_examples_names_and_quotes_alone(self):
        text = '//   // Whoever asks.\n// RemoteDoor, topology_ears, `whoever`, "whoever".\nint question = 1;\n'
        self.assertEqual(_lines("a.h", text), [])

    def test_reads_markdown_without_its_code(self):
        text = "# Whoever\n```\nwhoever\n```\n- What is put off.\n| whoever | x |\n"
        self.assertEqual(_lines("a.md", text), [1, 5, 5, 6])

    def test_reads_scripts(self):
        self.assertEqual(_lines("a.sh", "# Runs what was put off.\necho whoever\n"), [1])


if __name__ == "__main__":
    unittest.main()
