#!/usr/bin/env python3
"""Checks that C++ snippets in Markdown pages are code that compiles: each stands, to the letter, in the file it names.

Usage: snippets_test.py PAGE...      from the repository's root

A snippet is preceded by a line `<!-- from path/to/file.cc -->`.
"""

import pathlib
import re
import sys


def snippets(text):
    """Yields (file or None, code) for each ```cpp block."""
    pattern = r"(?:<!-- from (\S+) -->\s*\n)?```cpp\n(.*?)```"
    for match in re.finditer(pattern, text, re.DOTALL):
        yield match.group(1), match.group(2)


def main():
    failures, checked = [], 0
    for page in sys.argv[1:]:
        for source, code in snippets(pathlib.Path(page).read_text()):
            checked += 1
            first_line = code.strip().splitlines()[0]
            if source is None:
                failures.append("%s: the snippet `%s` does not say which file it is from" % (page, first_line))
            elif code not in pathlib.Path(source).read_text():
                failures.append("%s: the snippet `%s` is not, to the letter, in %s" % (page, first_line, source))
    print("\n".join(failures) or "%d snippets are in the files that they name" % checked)
    if not checked:
        failures.append("no snippet found")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
