"""Tests of benchmarking.significance."""

import random
import unittest

from benchmarking import significance


class SignificanceTest(unittest.TestCase):
    def test_complete_separation_of_five_and_five_is_one_in_252(self):
        self.assertAlmostEqual(significance.p_first_is_smaller([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]), 1 / 252)

    def test_the_other_way_round_is_certain(self):
        self.assertAlmostEqual(significance.p_first_is_smaller([6, 7, 8, 9, 10], [1, 2, 3, 4, 5]), 1)

    def test_known_value_without_ties(self):
        # Ranks 1, 2, 4 of 6: as low in {1,2,3} and {1,2,4}, two of twenty ways.
        self.assertAlmostEqual(significance.p_first_is_smaller([1, 2, 4], [3, 5, 6]), 2 / 20)

    def test_equal_values_share_their_rank(self):
        # Ranks 1, 2.5 | 2.5, 4: sums of two are 3.5, 3.5, 5, 5, 6.5, 6.5.
        self.assertAlmostEqual(significance.p_first_is_smaller([1, 2], [2, 3]), 2 / 6)

    def test_all_equal_says_nothing(self):
        self.assertEqual(significance.p_first_is_smaller([7] * 5, [7] * 5), 1)
        self.assertEqual(significance.p_first_is_smaller([7] * 30, [7] * 30), 1)

    def test_many_samples_agree_with_exact_counting(self):
        generator = random.Random(1)
        first = [generator.gauss(10, 1) for _ in range(10)]
        second = [generator.gauss(10.8, 1) for _ in range(10)]
        exact = significance.p_first_is_smaller(first, second)
        ranks = significance._ranks(first + second)
        self.assertAlmostEqual(significance._normal_approximation(ranks, 10, 10, sum(ranks[:10])), exact, delta=0.005)

    def test_two_against_two_can_never_reach_a_hundredth(self):
        self.assertAlmostEqual(significance.smallest_p(2, 2), 1 / 6)
        self.assertLess(significance.smallest_p(5, 5), 0.01)

    def test_an_empty_group_is_refused(self):
        with self.assertRaises(ValueError):
            significance.p_first_is_smaller([], [1])


if __name__ == "__main__":
    unittest.main()
