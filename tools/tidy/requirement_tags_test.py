"""Tests of requirement_tags.py."""

import contextlib
import io
import pathlib
import tempfile
import unittest

from tidy import requirement_tags
from tidy import source_tree

_TEST = """\
// About PER-1.
TEST(Store, Keeps) {
  // P2 to P4
}

// A62, SCH-4: they are refused.
TEST_P(StoreTest,
       Refuses) {
}

const char* text = "P99";
TEST_F(Last, One) {}
// GRD-6
"""

_PAGE = """\
# Requirements

| id | requirement | proven by |
|---|---|---|
| PER-1 | Stores are asynchronous. | `Store.Keeps` |
| P2 | Replays all. | `Store.Keeps` |
| P3 | Replays from a bound. | `Store.Keeps` |
| P4 | Replays to a bound. | `Store.Keeps` |
| A62 | A full mailbox refuses. | `StoreTest.Refuses` |
| SCH-4 | Mailboxes have limits. | `StoreTest.Refuses` |
| GRD-6 | Nothing leaks. | `Last.One` |
"""


def _tree(page=_PAGE, test=_TEST):
    return source_tree.FakeTree({"a/store_test.cc": test, requirement_tags.PAGE: page})


class RequirementTagsTest(unittest.TestCase):
    """Which tests carry which ids."""

    def test_finds_tags_in_and_before_tests(self):
        found = [(tag.id, tag.test) for tag in requirement_tags.tags(_tree())]
        self.assertEqual(found, [
            ("PER-1", "Store.Keeps"), ("P2", "Store.Keeps"), ("P3", "Store.Keeps"), ("P4", "Store.Keeps"),
            ("A62", "StoreTest.Refuses"), ("SCH-4", "StoreTest.Refuses"), ("GRD-6", "Last.One")])

    def test_finds_tags_of_python(self):
        text = "class T:\n    def test_one(self):\n        # SCH-13: worse\n        pass\n"
        tree = source_tree.FakeTree({"a/b_test.py": text})
        self.assertEqual([(tag.id, tag.test) for tag in requirement_tags.tags(tree)], [("SCH-13", "test_one")])

    def test_is_quiet_if_page_and_tests_agree(self):
        self.assertEqual(list(requirement_tags.check(_tree())), [])

    def test_finds_a_tag_without_a_row(self):
        found = list(requirement_tags.check(_tree(test=_TEST + "// P77\n")))
        self.assertEqual(len(found), 1)
        self.assertIn("a/store_test.cc:14: P77 is not in docs/requirements.md", found[0])

    def test_finds_a_tag_in_a_suite_without_tests(self):
        tree = source_tree.FakeTree({"a/testing/scenarios.h": "// CLU-77\n", requirement_tags.PAGE: ""})
        self.assertEqual(len(list(requirement_tags.check(tree))), 1)

    def test_finds_rows_that_no_test_proves(self):
        page = _PAGE + "| P50 | Nobody tests it. | |\n| P51 | Gone. | `Store.Gone` |\n| P4 | Again. | `Store.Keeps` |\n"
        found = [text.partition(": ")[2] for text in requirement_tags.check(_tree(page))]
        self.assertEqual(found, [
            "P4 has more than one row",
            "P50 names no test; run tools/tidy/requirement_tags.py",
            "no test `Store.Gone` carries P51; run tools/tidy/requirement_tags.py",
            "P4 has more than one row",
        ])

    def test_wants_a_sentence(self):
        found = list(requirement_tags.check(_tree(_PAGE.replace("Nothing leaks.", ""))))
        self.assertEqual(len(found), 1)
        self.assertIn("GRD-6 has no sentence", found[0])

    def test_fills_in_the_tests_of_rows(self):
        page = _PAGE.replace("`Last.One`", "`Old.Name`").replace("all. | `Store.Keeps` |", "all. | |")
        self.assertEqual(requirement_tags.filled(_tree(page)), _PAGE)

    def test_wants_the_page(self):
        self.assertEqual(list(requirement_tags.check(source_tree.FakeTree({}))), ["docs/requirements.md is missing"])

    def test_writes_the_page_only_without_arguments(self):
        page = _PAGE.replace("`Last.One`", "`Old.Name`")
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in {"a/store_test.cc": _TEST, requirement_tags.PAGE: page}.items():
                (root / path).parent.mkdir(exist_ok=True)
                (root / path).write_text(text, encoding="utf-8")
            for arguments, code in ((["--help"], 0), (["--check"], 2), (["docs"], 2)):
                with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(printed):
                    with self.assertRaises(SystemExit) as exited:
                        requirement_tags.main(arguments, root)
                self.assertEqual(exited.exception.code, code)
                self.assertIn("usage: tools/tidy/requirement_tags.py", printed.getvalue())
                self.assertEqual((root / requirement_tags.PAGE).read_text(encoding="utf-8"), page)
            requirement_tags.main([], root)
            self.assertEqual((root / requirement_tags.PAGE).read_text(encoding="utf-8"), _PAGE)


if __name__ == "__main__":
    unittest.main()
