"""Tests of burner.py."""

import unittest

from stressing import burner


class BurnerTest(unittest.TestCase):
    """When the processes run."""

    def test_burns_while_the_block_runs(self):
        with burner.burning(2) as burners:
            self.assertEqual([process.poll() for process in burners], [None, None])
        self.assertTrue(all(process.poll() is not None for process in burners))

    def test_ends_with_a_block_that_fails(self):
        with self.assertRaises(ValueError):
            with burner.burning(1) as burners:
                raise ValueError("failed")
        self.assertIsNotNone(burners[0].poll())


if __name__ == "__main__":
    unittest.main()
