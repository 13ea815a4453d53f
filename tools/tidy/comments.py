"""Finds the comments and the text literals of a source."""

import re

# In C++ a text may hold `//`; a raw text is skipped as a whole.
_CPP_TOKEN = re.compile(
    r"""
      R"(?P<delimiter>[^()\s\\]{0,16})\(.*?\)(?P=delimiter)"
    | "(?P<literal>(?:\\.|[^"\\\n])*)"
    | '(?:\\.|[^'\\\n])+'
    | //(?P<comment>[^\n]*)
    """,
    re.VERBOSE | re.DOTALL,
)
_HASH_TOKEN = re.compile(r"""(?:^|(?<=\s))\#(?P<comment>[^\n]*)""", re.MULTILINE)
_DIGIT_SEPARATOR = re.compile(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")


def comments(path, text):
    """Yields (line, comment without its marker, whether the line has nothing else) for each comment."""
    is_cpp = path.endswith((".cc", ".h", ".proto"))
    if is_cpp:
        text = _DIGIT_SEPARATOR.sub("_", text)
    line, at = 1, 0
    for match in (_CPP_TOKEN if is_cpp else _HASH_TOKEN).finditer(text):
        if match.group("comment") is None:
            continue
        line += text.count("\n", at, match.start())
        at = match.start()
        begin = text.rfind("\n", 0, match.start()) + 1
        yield line, match.group("comment"), not text[begin:match.start()].strip()


def literals(text):
    """Yields (line, literal without its quotes) for each plain text literal of a C++ source."""
    text = _DIGIT_SEPARATOR.sub("_", text)
    line, at = 1, 0
    for match in _CPP_TOKEN.finditer(text):
        if match.group("literal"):
            line += text.count("\n", at, match.start())
            at = match.start()
            yield line, match.group("literal")
