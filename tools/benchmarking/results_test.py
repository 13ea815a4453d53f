"""Tests of benchmarking.results."""

import json
import pathlib
import tempfile
import unittest

from benchmarking import results

TESTDATA = pathlib.Path(__file__).parent / "testdata"


class StableNameTest(unittest.TestCase):
    def test_drops_how_it_is_measured(self):
        self.assertEqual(results.stable_name("pairs/100/w:2/manual_time"), "pairs/100/w:2")
        self.assertEqual(results.stable_name("latency_busy/2/w:2/iterations:1/manual_time"), "latency_busy/2/w:2")
        self.assertEqual(results.stable_name("Push/min_time:0.500/repeats:3/process_time/real_time"), "Push")

    def test_keeps_arguments_and_threads(self):
        self.assertEqual(
            results.stable_name("Lookup<Map<int>>/cells:2048/real_time/threads:2"),
            "Lookup<Map<int>>/cells:2048/threads:2",
        )
        self.assertEqual(results.stable_name("Read/real_time/64"), "Read/real_time/64")


class LoadTest(unittest.TestCase):
    def setUp(self):
        self.loaded = results.load(TESTDATA / "run")

    def test_reads_suites_by_their_place(self):
        self.assertEqual(
            sorted(self.loaded.samples), ["limit/latency_busy/2/w:2", "limit/ping_pong/w:1", "utils/queue/Push/1"]
        )
        self.assertEqual(self.loaded.machine["cores"], 2)

    def test_takes_wall_time_only_where_it_is_asked_for(self):
        self.assertEqual(self.loaded.samples["utils/queue/Push/1"]["time_ns"], [10.0, 11.0, 12.0, 10.5, 11.5])
        self.assertEqual(self.loaded.samples["limit/ping_pong/w:1"]["time_ns"][0], 50e6)

    def test_ignores_aggregates(self):
        self.assertEqual(len(self.loaded.samples["utils/queue/Push/1"]["time_ns"]), 5)

    def test_judges_by_rates_and_latencies_rather_than_by_iteration_times(self):
        self.assertEqual(results.compared_metrics(self.loaded.samples["limit/ping_pong/w:1"]), ["items_per_second"])
        self.assertEqual(
            results.compared_metrics(self.loaded.samples["limit/latency_busy/2/w:2"]),
            ["p50_us", "p95_us", "p99_us", "delivered"],
        )
        self.assertEqual(results.compared_metrics(self.loaded.samples["utils/queue/Push/1"]), ["time_ns"])

    def test_reports_errors_of_benchmarks(self):
        self.assertEqual(self.loaded.errors, {"utils/queue/Broken": "does not add up"})

    def test_a_summary_reads_back_as_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "baseline.json"
            path.write_text(results.format_summary(self.loaded.summary()))
            again = results.load(path)
        self.assertEqual(again.machine, self.loaded.machine)
        self.assertEqual(
            again.median("limit/ping_pong/w:1", "items_per_second"),
            self.loaded.median("limit/ping_pong/w:1", "items_per_second"),
        )
        self.assertEqual(again.summary(), self.loaded.summary())

    def test_what_is_not_there_gets_a_clear_error(self):
        with self.assertRaisesRegex(results.ResultsError, "/nowhere does not exist"):
            results.load("/nowhere")

    def test_foreign_files_get_a_clear_error(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "other.json"
            path.write_text(json.dumps({"x": 1}))
            with self.assertRaisesRegex(results.ResultsError, "other.json is not a summary"):
                results.load(path)
            with self.assertRaisesRegex(results.ResultsError, 'has no list of "benchmarks"'):
                results.load(folder)
            path.write_text("{")
            with self.assertRaisesRegex(results.ResultsError, "other.json is not JSON, or not all of it"):
                results.load(folder)
            (path.parent / "machine.json").write_text("[]")
            with self.assertRaisesRegex(results.ResultsError, "machine.json does not describe a machine"):
                results.load(folder)

    def test_entries_that_make_no_sense_are_refused_with_their_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "suite.json"
            for entry in ({"x": 1}, "text", {"name": "a", "real_time": 1, "cpu_time": 1, "time_unit": "weeks"}):
                path.write_text(json.dumps({"benchmarks": [entry]}))
                with self.assertRaisesRegex(results.ResultsError, "suite.json is not Google Benchmark's JSON"):
                    results.load(folder)
            path.write_text(json.dumps({"benchmarks": {"a": 1}}))
            with self.assertRaisesRegex(results.ResultsError, 'has no list of "benchmarks"'):
                results.load(folder)

    def test_a_summary_that_is_not_whole_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "cut.json"

            def refuse(text, **fields):
                path.write_text(json.dumps({"format": results.SUMMARY_FORMAT, **fields}))
                with self.assertRaisesRegex(results.ResultsError, f"cut.json is no whole summary: {text}"):
                    results.load(path)

            refuse('its "machine" is not an object')
            refuse('its "benchmarks" is not an object', machine={}, benchmarks=[])
            refuse('its figures of "a/b" is not a list', machine={}, benchmarks={"a/b": 5})
            for values in (5, [], ["x"], [True], None):
                refuse('time_ns of "a/b" is not a list of numbers', machine={}, benchmarks={"a/b": {"time_ns": values}})

    def test_an_empty_folder_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(results.ResultsError, "holds no benchmark results"):
                results.load(folder)


if __name__ == "__main__":
    unittest.main()
