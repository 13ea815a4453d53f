"""Tests of mutate.py."""

import contextlib
import io
import os
import pathlib
import tempfile
import unittest

from endurance import mutate
from endurance import rooms


class PassesTest(unittest.TestCase):
    """Running a test with a mutation."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.test = {"target": "//a:b_test", "env": {"SIZE": "3"}, "filter": "X.*"}

    def _write(self, text):
        path = pathlib.Path(self.folder.name) / "a" / "b_test"
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)

    def _passes(self, mutation, max_seconds=60):
        return mutate.passes(pathlib.Path(self.folder.name), self.test, mutation, max_seconds)

    def test_tells_the_test_its_mutation_size_and_filter(self):
        self._write('test "$FRAKTOR_MUTATION $SIZE $1" = "skip_sync 3 --gtest_filter=X.*"')
        self.assertTrue(self._passes("skip_sync"))
        self.assertFalse(self._passes("lose_answer"))

    def test_takes_a_test_that_does_not_end_for_one_that_fails(self):
        self._write("exec sleep 60")
        self.assertFalse(self._passes("lose_answer", max_seconds=0.1))


class ParseTest(unittest.TestCase):
    """Options."""

    def test_takes_some_mutations(self):
        known = list(rooms.rooms("mutate")["persistence"]["mutations"])
        options = mutate.parse(["persistence", "--only", known[0], "--only", known[1]])
        self.assertEqual(options.only, known[:2])

    def test_refuses_what_it_does_not_know(self):
        for arguments in ([], ["nowhere"], ["persistence", "--only", "nothing"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                mutate.parse(arguments)

    def test_each_room_has_at_least_twelve_mutations_and_a_test(self):
        for name, room in rooms.rooms("mutate").items():
            self.assertGreaterEqual(len(room["mutations"]), 12, name)
            self.assertTrue(room["tests"], name)


if __name__ == "__main__":
    unittest.main()
