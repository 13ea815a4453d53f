"""Tests of benchmarking.suites with a stand-in for a Google Benchmark program."""

import json
import pathlib
import stat
import tempfile
import unittest
from unittest import mock

from benchmarking import machine
from benchmarking import suites

# Knows two benchmarks, takes --benchmark_min_time with a unit or without, depending on its version, and records its
# arguments.
_PROGRAM = """#!/usr/bin/env python3
import json, re, sys
flags = dict(argument.lstrip("-").partition("=")[::2] for argument in sys.argv[1:])
with_unit = flags.get("benchmark_min_time", "").endswith("s")
if with_unit and {old}:
    sys.exit("unrecognized command-line flag")
names = ["Push<int>/1/real_time", "Fail"]
if "benchmark_list_tests" in flags:
    print("\\n".join(names))
    sys.exit(0)
chosen = [name for name in names if re.search(flags["benchmark_filter"], name)]
if "Fail" in chosen:
    sys.exit("broken on purpose")
json.dump({{"context": {{"flags": flags}}, "benchmarks": [{{"name": name, "real_time": 1.0}} for name in chosen]}},
          open(flags["benchmark_out"], "w"))
"""


class TouchMemoryTest(unittest.TestCase):
    def test_takes_any_size(self):
        for size in (1, 10_000, 1 << 20):
            machine.touch_memory(size)


class SuiteTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        touching = mock.patch.object(machine, "touch_memory")
        self.touch_memory = touching.start()
        self.addCleanup(touching.stop)

    def _suite(self, old):
        path = self.folder / "program"
        path.write_text(_PROGRAM.format(old=old))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return suites.Suite("s", path)

    def test_names_are_stable_and_filters_are_exact(self):
        suite = self._suite(old=True)
        self.assertEqual(list(suite.run_names()), ["Push<int>/1", "Fail"])
        document = suite.run(["Push<int>/1"], 0.05)
        self.assertEqual([entry["name"] for entry in document["benchmarks"]], ["Push<int>/1/real_time"])

    def test_the_least_time_has_a_unit_only_where_it_is_understood(self):
        for old, expected in ((True, "0.05"), (False, "0.05s")):
            flags = self._suite(old).run(["Push<int>/1"], 0.05)["context"]["flags"]
            self.assertEqual(flags["benchmark_min_time"], expected)

    def test_each_program_finds_memory_that_the_machine_has(self):
        self._suite(old=True).run(["Push<int>/1", "Push<int>/1"], 0.05)
        self.assertEqual(self.touch_memory.call_count, 2)

    def test_a_failing_program_is_named_with_what_it_said(self):
        with self.assertRaisesRegex(suites.RunError, "s/Fail ended with code 1:\nbroken on purpose"):
            self._suite(old=True).run(["Fail"], 0.05)

    def test_a_missing_program_is_named(self):
        with self.assertRaisesRegex(suites.RunError, "/nowhere/program"):
            suites.Suite("s", pathlib.Path("/nowhere/program")).run_names()


class NamesTest(unittest.TestCase):
    def test_suites_are_called_after_folder_and_target(self):
        self.assertEqual(suites.suite_of("//benchmarks/utils:queue_benchmark"), "utils/queue")
        self.assertEqual(suites.suite_of("//benchmarks/limit:limit_benchmark"), "limit")
        self.assertEqual(suites.suite_of("//utils/testing:interleaving_benchmark"), "utils/testing/interleaving")

    def test_only_what_has_a_meaning_is_escaped(self):
        self.assertEqual(suites.escape("Push<int>/cells:2-3"), "Push<int>/cells:2-3")
        self.assertEqual(suites.escape("a.b(c)"), r"a\.b\(c\)")


class RecorderTest(unittest.TestCase):
    def test_repetitions_of_a_suite_go_into_one_file(self):
        with tempfile.TemporaryDirectory() as folder:
            recorder = suites.Recorder(folder)
            for value in (1.0, 2.0):
                recorder.add("utils/queue", {"context": {}, "benchmarks": [{"name": "Push", "real_time": value}]})
            recorder.write({"cores": 2})
            document = json.loads((pathlib.Path(folder) / "utils" / "queue.json").read_text())
            self.assertEqual(
                [(entry["repetition_index"], entry["real_time"]) for entry in document["benchmarks"]],
                [(0, 1.0), (1, 2.0)],
            )
            self.assertEqual(json.loads((pathlib.Path(folder) / "machine.json").read_text()), {"cores": 2})


if __name__ == "__main__":
    unittest.main()
