"""Tests of benchmarking.against with a small repository."""

import contextlib
import io
import pathlib
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

from benchmarking import against
from benchmarking import suites


@unittest.skipUnless(shutil.which("git"), "there is no git here")
class AgainstTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repository = pathlib.Path(folder.name) / "repository"
        self.cache = pathlib.Path(folder.name) / "cache"
        self.repository.mkdir()
        self._git("init", "--quiet")
        self.first = self._commit("old")
        self.second = self._commit("new")
        caching = mock.patch.dict("os.environ", {"XDG_CACHE_HOME": str(self.cache)})
        caching.start()
        self.addCleanup(caching.stop)

    def _git(self, *arguments):
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        command = ["git", *identity, "-C", str(self.repository), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def _commit(self, text):
        (self.repository / "file").write_text(text)
        self._git("add", "file")
        self._git("commit", "--quiet", "--message", text)
        return self._git("rev-parse", "HEAD")

    def _tree_of(self, commit):
        with contextlib.redirect_stderr(io.StringIO()):
            return against.tree_of(self.repository, commit)

    def test_a_revision_names_a_commit(self):
        self.assertEqual(against.commit_of(self.repository, "HEAD~1"), self.first)
        self.assertEqual(against.commit_of(self.repository, self.second[:10]), self.second)
        for revision in ("nowhere", "--all", f"{self.second}:file"):
            with self.assertRaisesRegex(suites.RunError, f'"{revision}" names no commit'):
                against.commit_of(self.repository, revision)

    def test_the_tree_has_the_files_of_the_commit_and_the_settings_of_this_machine(self):
        (self.repository / ".bazelrc.machine").write_text("machine")
        tree = self._tree_of(self.first)
        self.assertEqual(tree, self.cache / "fraktor" / "revisions" / self.first)
        self.assertEqual((tree / "file").read_text(), "old")
        self.assertEqual((tree / ".bazelrc.machine").read_text(), "machine")
        self.assertFalse((tree / ".bazelrc.user").exists())

    def test_a_tree_is_written_once_and_its_settings_each_time(self):
        (self.repository / ".bazelrc.machine").write_text("machine")
        (self._tree_of(self.first) / "built").write_text("")
        (self.repository / ".bazelrc.machine").unlink()
        tree = self._tree_of(self.first)
        self.assertTrue((tree / "built").exists())
        self.assertFalse((tree / ".bazelrc.machine").exists())

    def test_a_commit_that_does_not_exist_leaves_no_folder(self):
        with self.assertRaisesRegex(suites.RunError, "cannot be written"):
            self._tree_of("0" * 40)
        self.assertEqual(list((self.cache / "fraktor" / "revisions").iterdir()), [])


if __name__ == "__main__":
    unittest.main()
