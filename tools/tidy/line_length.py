"""Lines are short enough to be read side by side: 120 columns of code, 100 columns of comments and Markdown.

Exempt are lines that cannot be broken: links, includes, include guards and tables. Code in Markdown and in comments,
which is indented by three columns or more, may have 120 columns.
"""

import re

from tidy import finding

CODE_COLUMNS = 120
TEXT_COLUMNS = 100

_CANNOT_BE_BROKEN = re.compile(r"https?://|^\s*#\s*(?:include|ifndef|define|endif)\b|^#!|^\s*// (?:\||NOLINT)")
_HASH_COMMENT = re.compile(r"\s*#(?! {3})")
_CPP_COMMENT = re.compile(r"\s*//(?! {3})")
_FENCE = re.compile(r"\s*```")


def can_be_broken(line):
    """Whether a line could be made shorter: it is no link, include, table or remark to a tool."""
    return not _CANNOT_BE_BROKEN.search(line)


def _limits_of_markdown(lines):
    """Yields the limit of each line; None for tables."""
    in_code = False
    for line in lines:
        if _FENCE.match(line):
            in_code = not in_code
        yield CODE_COLUMNS if in_code else None if line.lstrip().startswith("|") else TEXT_COLUMNS


def _limits_of_code(path, lines):
    comment = _CPP_COMMENT if path.endswith((".cc", ".h", ".proto")) else _HASH_COMMENT
    for line in lines:
        yield TEXT_COLUMNS if comment.match(line) else CODE_COLUMNS


def check(tree):
    """Yields a finding for each line that is too long."""
    for path in tree.paths:
        lines = tree.lines(path)
        limits = _limits_of_markdown(lines) if path.endswith(".md") else _limits_of_code(path, lines)
        for number, (line, limit) in enumerate(zip(lines, limits), 1):
            if limit is not None and len(line) > limit and can_be_broken(line):
                yield finding.Finding(path, number, f"{len(line)} columns; at most {limit}")
