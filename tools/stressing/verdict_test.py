"""Tests of verdict.py, with lines as Bazel 4.2 and 7 print them."""

import unittest

from stressing import verdict


class VerdictTest(unittest.TestCase):
    """What the summary of Bazel says."""

    def test_passes_if_all_runs_pass(self):
        output = "//a:b_test      PASSED in 0.3s\n  Stats over 50 runs: max = 0.3s, min = 0.1s\n"
        result = verdict.verdict("//a:b_test", 50, output, 0)
        self.assertTrue(result.passed)
        self.assertEqual(result.text, "50 runs passed")

    def test_counts_the_runs_that_failed(self):
        output = "//a:b_test      FAILED in 3 out of 50 in 2.0s\n"
        result = verdict.verdict("//a:b_test", 50, output, 3)
        self.assertFalse(result.passed)
        self.assertEqual(result.text, "FAILED in 3 of 50 runs")

    def test_tells_a_timeout(self):
        output = "//a:b_test      TIMEOUT in 1 out of 50 in 60.0s\n"
        self.assertEqual(verdict.verdict("//a:b_test", 50, output, 3).text, "FAILED in 1 of 50 runs (timeout)")

    def test_fails_if_bazel_fails_before_the_test(self):
        result = verdict.verdict("//a:b_test", 50, "ERROR: no such package\n", 1)
        self.assertFalse(result.passed)
        self.assertIn("code 1", result.text)

    def test_fails_if_bazel_fails_although_the_test_passed(self):
        self.assertFalse(verdict.verdict("//a:b_test", 1, "//a:b_test   PASSED in 0.3s\n", 37).passed)

    def test_does_not_take_another_test_for_this_one(self):
        self.assertFalse(verdict.verdict("//a:b_test", 1, "//a:b_test_two   PASSED in 0.3s\n", 0).passed)


if __name__ == "__main__":
    unittest.main()
