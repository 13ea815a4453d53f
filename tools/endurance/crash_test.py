"""Tests of crash.py."""

import contextlib
import io
import unittest

from endurance import crash
from endurance import rooms


class ParseTest(unittest.TestCase):
    """Options."""

    def test_has_defaults(self):
        options = crash.parse(["persistence"])
        self.assertEqual((options.room, options.rounds, options.ids, options.seed), ("persistence", 30, 50_000, 1))

    def test_tells_the_test_its_size(self):
        environment = crash.environment_of(crash.parse(["persistence", "--rounds", "3", "--ids", "9", "--seed", "5"]))
        self.assertEqual(environment["FRAKTOR_CRASH_ROUNDS"], "3")
        self.assertEqual(environment["FRAKTOR_CRASH_IDS"], "9")
        self.assertEqual(environment["FRAKTOR_CRASH_SEED"], "5")

    def test_refuses_what_makes_no_sense(self):
        for arguments in ([], ["nowhere"], ["persistence", "--rounds", "0"], ["persistence", "--ids", "many"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                crash.parse(arguments)

    def test_each_room_says_what_to_run(self):
        for name, room in rooms.rooms("crash").items():
            self.assertTrue(room["target"].startswith("//"), name)
            self.assertTrue(room["filter"], name)


if __name__ == "__main__":
    unittest.main()
