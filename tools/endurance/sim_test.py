"""Tests of sim.py."""

import contextlib
import io
import os
import pathlib
import tempfile
import unittest

from endurance import rooms
from endurance import sim


class ChunksTest(unittest.TestCase):
    """How seeds are cut into pieces."""

    def test_has_each_seed_once(self):
        self.assertEqual(sim.chunks(1, 250), [(1, 100), (101, 100), (201, 50)])

    def test_is_one_piece_if_there_are_few(self):
        self.assertEqual(sim.chunks(77, 3), [(77, 3)])


class RunChunkTest(unittest.TestCase):
    """Running a program."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def _program(self, text):
        path = pathlib.Path(self.folder.name) / "program"
        path.write_text(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)
        return path

    def test_tells_the_program_its_seeds_and_tests(self):
        program = self._program('echo "$FRAKTOR_SIM_FIRST_SEED $FRAKTOR_SIM_SEEDS $1"')
        outcome = sim.run_chunk(program, "A.B", 7, 3)
        self.assertTrue(outcome.passed)
        self.assertEqual(outcome.output, "7 3 --gtest_filter=A.B\n")

    def test_reports_a_failure_with_its_output(self):
        outcome = sim.run_chunk(self._program("echo repeat: 9; exit 1"), "A.B", 9, 1)
        self.assertFalse(outcome.passed)
        self.assertIn("repeat: 9", outcome.output)


class ParseTest(unittest.TestCase):
    """Options."""

    def test_has_defaults(self):
        options = sim.parse(["persistence"])
        self.assertEqual((options.room, options.seeds, options.first_seed), ("persistence", 1000, 1))

    def test_refuses_what_makes_no_sense(self):
        for arguments in ([], ["nowhere"], ["persistence", "--seeds", "0"], ["persistence", "--config", "tsan"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                sim.parse(arguments)

    def test_each_room_says_what_to_run(self):
        for name, room in rooms.rooms("sim").items():
            self.assertTrue(room["target"].startswith("//"), name)
            self.assertTrue(room["filter"], name)


if __name__ == "__main__":
    unittest.main()
