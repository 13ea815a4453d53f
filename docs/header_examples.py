#!/usr/bin/env python3
"""Checks that the example which a public header begins with is code that compiles: it stands in a file of examples.

Usage: header_examples.py [--all] PATHS SOURCE... -- HEADER...      from the repository's root

PATHS is a file with include paths, a line each; headers are named as programs include them.

An example is the first indented part of the comment at the top of a header, or with --all each indented part that an empty line
goes before. Its paragraphs stand, line by line but for the indentation, in one of the sources.
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


def examples(header):
    """The paragraphs of all examples."""
    paragraphs, current, may_begin = [], [], False
    for line in header.splitlines():
        if not line.startswith("//"):
            break
        if line.startswith("//   ") and (current or may_begin):
            current.append(line[2:].strip())
        elif current:
            paragraphs.append(current)
            current = []
        may_begin = line == "//"
    return paragraphs + ([current] if current else [])


def stands_in(paragraph, lines):
    size = len(paragraph)
    return any(lines[i : i + size] == paragraph for i in range(len(lines) - size + 1))


def main():
    words = sys.argv[1:]
    find = examples if words[0] == "--all" else example
    words = words[1:] if words[0] == "--all" else words
    at = words.index("--")
    include_paths = pathlib.Path(words[0]).read_text().split()
    sources = [[line.strip() for line in pathlib.Path(s).read_text().splitlines()] for s in words[1:at]]
    failures, checked = [], 0
    for header in words[at + 1 :]:
        found = [path for path in (pathlib.Path(p, header) for p in include_paths) if path.exists()]
        if not found:
            failures.append("%s: is in none of the include paths" % header)
            continue
        paragraphs = find(found[0].read_text())
        if not paragraphs:
            failures.append("%s: has no example at its top" % header)
        for paragraph in paragraphs:
            checked += 1
            if not any(stands_in(paragraph, lines) for lines in sources):
                failures.append("%s: the part of its example that begins with `%s` is not in %s"
                                % (header, paragraph[0], ", ".join(words[1:at])))
    print("\n".join(failures) or "%d parts of examples are in the files that compile" % checked)
    sys.exit(1 if failures or not checked else 0)


if __name__ == "__main__":
    main()
