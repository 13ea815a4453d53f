#!/usr/bin/env python3
"""Checks that the example which a public header begins with is code that compiles: it stands in a file of examples.

Usage: header_examples.py PATHS SOURCE... -- HEADER...      from the repository's root

PATHS is a file with include paths, a line each; headers are named as programs include them.

An example is the first indented part of the comment at the top of a header. Its paragraphs stand, line by line but for the indentation, in
one of the sources.
"""

import pathlib
import sys


def example(header):
    """The paragraphs of the first example, each a list of lines without indentation."""
    paragraphs, current = [], []
    for line in header.splitlines():
        if line.startswith("//   "):
            current.append(line[2:].strip())
        elif line == "//" and (current or paragraphs):
            if current:
                paragraphs.append(current)
            current = []
        elif current or paragraphs or not line.startswith("//"):
            break
    return paragraphs + ([current] if current else [])


def stands_in(paragraph, lines):
    size = len(paragraph)
    return any(lines[i : i + size] == paragraph for i in range(len(lines) - size + 1))


def main():
    at = sys.argv.index("--")
    include_paths = pathlib.Path(sys.argv[1]).read_text().split()
    sources = [[line.strip() for line in pathlib.Path(s).read_text().splitlines()] for s in sys.argv[2:at]]
    failures, checked = [], 0
    for header in sys.argv[at + 1 :]:
        found = [path for path in (pathlib.Path(p, header) for p in include_paths) if path.exists()]
        if not found:
            failures.append("%s: is in none of the include paths" % header)
            continue
        paragraphs = example(found[0].read_text())
        if not paragraphs:
            failures.append("%s: has no example at its top" % header)
        for paragraph in paragraphs:
            checked += 1
            if not any(stands_in(paragraph, lines) for lines in sources):
                failures.append("%s: the part of its example that begins with `%s` is not in %s"
                                % (header, paragraph[0], ", ".join(sys.argv[2:at])))
    print("\n".join(failures) or "%d parts of examples are in the files that compile" % checked)
    sys.exit(1 if failures or not checked else 0)


if __name__ == "__main__":
    main()
