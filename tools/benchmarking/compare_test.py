"""Tests of benchmarking.compare."""

import copy
import math
import pathlib
import unittest

from benchmarking import compare
from benchmarking import results

TESTDATA = pathlib.Path(__file__).parent / "testdata"


def _compare(old, new, threshold=0.05, alpha=0.01):
    return compare.compare(old, new, threshold, alpha)


def _one(metric, old, new):
    return _compare(results.Results(samples={"s/b": {metric: old}}), results.Results(samples={"s/b": {metric: new}}))


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.run = results.load(TESTDATA / "run")

    def _scaled(self, key, metric, factor):
        changed = copy.deepcopy(self.run)
        changed.samples[key][metric] = [value * factor for value in changed.samples[key][metric]]
        return changed

    def test_a_run_compared_with_itself_finds_nothing(self):
        comparison = _compare(self.run, self.run)
        self.assertEqual(len(comparison.rows), 6)
        self.assertEqual({row.verdict for row in comparison.rows}, {compare.SAME})

    # SCH-13: beyond 5 % worse is a failure of the comparison.
    def test_a_throughput_ten_percent_lower_is_found(self):
        worse = _compare(self.run, self._scaled("limit/ping_pong/w:1", "items_per_second", 0.9)).worse
        self.assertEqual([(row.key, row.metric) for row in worse], [("limit/ping_pong/w:1", "items_per_second")])
        self.assertAlmostEqual(worse[0].worse_by, 0.1)

    def test_a_latency_ten_percent_higher_is_found(self):
        worse = _compare(self.run, self._scaled("limit/latency_busy/2/w:2", "p99_us", 1.1)).worse
        self.assertEqual([(row.key, row.metric) for row in worse], [("limit/latency_busy/2/w:2", "p99_us")])

    def test_a_benchmark_that_has_begun_to_fail_is_named_with_its_error(self):
        broken = copy.deepcopy(self.run)
        del broken.samples["limit/ping_pong/w:1"]
        broken.errors["limit/ping_pong/w:1"] = "no answer"
        comparison = _compare(self.run, broken)
        self.assertEqual(comparison.failing, {"limit/ping_pong/w:1": "no answer"})
        self.assertEqual(comparison.only_old, [])
        self.assertIn("FAILS in the new results: limit/ping_pong/w:1: no answer", compare.table(comparison, 0.05))
        # What failed before, or is not there, is no news.
        self.assertEqual(_compare(broken, broken).failing, {})

    def test_figures_of_two_machines_are_called_hints(self):
        elsewhere = copy.deepcopy(self.run)
        elsewhere.machine["cores"] = 1000
        text = compare.table(_compare(self.run, elsewhere), 0.05)
        self.assertRegex(text, r"not the same machine: cores \d+, now 1000; take the changes as hints")
        self.assertNotIn("hints", compare.table(_compare(self.run, self.run), 0.05))

    def test_better_is_not_worse(self):
        comparison = _compare(self.run, self._scaled("limit/ping_pong/w:1", "items_per_second", 1.2))
        self.assertEqual(comparison.worse, [])
        self.assertEqual([row.key for row in comparison.better], ["limit/ping_pong/w:1"])

    def test_four_percent_is_within_the_threshold(self):
        self.assertEqual(_compare(self.run, self._scaled("limit/ping_pong/w:1", "items_per_second", 0.96)).worse, [])

    def test_a_difference_that_chance_makes_is_none(self):
        # The medians differ by 20 %, but the samples overlap.
        comparison = _one("time_ns", [100, 80, 130, 90, 120], [120, 85, 140, 95, 125])
        self.assertEqual(comparison.rows[0].verdict, compare.SAME)
        self.assertGreater(comparison.rows[0].p, 0.01)

    def test_single_samples_are_judged_by_their_difference_alone(self):
        row = _one("time_ns", [100], [120]).rows[0]
        self.assertEqual((row.p, row.verdict), (None, compare.WORSE))

    def test_from_nothing_to_something(self):
        self.assertEqual(_one("delivered", [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]).rows[0].worse_by, -math.inf)
        self.assertEqual(_one("cores", [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]).rows[0].verdict, compare.WORSE)
        self.assertEqual(_one("delivered", [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]).rows[0].verdict, compare.WORSE)
        self.assertEqual(_one("cores", [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]).rows[0].verdict, compare.SAME)

    def test_what_only_one_side_has_is_named(self):
        other = copy.deepcopy(self.run)
        other.samples["utils/new/Thing"] = other.samples.pop("utils/queue/Push/1")
        comparison = _compare(self.run, other)
        self.assertEqual((comparison.only_old, comparison.only_new), (["utils/queue/Push/1"], ["utils/new/Thing"]))

    def test_the_table_names_the_worst_first_and_counts(self):
        text = compare.table(_compare(self.run, self._scaled("utils/queue/Push/1", "time_ns", 1.5)), 0.05)
        lines = text.splitlines()
        self.assertTrue(lines[1].startswith("utils/queue/Push/1"))
        self.assertIn("+50.0 %", lines[1])
        self.assertTrue(lines[1].endswith("WORSE"))
        self.assertEqual(lines[-1], "6 compared, 1 worse and 0 better by more than 5 %")


if __name__ == "__main__":
    unittest.main()
