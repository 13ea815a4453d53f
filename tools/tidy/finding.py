"""One violation of a rule."""

import dataclasses
import posixpath


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    """A violation, at a line of a file; line 0 means the file as a whole."""

    path: str
    line: int
    text: str

    @property
    def folder(self):
        """The folder that the violation is counted for; `.` is the root."""
        return posixpath.dirname(self.path) or "."

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}" if self.line else f"{self.path}: {self.text}"
