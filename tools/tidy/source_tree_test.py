"""Tests of source_tree.py."""

import pathlib
import tempfile
import unittest

from tidy import source_tree


class SourceTreeTest(unittest.TestCase):
    """Which files are found, and how they are read."""

    def test_finds_sources_and_scripts_and_nothing_of_tools(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {
                "a/b.h": "x", "a/b.cc": "x", "README.md": "x", "a/BUILD.bazel": "x",
                "tools/run": "#!/bin/sh\n", ".ci/run": "#!/bin/sh\n",
                "a/corpus/input": "no script", "bazel-out/c.h": "x", ".git/hooks/d.py": "x", "node_modules/e.py": "x",
                "a/picture.png": "x",
            }.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            tree = source_tree.SourceTree(root)
            self.assertEqual(tree.paths, [".ci/run", "README.md", "a/BUILD.bazel", "a/b.cc", "a/b.h", "tools/run"])
            self.assertEqual(tree.with_suffix(".h", ".cc"), ["a/b.cc", "a/b.h"])
            self.assertTrue(tree.exists("a/picture.png"))
            self.assertFalse(tree.exists("a/missing.h"))

    def test_reads_bytes_that_are_no_utf_8(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a.h").write_bytes(b"one\n\xff\n")
            self.assertEqual(source_tree.SourceTree(folder).lines("a.h"), ["one", "\ufffd"])


if __name__ == "__main__":
    unittest.main()
