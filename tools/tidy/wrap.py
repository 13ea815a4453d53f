#!/usr/bin/env python3
"""Wraps comments and Markdown at 100 columns, where a line is longer.

  tools/tidy/wrap.py actor/tree/internal/actor_tree.h CHANGELOG.md     some files
  tools/tidy/wrap.py actor utils/queue                        the sources below some folders
  tools/tidy/wrap.py --since main actor                       comments with lines that changed since a revision

A paragraph is wrapped as a whole if one of its lines is too long. Examples, tables and code stay as they
are, and so does a line break before which the next word would have had room: it is there on purpose.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import textwrap

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

# pylint: disable=wrong-import-position
from tidy import line_length
from tidy import source_tree

# Earlier lines were wrapped at this column.
_OLD_COLUMNS = 120

_COMMENT = re.compile(r"(\s*(?://|#) )(\S.*)$")
_NOT_PROSE = re.compile(r"clang-format|NOLINT|pylint:")
_ENTRY = re.compile(r"(?:[-*+]|\d+[.)]) ")
_BULLET = re.compile(r"(\s*)((?:[-*+]|\d+[.)]) )?(.*)$")


def _fill(text, first, rest):
    return textwrap.wrap(
        text, line_length.TEXT_COLUMNS, initial_indent=first, subsequent_indent=rest,
        break_long_words=False, break_on_hyphens=False)


def _paragraphs(lines):
    """Yields (begin, end) of the paragraphs of comments on lines of their own; an entry of a list is a paragraph."""
    begin = None
    for i, line in enumerate(lines + [""]):
        match = _COMMENT.match(line)
        is_prose = match and not _NOT_PROSE.match(match.group(2)) and not line.startswith("#!")
        joins = False
        if begin is not None:
            marker, rest = _indents(lines[begin])
            previous = lines[i - 1]
            columns = min(_OLD_COLUMNS, max(len(previous), line_length.TEXT_COLUMNS))
            if rest != marker:  # an entry of a list goes on where it is indented like its text
                joins = line.startswith(rest) and line[len(rest):len(rest) + 1].strip() != ""
            elif is_prose and match.group(1) == marker and not _ENTRY.match(match.group(2)):
                joins = len(previous) + 1 + len(match.group(2).split()[0]) > columns
        if begin is not None and not joins:
            yield begin, i
            begin = None
        if is_prose and begin is None:
            begin = i


def _indents(line):
    """What goes before the text in the first line of a paragraph, and in the others."""
    marker, text = _COMMENT.match(line).groups()
    entry = _ENTRY.match(text)
    return marker + (entry.group(0) if entry else ""), marker + " " * (entry.end() if entry else 0)


def wrap_comments(lines, changed=None):
    """The lines with their comments wrapped; only paragraphs with a line number in `changed`, if that is given."""
    result, at = [], 0
    for begin, end in _paragraphs(lines):
        result += lines[at:begin]
        paragraph = lines[begin:end]
        at = end
        is_long = any(len(line) > line_length.TEXT_COLUMNS for line in paragraph)
        is_long = is_long and all(line_length.can_be_broken(line) for line in paragraph)
        is_chosen = changed is None or any(number in changed for number in range(begin + 1, end + 1))
        if is_long and is_chosen:
            marker, rest = _indents(paragraph[0])
            texts = [paragraph[0][len(marker):]] + [line[len(rest):] for line in paragraph[1:]]
            paragraph = _fill(" ".join(text.strip() for text in texts), marker, rest)
        result += paragraph
    return result + lines[at:]


def wrap_markdown(lines, changed=None):
    """The lines of a page with the long ones wrapped, each by itself: a paragraph or an entry of a list."""
    result, in_code = [], False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        fits = len(line) <= line_length.TEXT_COLUMNS or not line_length.can_be_broken(line)
        is_chosen = changed is None or number in changed
        if in_code or fits or not is_chosen or line.lstrip().startswith(("|", "#", "<")):
            result.append(line)
            continue
        indent, bullet, text = _BULLET.match(line).groups()
        bullet = bullet or ""
        result += _fill(text, indent + bullet, indent + " " * len(bullet))
    return result


def wrapped(path, text, changed=None):
    """The text of a file with its comments or its prose wrapped."""
    wrap = wrap_markdown if path.endswith(".md") else wrap_comments
    return "\n".join(wrap(text.splitlines(), changed)) + "\n"


def main():
    """Wraps the files of the command line."""
    parser = argparse.ArgumentParser(
        prog="tools/tidy/wrap.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", help="files, or folders of sources, from the root of the repository")
    parser.add_argument("--since", metavar="REV", help="only what changed since a revision")
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    tree = source_tree.SourceTree(root)
    changed = None
    if options.since:
        from tidy import tidy  # pylint: disable=import-outside-toplevel
        command = ["git", "diff", "-U0", options.since, "--"]
        diff = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, errors="replace", check=True)
        changed = {}
        for path, line in tidy.changed_lines(diff.stdout):
            changed.setdefault(path, set()).add(line)
    chosen = [path.strip("/") for path in options.paths]
    for path in tree.paths:
        if not any(path == name or path.startswith(name + "/") for name in chosen):
            continue
        old = tree.text(path)
        new = wrapped(path, old, None if changed is None else changed.get(path, set()))
        if new != old:
            (root / path).write_text(new, encoding="utf-8")
            print(path)


if __name__ == "__main__":
    main()
