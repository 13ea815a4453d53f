"""Tests of benchmarking.bars."""

import unittest

from benchmarking import bars
from benchmarking import results


def _results(**medians):
    return results.Results(
        samples={key.replace("__", "/"): {"items_per_second": [value]} for key, value in medians.items()}
    )


def _bar(*conditions, **fields):
    entry = {
        "name": "b",
        "what": "w",
        "any_of": [{"metric": "items_per_second", **condition} for condition in conditions],
    }
    return bars.parse({"g": [{**entry, **fields}]}, "test")


def _verdict(loaded, parsed):
    return [verdict.verdict for verdict in bars.judge(loaded, parsed)]


AGAINST_PEERS = {"of": "actor/*/ping", "over": ["peers/caf/ping", "peers/erlang/ping"], "at_least": 8}
AGAINST_LIMIT = {"of": "actor/*/ping", "over": ["limit/ping"], "at_least": 0.6}


class BarsTest(unittest.TestCase):
    def test_the_best_of_the_others_counts(self):
        loaded = _results(actor__hot__ping=20.0, peers__caf__ping=1.0, peers__erlang__ping=2.5)
        (verdict,) = bars.judge(loaded, _bar(AGAINST_PEERS))
        self.assertEqual((verdict.values, verdict.verdict), ((8.0,), bars.PASS))
        loaded = _results(actor__hot__ping=20.0, peers__caf__ping=1.0, peers__erlang__ping=2.6)
        self.assertEqual(_verdict(loaded, _bar(AGAINST_PEERS)), [bars.FAIL])

    def test_of_times_the_smallest_is_the_best(self):
        samples = {key: {"time_ns": [value]} for key, value in {"a": 30.0, "b": 10.0, "c": 20.0}.items()}
        condition = {"metric": "time_ns", "of": "a", "over": ["b", "c"], "at_most": 3}
        (verdict,) = bars.judge(results.Results(samples=samples), _bar(condition))
        self.assertEqual((verdict.values, verdict.verdict), ((3.0,), bars.PASS))

    def test_one_condition_that_holds_is_enough(self):
        loaded = _results(actor__hot__ping=6.0, peers__caf__ping=1.0, peers__erlang__ping=1.0, limit__ping=10.0)
        self.assertEqual(_verdict(loaded, _bar(AGAINST_PEERS, AGAINST_LIMIT)), [bars.PASS])
        loaded = _results(actor__hot__ping=5.0, peers__caf__ping=1.0, peers__erlang__ping=1.0, limit__ping=10.0)
        self.assertEqual(_verdict(loaded, _bar(AGAINST_PEERS, AGAINST_LIMIT)), [bars.FAIL])

    def test_what_was_not_measured_neither_passes_nor_fails(self):
        self.assertEqual(_verdict(_results(), _bar(AGAINST_PEERS)), [bars.NOT_MEASURED])
        # One peer is missing: it might have been the best.
        loaded = _results(actor__hot__ping=20.0, peers__caf__ping=1.0)
        self.assertEqual(_verdict(loaded, _bar(AGAINST_PEERS)), [bars.NOT_MEASURED])
        # One condition fails, but the other could have held.
        loaded = _results(actor__hot__ping=5.0, limit__ping=10.0)
        self.assertEqual(_verdict(loaded, _bar(AGAINST_PEERS, AGAINST_LIMIT)), [bars.NOT_MEASURED])

    def test_comparisons_are_exact_at_the_bar(self):
        loaded = _results(a=3.0)
        for comparison, verdict in (("at_least", bars.PASS), ("at_most", bars.PASS), ("below", bars.FAIL)):
            self.assertEqual(_verdict(loaded, _bar({"of": "a", comparison: 3})), [verdict], comparison)

    def test_each_makes_one_bar_per_value(self):
        parsed = _bar({"of": "s/{each}", "at_least": 1}, name="n/{each}", each=["x", "y"])
        self.assertEqual([(bar.name, bar.conditions[0].of) for bar in parsed], [("n/x", "s/x"), ("n/y", "s/y")])

    def test_mistakes_in_the_table_are_named(self):
        with self.assertRaisesRegex(results.ResultsError, "test: g: b: unknown at_last"):
            _bar({"of": "a", "at_last": 1})
        with self.assertRaisesRegex(results.ResultsError, "exactly one of"):
            _bar({"of": "a"})
        with self.assertRaisesRegex(results.ResultsError, "more than one bar is called b"):
            bars.parse({"g": [{"name": "b", "what": "", "any_of": []}] * 2}, "test")
        with self.assertRaisesRegex(results.ResultsError, "means more than one benchmark: actor/x/ping, actor/y/ping"):
            bars.judge(_results(actor__x__ping=1.0, actor__y__ping=1.0), _bar({"of": "actor/*/ping", "at_least": 1}))

    def test_the_table_shows_value_bar_and_verdict(self):
        loaded = _results(actor__hot__ping=20.0, peers__caf__ping=1.0, peers__erlang__ping=2.0)
        text = bars.table(bars.judge(loaded, _bar(AGAINST_PEERS, AGAINST_LIMIT)))
        self.assertIn("PASS", text)
        self.assertIn("10 (>= 8x) or - (>= 0.6x)", text)
        self.assertTrue(text.endswith("1 passed, 0 failed, 0 not measured"))

    def test_the_bars_of_the_project_are_well_formed(self):
        parsed = bars.load()
        groups = {"utils", "hot path", "paths", "persistence", "remote", "cluster"}
        self.assertEqual({bar.group for bar in parsed}, groups)
        known = set(results.METRICS)
        self.assertEqual({condition.metric for bar in parsed for condition in bar.conditions} - known, set())


if __name__ == "__main__":
    unittest.main()
