"""The files of the repository that people write."""

import os
import pathlib

_SUFFIXES = (".cc", ".h", ".py", ".sh", ".bzl", ".bazel", ".md", ".proto")
_SKIPPED_FOLDERS = ("node_modules", "__pycache__")


def _is_script(path):
    with open(path, "rb") as opened:
        return opened.read(2) == b"#!"


class SourceTree:
    """Sources below a root, by their paths relative to it. Reads each file once."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self._texts = {}
        self.paths = sorted(self._walk())
        self._known = None

    def _walk(self):
        for folder, folders, files in os.walk(self.root):
            # Bazel's outputs are links at the root. Hidden folders belong to tools, except .ci.
            folders[:] = [
                name for name in folders
                if name not in _SKIPPED_FOLDERS and not name.startswith("bazel-") and (name[0] != "." or name == ".ci")
            ]
            for name in files:
                path = os.path.join(folder, name)
                if name.endswith(_SUFFIXES) or ("." not in name and _is_script(path)):
                    yield os.path.relpath(path, self.root)

    def text(self, path):
        """The text of a file; bytes that are not UTF-8 are replaced."""
        if path not in self._texts:
            self._texts[path] = (self.root / path).read_text(encoding="utf-8", errors="replace")
        return self._texts[path]

    def lines(self, path):
        """The lines of a file without their ends."""
        return self.text(path).splitlines()

    def __contains__(self, path):
        """Whether there is a source of that path."""
        if self._known is None:
            self._known = frozenset(self.paths)
        return path in self._known

    def exists(self, path):
        """Whether there is a file or folder of that path, a source or not."""
        return (self.root / path).exists()

    def with_suffix(self, *suffixes):
        """The paths that end in one of the suffixes."""
        return [path for path in self.paths if path.endswith(suffixes)]


class FakeTree(SourceTree):
    """A tree for tests of checks: a dictionary of paths and texts."""

    def __init__(self, texts):  # pylint: disable=super-init-not-called
        self._texts = dict(texts)
        self.paths = sorted(self._texts)
        self._known = None

    def exists(self, path):
        return path in self._texts or any(other.startswith(path.rstrip("/") + "/") for other in self._texts)
