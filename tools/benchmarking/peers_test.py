"""Tests of benchmarking.peers: what is printed about the peers, without running any."""

import math
import unittest

from benchmarking import peers
from benchmarking import results


class RatioTest(unittest.TestCase):
    def test_above_one_means_that_we_are_better(self):
        self.assertEqual(peers.ratio({"items_per_second": [30.0]}, {"items_per_second": [10.0]}, "items_per_second"), 3)
        self.assertEqual(peers.ratio({"p99_us": [10.0]}, {"p99_us": [30.0]}, "p99_us"), 3)

    def test_medians_are_taken(self):
        self.assertEqual(peers.ratio({"p99_us": [10.0, 900.0, 11.0]}, {"p99_us": [22.0]}, "p99_us"), 2)

    def test_a_peer_that_delivers_nothing_is_infinitely_worse(self):
        ours, theirs = {"p99_us": [10.0], "delivered": [1.0]}, {"delivered": [0.0, 0.0]}
        self.assertEqual(peers.ratio(ours, theirs, "p99_us"), math.inf)
        self.assertEqual(peers.ratio(theirs, ours, "p99_us"), 0)
        self.assertEqual(peers.ratio(ours, theirs, "delivered"), math.inf)

    def test_what_one_side_lacks_has_no_ratio(self):
        self.assertIsNone(peers.ratio({"items_per_second": [1.0]}, {}, "items_per_second"))
        self.assertIsNone(peers.ratio({"p99_us": [1.0]}, {}, "p99_us"))

    def test_lines_name_program_parameter_workers_and_peer(self):
        loaded = results.Results(
            samples={
                "actor/hot/pairs/100/w:2": {"items_per_second": [80.0]},
                "actor/hot/typed_pairs/100/w:2": {"items_per_second": [40.0]},
                "peers/caf/pairs/100/w:2": {"items_per_second": [8.0]},
                "peers/erlang/pairs/100/w:2": {"items_per_second": [4.0]},
                "actor/hot/latency_idle/w:2": {"p50_us": [5.0], "cores": [0.1], "delivered": [1.0]},
                "peers/caf/latency_idle/w:2": {"p50_us": [10.0], "cores": [0.4], "delivered": [1.0]},
            }
        )
        programs = ["pairs/100/w:2", "latency_idle/w:2"]
        lines = peers.ratio_lines(
            loaded,
            {program: f"actor/hot/{program}" for program in programs},
            {"caf": "peers/caf", "erlang": "peers/erlang"},
            programs,
        )
        self.assertEqual(
            lines,
            [
                "ratio pairs/100/w2 caf 10",
                "ratio pairs/100/w2 erlang 20",
                "ratio typed_pairs/100/w2 caf 5",
                "ratio typed_pairs/100/w2 erlang 10",
                "ratio latency_idle_p50/w2 caf 2",
                "ratio latency_idle_delivered/w2 caf 1",
                "ratio latency_idle_cores/w2 caf 4",
            ],
        )


if __name__ == "__main__":
    unittest.main()
