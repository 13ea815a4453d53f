"""A test compiles the example that a header begins with: it stands, line by line, in a source of docs/ or examples/.

An example is the first indented part of the comment at the top of a header; its paragraphs may stand in different
sources. Tests of docs/ compile the sources and check some headers more strictly.
"""

import re

from tidy import finding

_ITEM = re.compile(r"// (-|\d+\.) ")


def example(text):
    """The paragraphs of the first example of a header, each a list of lines without indentation."""
    paragraphs, current, in_list = [], [], False
    for line in text.splitlines():
        # The further lines of an item of a list are indented, too.
        in_list = bool(_ITEM.match(line)) or in_list and line.startswith("//  ")
        if in_list and not current and not paragraphs:
            continue
        if line.startswith("//   "):
            current.append(line[2:].strip())
        elif line == "//" and (current or paragraphs):
            if current:
                paragraphs.append(current)
            current = []
        elif current or paragraphs or not line.startswith("//"):
            break
    return paragraphs + ([current] if current else [])


def _stands_in(paragraph, sources, places):
    size = len(paragraph)
    return any(sources[s][i:i + size] == paragraph for s, i in places.get(paragraph[0], ()))


def check(tree):
    """Yields a finding for each header whose example is not compiled."""
    compiled = [path for path in tree.with_suffix(".cc") if path.startswith(("docs/", "examples/"))]
    sources = [[line.strip() for line in tree.lines(path)] for path in compiled]
    places = {}
    for s, lines in enumerate(sources):
        for i, line in enumerate(lines):
            places.setdefault(line, []).append((s, i))
    for path in tree.with_suffix(".h"):
        missing = [paragraph for paragraph in example(tree.text(path)) if not _stands_in(paragraph, sources, places)]
        if missing:
            yield finding.Finding(path, 1, f"no source of docs/ or examples/ compiles its example, `{missing[0][0]}`")
