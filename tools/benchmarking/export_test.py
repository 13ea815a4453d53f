"""Tests of benchmarking.export."""

import json
import pathlib
import tempfile
import unittest

from benchmarking import export
from benchmarking import results

TESTDATA = pathlib.Path(__file__).parent / "testdata"


class ExportTest(unittest.TestCase):
    def setUp(self):
        self.run = results.load(TESTDATA / "run")

    def test_github_action_benchmark_keeps_the_directions_apart(self):
        bigger = {entry["name"]: entry for entry in export.github_action_benchmark(self.run, True)}
        smaller = {entry["name"]: entry for entry in export.github_action_benchmark(self.run, False)}
        self.assertEqual(sorted(bigger), ["limit/latency_busy/2/w:2/delivered", "limit/ping_pong/w:1"])
        self.assertEqual(
            sorted(smaller),
            [
                "limit/latency_busy/2/w:2/p50_us",
                "limit/latency_busy/2/w:2/p95_us",
                "limit/latency_busy/2/w:2/p99_us",
                "utils/queue/Push/1",
            ],
        )
        entry = smaller["utils/queue/Push/1"]
        self.assertEqual((entry["unit"], entry["value"], entry["range"]), ("ns", 11.0, "± 1"))
        self.assertIn("0123abc", entry["extra"])
        self.assertEqual(set(entry), {"name", "unit", "value", "range", "extra"})

    def test_bencher_uses_its_own_measures_where_it_has_them(self):
        document = export.bencher(self.run)
        self.assertEqual(
            document["limit/ping_pong/w:1"]["throughput"], {"value": 40e6, "lower_value": 39e6, "upper_value": 41e6}
        )
        self.assertEqual(
            document["utils/queue/Push/1"], {"latency": {"value": 11.0, "lower_value": 10.0, "upper_value": 12.0}}
        )
        self.assertEqual(sorted(document["limit/latency_busy/2/w:2"]), ["delivered", "p50-us", "p95-us", "p99-us"])

    def test_files_are_named_after_what_reads_them(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = export.write(self.run, "github-action-benchmark", pathlib.Path(folder) / "new")
            self.assertEqual([path.name for path in paths], ["bigger_is_better.json", "smaller_is_better.json"])
            self.assertIsInstance(json.loads(paths[0].read_text()), list)
            paths = export.write(self.run, "bencher", folder)
            self.assertEqual([path.name for path in paths], ["bencher.json"])
            self.assertIsInstance(json.loads(paths[0].read_text()), dict)

    def test_an_unknown_format_is_refused(self):
        with self.assertRaisesRegex(results.ResultsError, 'unknown export format "csv"; there are github'):
            export.write(self.run, "csv", "/nowhere")


if __name__ == "__main__":
    unittest.main()
