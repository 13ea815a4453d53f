"""A header in a folder `internal` declares its names in an internal namespace, such as `fraktor::actor_internal`.

So a program that writes one of these names writes the word `internal`, and such a name does not collide with a name of
the API. A namespace is internal if its name ends in `_internal`. These declarations may stand in the namespace of the
API, because they add no name to it: forward declarations, specializations, and definitions of members.
"""

import re

from tidy import finding
from tidy import internal_headers

_TOKEN = re.compile(
    r"""
      //[^\n]* | /\*.*?\*/
    | R"(?P<delimiter>[^()\s\\]{0,16})\(.*?\)(?P=delimiter)"
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+'
    | ^[ \t]*\#(?:\\\n|[^\n])*
    | << | (?P<token>[A-Za-z_]\w* | :: | \[\[ | \]\] | [{}();<>,=:])
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_DIGIT_SEPARATOR = re.compile(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")
_TYPES = ("class", "struct", "union", "enum")


def _is_word(token):
    return re.match(r"[A-Za-z_]", token) is not None


def _is_in_template_parameters(words):
    return words[:1] == ["template"] and words.count("<") > words.count(">")


def _statements(text):
    """Yields (line, names of the namespaces, tokens, how it ends) of the statements outside of types and functions."""
    text = _DIGIT_SEPARATOR.sub("_", text)
    scopes, words, start = [], [], 0  # scopes: the names of a namespace; None for other braces
    values = 0  # the open braces of a value such as `size_t{1}` in the parameters of a template
    for match in _TOKEN.finditer(text):
        token = match.group("token")
        if token is None:
            continue
        if not words:
            start = match.start()
        if values or (token == "{" and _is_in_template_parameters(words)):
            values += (token == "{") - (token == "}")
        elif token == "{":
            # `namespace a = b` has no braces, and `using namespace` neither.
            is_namespace = "namespace" in words
            if words and not is_namespace and None not in scopes:
                yield text.count("\n", 0, start) + 1, sum(scopes, []), words, token
            scopes.append([word for word in words if _is_word(word)] if is_namespace else None)
            words = []
        elif token == "}":
            if scopes:
                scopes.pop()
            words = []
        elif token == ";":
            if words and None not in scopes:
                yield text.count("\n", 0, start) + 1, sum(scopes, []), words, token
            words = []
        else:
            words.append(token)


def _is_macro(word):
    """Whether a word that has parentheses declares nothing: `alignas`, `__attribute__`, or a macro."""
    return word == "alignas" or word.startswith("__") or (word.isupper() and "_" in word)


def _without_arguments(words):
    """Without template arguments, attributes and macros; `<>` marks arguments."""
    kept, depth, in_attribute, parentheses = [], 0, False, 0
    for word in words:
        if parentheses or (word == "(" and kept and _is_macro(kept[-1])):
            if not parentheses:
                kept.pop()
            parentheses += (word == "(") - (word == ")")
        elif word in ("[[", "]]"):
            in_attribute = word == "[["
        elif word == "<" and not in_attribute:
            depth += 1
        elif word == ">" and depth and not in_attribute:
            depth -= 1
            if not depth:
                kept.append("<>")
        elif not depth and not in_attribute:
            kept.append(word)
    return kept


def _new_name(words, end):
    """The name that a statement adds to its namespace; None if it adds none."""
    words = _without_arguments(words)
    if words[:1] == ["template"]:
        words = words[2:] if words[1:2] == ["<>"] else words[1:]
    if not words or words[0] in ("static_assert", "namespace"):
        return None
    is_type = any(word in _TYPES for word in words[:2])
    if is_type and "(" not in words:
        if end == ";" and "=" not in words:
            return None  # a forward declaration
        before = words[:words.index(":")] if ":" in words else words
        if before[-1:] == ["<>"]:
            return None  # a specialization
        if before[-1:] == ["final"]:
            before = before[:-1]
        # A type within a type adds no name.
        return None if before[-2:-1] == ["::"] else before[-1]
    if words[0] == "using":
        return words[1] if "=" in words else words[-1]
    # A function or a variable: its name is before the parameters or the value.
    ends = [words.index(token) for token in ("(", "=") if token in words]
    declared = words[:min(ends)] if ends else words
    if "operator" in declared:
        declared = declared[:declared.index("operator") + 1]
    elif declared[-1:] == ["<>"]:
        return None  # a specialization
    if len(declared) > 2 and declared[-2] == "::":
        return None  # a member of a class
    return declared[-1] if declared and _is_word(declared[-1]) else None


def check(tree):
    """Yields a finding for each name that an internal header declares in a namespace of the API."""
    for path in tree.with_suffix(".h"):
        if not internal_headers.is_internal(path):
            continue
        for line, namespaces, words, end in _statements(tree.text(path)):
            if any(name.endswith("_internal") for name in namespaces):
                continue
            name = _new_name(words, end)
            if name is not None:
                yield finding.Finding(path, line, f"{name} is in no namespace such as fraktor::actor_internal")
