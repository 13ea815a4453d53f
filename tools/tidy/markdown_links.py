"""Links of Markdown pages lead somewhere: to a file or folder of the repository, and to a heading of a page.

Addresses of other sites are not fetched.
"""

import posixpath
import re

from tidy import finding

_LINK = re.compile(r"(?<!\!)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)|!\[[^\]]*\]\(([^()\s]+)\)")
_OTHER_SITE = re.compile(r"[a-z][a-z0-9+.-]*:")
_HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*$")
_CODE = re.compile(r"`[^`]*`")


def _text_lines(text):
    """Yields (number, line) of the lines that are not code."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield number, line


def anchors(text):
    """The anchors of the headings of a page, as GitHub makes them."""
    found, counts = set(), {}
    for _, line in _text_lines(text):
        match = _HEADING.match(line)
        if not match:
            continue
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match.group(1)).lower()
        anchor = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        count = counts.get(anchor, 0)
        counts[anchor] = count + 1
        found.add(f"{anchor}-{count}" if count else anchor)
    return found


def check(tree):
    """Yields a finding for each link that leads nowhere."""
    for path in tree.with_suffix(".md"):
        for number, line in _text_lines(tree.text(path)):
            for match in _LINK.finditer(_CODE.sub("code", line)):
                target = match.group(1) or match.group(2)
                if _OTHER_SITE.match(target):
                    continue
                file, _, anchor = target.partition("#")
                other = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
                if not tree.exists(other):
                    yield finding.Finding(path, number, f"the link {target} leads to no file")
                elif anchor and other.endswith(".md") and anchor not in anchors(tree.text(other)):
                    yield finding.Finding(path, number, f"the link {target} leads to no heading of {other}")
