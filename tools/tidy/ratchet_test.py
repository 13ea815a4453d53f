"""Tests of ratchet.py."""

import unittest

from tidy import finding
from tidy import ratchet


def _findings(**folders):
    return [
        finding.Finding(f"{folder}/f.h", line + 1, "too long") for folder, n in folders.items() for line in range(n)
    ]


class RatchetTest(unittest.TestCase):
    """When a folder fails."""

    def test_lets_a_folder_have_as_many_violations_as_its_exception_says(self):
        self.assertEqual(list(ratchet.judge("length", _findings(a=2), {"a": 2})), [])
        self.assertEqual(list(ratchet.judge("length", _findings(a=1), {"a": 2})), [])

    def test_names_violations_above_the_exception(self):
        found = list(ratchet.judge("length", _findings(a=3), {"a": 2}))
        self.assertEqual(len(found), 1)
        self.assertIn("a has 3 violations; at most 2 are excepted", found[0])
        self.assertIn("a/f.h:3: too long", found[0])

    def test_names_violations_without_an_exception(self):
        self.assertEqual(len(list(ratchet.judge("length", _findings(a=1, b=1), {}))), 2)

    def test_does_not_print_hundreds_of_lines(self):
        found = list(ratchet.judge("length", _findings(a=300), {"a": 299}))
        self.assertIn("and 288 more", found[0])
        self.assertLess(len(found[0].splitlines()), 20)

    def test_wants_exceptions_removed_that_are_not_needed(self):
        found = list(ratchet.judge("length", _findings(a=1), {"a": 1, "gone": 3}))
        self.assertEqual(len(found), 1)
        self.assertIn("gone has no violation; remove its exception", found[0])

    def test_updates_limits_that_went_down_or_moved_and_never_up(self):
        self.assertEqual(ratchet.updated("length", _findings(a=1, c=2), {"a": 2, "b": 1}), {"a": 1, "c": 2})
        with self.assertRaisesRegex(ValueError, "4 violations, and the exceptions allow 3"):
            ratchet.updated("length", _findings(a=4), {"a": 3})
        self.assertEqual(ratchet.updated("length", _findings(a=4), {"a": 3}, may_grow=True), {"a": 4})


if __name__ == "__main__":
    unittest.main()
