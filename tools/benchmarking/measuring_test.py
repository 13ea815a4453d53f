"""Tests of benchmarking.measuring with stand-ins for programs and peers."""

import contextlib
import io
import pathlib
import tempfile
import unittest
from unittest import mock

from benchmarking import measuring
from benchmarking import peers
from benchmarking import results
from benchmarking import suites

REPOSITORY = pathlib.Path(__file__).parent


class _Suite:
    def __init__(self, name, names, log, fails=False):
        self.name = name
        self._names = names
        self._log = log
        self._fails = fails

    def run_names(self):
        return {name: name for name in self._names}

    def run(self, names, min_time):
        self._log.append(self.name)
        if self._fails:
            raise suites.RunError(f"{self.name} is broken")
        entries = [{"name": name, "real_time": min_time, "cpu_time": min_time} for name in names]
        return {"context": {}, "benchmarks": entries}


class _Peer:
    def __init__(self, name):
        self.name = name


class MeasuringTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "out"
        self.log = []
        silence = contextlib.redirect_stderr(io.StringIO())
        silence.__enter__()
        self.addCleanup(silence.__exit__, None, None, None)

    def _suites(self, **fails):
        return {name: _Suite(name, ["ring/1000/w:1", "other"], self.log, fails.get(name, False)) for name in ("a", "b")}

    def test_rounds_go_through_all_suites_before_they_repeat(self):
        failures = measuring.run_rounds(
            REPOSITORY, self._suites(), {"a": ["other"], "b": ["other"]}, 2, 0.1, None, self.folder
        )
        self.assertEqual((failures, self.log), ([], ["a", "b", "a", "b"]))
        self.assertEqual(len(results.load(self.folder).samples["a/other"]["time_ns"]), 2)

    def test_after_the_limit_everything_has_run_once(self):
        measuring.run_rounds(REPOSITORY, self._suites(), {"a": ["other"], "b": ["other"]}, 3, 0.1, 1e-9, self.folder)
        self.assertEqual(self.log, ["a", "b"])

    def test_programs_and_peers_take_turns(self):
        def run_peer(peer, program):
            self.log.append(peer.name)
            return {"context": {}, "benchmarks": [{"name": program, "items_per_second": 1.0}]}

        with mock.patch.object(peers, "run_peer", run_peer):
            own = [{"ring/1000/w:1": "a"}, {"ring/1000/w:1": "b"}]
            others = [_Peer("x"), _Peer("y")]
            measuring.run_in_turn(REPOSITORY, self._suites(), own, others, ["ring/1000/w:1"], 2, 0.1, self.folder)
        self.assertEqual(self.log, ["a", "b", "x", "y"] * 2)
        self.assertEqual(results.load(self.folder).samples["peers/y/ring/1000/w:1"], {"items_per_second": [1.0, 1.0]})

    def test_programs_of_typed_actors_take_their_turn_too(self):
        def run_peer(peer, program):
            self.log.append(peer.name)
            return None

        built = {"a": _Suite("a", ["ask/w:2", "typed_ask/w:2"], self.log)}
        with mock.patch.object(peers, "run_peer", run_peer):
            measuring.run_in_turn(
                REPOSITORY, built, [{"ask/w:2": "a"}], [_Peer("x")], ["ask/w:2"], 2, 0.1, self.folder
            )
        self.assertEqual(self.log, ["a", "a", "x"] * 2)
        samples = results.load(self.folder).samples
        self.assertEqual(len(samples["a/ask/w:2"]["time_ns"]), 2)
        self.assertEqual(len(samples["a/typed_ask/w:2"]["time_ns"]), 2)

    def test_what_fails_is_named_once_and_not_tried_again(self):
        def run_peer(peer, program):
            self.log.append(peer.name)
            raise suites.RunError(f"{program} hangs")

        with mock.patch.object(peers, "run_peer", run_peer):
            own = [{"ring/1000/w:1": "a"}]
            failures = measuring.run_in_turn(
                REPOSITORY, self._suites(), own, [_Peer("x")], ["ring/1000/w:1"], 3, 0.1, self.folder
            )
        self.assertEqual(failures, ["peers/x/ring/1000/w:1"])
        self.assertEqual(self.log, ["a", "x", "a", "a"])

    def test_two_trees_take_turns_and_each_is_first_as_often_as_the_other(self):
        log = self.log
        old, new = {"a": _Suite("old", ["other"], log)}, {"a": _Suite("new", ["other"], log)}
        failures = measuring.run_against(REPOSITORY, old, new, {"a": ["other"]}, 2, 0.1, self.folder)
        self.assertEqual((failures, log), ([], ["old", "new", "new", "old"]))
        for side in ("old", "new"):
            self.assertEqual(len(results.load(self.folder / side).samples["a/other"]["time_ns"]), 2)

    def test_a_program_that_fails_in_one_tree_still_runs_in_the_other(self):
        old, new = {"a": _Suite("old", ["other"], self.log)}, {"a": _Suite("new", ["other"], self.log, fails=True)}
        failures = measuring.run_against(REPOSITORY, old, new, {"a": ["other"]}, 2, 0.1, self.folder)
        self.assertEqual((failures, self.log), (["new a/other"], ["old", "new", "old"]))

    def test_programs_are_found_in_their_folder_only(self):
        built = {name: _Suite(name, ["ring/1000/w:1", "other"], self.log) for name in ("actor/hot", "limit")}
        self.assertEqual(measuring.programs_of(built, "actor"), {"ring/1000/w:1": "actor/hot"})
        self.assertEqual(measuring.programs_of(built, "act"), {})
        built["actor/cold"] = _Suite("actor/cold", ["ring/1000/w:1"], self.log)
        with self.assertRaisesRegex(suites.RunError, "both actor/hot and actor/cold have the program ring/1000/w:1"):
            measuring.programs_of(built, "actor")


if __name__ == "__main__":
    unittest.main()
