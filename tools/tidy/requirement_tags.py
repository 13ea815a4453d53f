#!/usr/bin/env python3
"""Tests name the requirements that they prove, and docs/requirements.md says what each of them is.

A test carries the id in a comment, in its body or directly before it:

  // SCH-4, A62
  TEST(MailboxLimits, RefusesWhatIsAboveTheCapacity) {

Each id has a row in the page: the id, a sentence, and some tests that prove it. The sentence is written by hand.
`tools/tidy/requirement_tags.py` without arguments fills in the tests of rows that name none, or one that is gone.
"""

import argparse
import bisect
import dataclasses
import pathlib
import re
import sys

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tidy import comments  # pylint: disable=wrong-import-position
from tidy import source_tree  # pylint: disable=wrong-import-position

PAGE = "docs/requirements.md"
MAX_TESTS = 3

_ID = r"(?:PTH|GRD|SCH|PER|CLU)-\d+|[APRCG]\d{1,3}"
_TAG = re.compile(rf"(?<![\w-])({_ID})\b(?: to ({_ID})\b)?")
_NUMBERED = re.compile(r"(.*?)(\d+)$")
_CPP_TEST = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+),\s*(\w+)\)", re.MULTILINE)
_PYTHON_TEST = re.compile(r"^    def (test_\w+)\(", re.MULTILINE)
_ROW = re.compile(rf"^\|\s*({_ID})\s*\|\s*(.*?)\s*\|\s*([^|]*?)\s*\|$")


@dataclasses.dataclass(frozen=True)
class Tag:
    """An id in a test. `test` is the name of the test, such as `Inbox.KeepsTheOrder`; "" in a file without tests."""

    id: str
    path: str
    line: int
    test: str


def is_test_source(path):
    """Whether tags in a file count: a test, or a suite that tests are made of."""
    return path.endswith(("_test.cc", "_test.py")) or (path.endswith((".cc", ".h")) and "/testing/" in path)


def _ids(match):
    """The ids of a tag; `P2 to P4` are three."""
    first, last = match.group(1), match.group(2)
    if last is None:
        return [first]
    prefix, begin = _NUMBERED.match(first).groups()
    other, end = _NUMBERED.match(last).groups()
    return [f"{prefix}{n}" for n in range(int(begin), int(end) + 1)] if prefix == other else [first, last]


def _tests(path, text):
    """(first line, last line, name) of each test of a file, in order."""
    is_python = path.endswith(".py")
    found = []
    for match in (_PYTHON_TEST if is_python else _CPP_TEST).finditer(text):
        begin = text.count("\n", 0, match.start()) + 1
        close = len(text) if is_python else text.find("\n}", match.start())
        end = begin + text.count("\n", match.start(), close if close >= 0 else len(text)) + 1
        found.append((begin, end, match.group(1) if is_python else f"{match.group(1)}.{match.group(2)}"))
    return found


def tags(tree):
    """All tags of tests. A comment outside of a test belongs to the next one, or else to the last."""
    found = []
    for path in tree.paths:
        if not is_test_source(path):
            continue
        text = tree.text(path)
        if not _TAG.search(text):
            continue
        tests = _tests(path, text) or [(0, sys.maxsize, "")]
        begins = [begin for begin, _, _ in tests]
        for line, comment, _ in comments.comments(path, text):
            for match in _TAG.finditer(comment):
                at = bisect.bisect_right(begins, line) - 1
                is_inside = at >= 0 and line <= tests[at][1]
                owner = tests[at if is_inside else min(at + 1, len(tests) - 1)]
                found += [Tag(id, path, line, owner[2]) for id in _ids(match)]
    return found


def rows(text):
    """The rows of the page: (line, id, sentence, tests)."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _ROW.match(line)
        if match:
            found.append((number, match.group(1), match.group(2), re.findall(r"`([^`]+)`", match.group(3))))
    return found


def check(tree):
    """Yields a text for each tag without a row, and for each row that its tests do not carry."""
    if not tree.exists(PAGE):
        yield f"{PAGE} is missing"
        return
    all_tags = tags(tree)
    proven = {}
    for tag in all_tags:
        proven.setdefault(tag.id, set()).add(tag.test or None)
    page = rows(tree.text(PAGE))
    known = [row[1] for row in page]
    for tag in all_tags:
        if tag.id not in known:
            yield f"{tag.path}:{tag.line}: {tag.id} is not in {PAGE}: correct the id, or write its row"
    for line, id_, sentence, tests in page:
        if known.count(id_) > 1:
            yield f"{PAGE}:{line}: {id_} has more than one row"
        if not sentence.strip():
            yield f"{PAGE}:{line}: {id_} has no sentence"
        if not tests:
            yield f"{PAGE}:{line}: {id_} names no test; run tools/tidy/requirement_tags.py"
        for test in tests:
            if test not in proven.get(id_, ()):
                yield f"{PAGE}:{line}: no test `{test}` carries {id_}; run tools/tidy/requirement_tags.py"


def filled(tree):
    """The text of the page, with tests in each row: those that it names and that carry its id, or the first of all."""
    proven = {}
    for tag in tags(tree):
        named = proven.setdefault(tag.id, [])
        if tag.test and tag.test not in named:
            named.append(tag.test)
    lines = tree.text(PAGE).splitlines()
    for number, id_, sentence, tests in rows(tree.text(PAGE)):
        candidates = proven.get(id_, [])
        kept = [test for test in tests if test in candidates] or candidates[:MAX_TESTS]
        lines[number - 1] = f"| {id_} | {sentence} | {', '.join(f'`{test}`' for test in kept)} |"
    return "\n".join(lines) + "\n"


def main(arguments=None, root=pathlib.Path(__file__).resolve().parents[2]):
    """Fills in the tests of the page below `root`. Takes no arguments but --help."""
    argparse.ArgumentParser(
        prog="tools/tidy/requirement_tags.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter).parse_args(arguments)
    tree = source_tree.SourceTree(root)
    (root / PAGE).write_text(filled(tree), encoding="utf-8")


if __name__ == "__main__":
    main()
