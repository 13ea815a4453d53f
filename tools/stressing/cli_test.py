"""Tests of cli.py."""

import contextlib
import io
import unittest

from stressing import cli


class RoundsTest(unittest.TestCase):
    """How a storm is cut into rounds."""

    def test_adds_up_to_the_minutes_with_a_seed_for_each_round(self):
        self.assertEqual(list(cli.rounds(12, 7)), [(300, 7), (300, 8), (120, 9)])

    def test_is_one_round_if_it_is_short(self):
        self.assertEqual(list(cli.rounds(1, 7)), [(60, 7)])


class ParseTest(unittest.TestCase):
    """Options."""

    def test_has_defaults(self):
        options = cli.parse([])
        self.assertEqual((options.runs, options.minutes, options.config, options.targets), (50, None, None, []))

    def test_takes_targets_runs_and_a_config(self):
        options = cli.parse(["--runs", "9", "--config", "tsan", "//actor/..."])
        self.assertEqual((options.runs, options.config, options.targets), (9, "tsan", ["//actor/..."]))

    def test_refuses_what_makes_no_sense(self):
        for arguments in (["--runs", "0"], ["--minutes", "x"], ["--minutes", "3", "//actor/..."], ["--seed", "3"],
                          ["--burners", "-1"], ["--config", "opt"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                cli.parse(arguments)


if __name__ == "__main__":
    unittest.main()
