"""Tests of include_cycles.py."""

import unittest

from tidy import include_cycles
from tidy import source_tree


def _tree(**includes):
    """Files of folders that are named like the arguments, with the folders that each includes."""
    return source_tree.FakeTree({
        f"{folder}/{folder}.h": "".join(f'#include "fraktor/{other}/{other}.h"\n' for other in others.split())
        for folder, others in includes.items()
    })


class IncludeCyclesTest(unittest.TestCase):
    """Which includes make a cycle."""

    def test_is_quiet_without_a_cycle(self):
        self.assertEqual(list(include_cycles.check(_tree(a="b c", b="c", c="c"), [])), [])

    def test_finds_a_cycle_through_several_folders(self):
        found = list(include_cycles.check(_tree(a="b", b="c", c="a d", d=""), []))
        self.assertEqual(len(found), 1)
        self.assertIn("3 folders include each other: a, b, c", found[0])
        self.assertIn("c -> a, for example in c/c.h", found[0])

    def test_takes_a_folder_and_its_internal_folder_for_one(self):
        tree = source_tree.FakeTree({
            "a/a.h": '#include "fraktor/a/internal/b.h"\n',
            "a/internal/b.h": '#include "fraktor/a/c.h"\n',
            "a/c.h": '#include "fraktor/d/internal/d.h"\n',
            "d/internal/d.h": "",
        })
        self.assertEqual(list(include_cycles.check(tree, [])), [])
        tree = source_tree.FakeTree({
            "a/internal/b.h": '#include "fraktor/d/d.h"\n',
            "a/c.h": "",
            "d/internal/d.h": '#include "fraktor/a/c.h"\n',
        })
        self.assertEqual(len(list(include_cycles.check(tree, []))), 1)

    def test_lets_a_known_cycle_be(self):
        self.assertEqual(list(include_cycles.check(_tree(a="b", b="a"), [["b", "a"]])), [])

    def test_wants_the_exception_removed_when_the_cycle_is_gone_or_smaller(self):
        found = list(include_cycles.check(_tree(a="b", b=""), [["a", "b"]]))
        self.assertEqual(len(found), 1)
        self.assertIn("there is no cycle of exactly a, b", found[0])
        self.assertEqual(len(list(include_cycles.check(_tree(a="b", b="a", c=""), [["a", "b", "c"]]))), 2)

    def test_does_not_count_tests(self):
        tree = source_tree.FakeTree({
            "a/a.h": '#include "fraktor/b/b.h"\n',
            "b/b_test.cc": '#include "fraktor/a/a.h"\n',
            "b/fixture.h": '#include "fraktor/a/a.h"\n',
            "b/BUILD.bazel": 'fraktor_cc_test(name = "b_test", srcs = ["b_test.cc", "fixture.h"])\n',
        })
        self.assertEqual(list(include_cycles.check(tree, [])), [])


if __name__ == "__main__":
    unittest.main()
