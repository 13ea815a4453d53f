"""A name in a namespace means one type: no two headers or sources define a type of the same full name.

The compiler sees one of them at a time, and the linker keeps one of two inline functions of the same name. Types in
unnamed namespaces and types within types do not count. Two tests are two programs, so a type of the product must be
one of those that collide.
"""

import re

from tidy import build_files
from tidy import finding

_TOKEN = re.compile(
    r"""
      //[^\n]* | /\*.*?\*/
    | R"(?P<delimiter>[^()\s\\]{0,16})\(.*?\)(?P=delimiter)"
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+'
    | ^[ \t]*\#(?:\\\n|[^\n])*
    | (?P<token>[A-Za-z_]\w* | :: | [{}();<>,=:])
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_DIGIT_SEPARATOR = re.compile(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")
_KINDS = ("class", "struct", "union", "enum")


def _namespace(words):
    """The name of `namespace a::inline b {`; "" is an unnamed one. Inline namespaces count as their parents."""
    parts, is_inline = [], False
    for word in words[words.index("namespace") + 1:]:
        if word == "inline":
            is_inline = True
        elif word != "::":
            if not is_inline:
                parts.append(word)
            is_inline = False
    is_inline_itself = "inline" in words[:words.index("namespace")]
    return None if is_inline_itself or not words[words.index("namespace") + 1:] else "::".join(parts)


def _type_name(words):
    """The name of the type that begins with these words; a specialization has its arguments in it."""
    depth, at = 0, None
    for i, word in enumerate(words):
        depth += (word == "<") - (word == ">")
        if word in _KINDS and depth == 0 and at is None:
            at = i
        elif word in ("=", ")") and depth == 0:
            return None  # an initializer or a function
    if at is None:
        return None
    rest = words[at + 1:]
    if rest and rest[0] in _KINDS:  # enum class
        rest = rest[1:]
    # Attributes and macros come first. The name is the last word before bases or arguments.
    name, i = None, 0
    while i < len(rest) and rest[i] not in (":", "<", "final"):
        if rest[i] == "(":
            while i < len(rest) and rest[i] != ")":
                i += 1
        elif re.match(r"[A-Za-z_]", rest[i]):
            name = rest[i]
        elif rest[i] == "::":
            return None  # a member type that is defined outside of its class
        i += 1
    if name is None:
        return None
    if i < len(rest) and rest[i] == "<":
        arguments, depth = "", 0
        for word in rest[i:]:
            depth += (word == "<") - (word == ">")
            arguments += word
            if depth == 0:
                break
        name += arguments
        # A partial specialization may differ in its constraints alone.
        if "requires" in words[:at]:
            name += " requires " + " ".join(words[:at])
    return name


def definitions(text):
    """Yields (line, full name) of the types that a source defines in named namespaces."""
    text = _DIGIT_SEPARATOR.sub("_", text)
    scopes, words, line, at = [], [], 1, 0  # scopes: names of namespaces; None for anything else
    for match in _TOKEN.finditer(text):
        token = match.group("token")
        if token is None:
            continue
        if token == "{":
            scope = None
            if "namespace" in words and "=" not in words:
                scope = _namespace(words)
                # An inline namespace adds nothing to the name; an unnamed one hides all within.
                is_unnamed = not words[words.index("namespace") + 1:]
                scopes.append(None if is_unnamed else scope or "")
            else:
                name = _type_name(words) if None not in scopes else None
                if name:
                    line += text.count("\n", at, match.start())
                    at = match.start()
                    yield line, "::".join([scope for scope in scopes if scope] + [name])
                scopes.append(None)
            words = []
        elif token == "}":
            if scopes:
                scopes.pop()
            words = []
        elif token == ";":
            words = []
        else:
            words.append(token)


def check(tree):
    """Yields a finding for each definition of a type that another file defines too."""
    test_only = build_files.test_only_files(tree)
    found = {}
    for path in tree.with_suffix(".h", ".cc"):
        if path.endswith("_test.cc") or path.startswith(("integration/", "third_party/")):
            continue
        for line, name in definitions(tree.text(path)):
            found.setdefault(name, []).append((path in test_only, path, line))
    for name, places in found.items():
        (is_test, path, line), *others = sorted(places)
        # The main programs of examples are not linked with each other.
        are_programs = [entry[1].endswith(".cc") and path.endswith(".cc") for entry in others]
        others = [entry for entry, are in zip(others, are_programs) if entry[1] != path and not are]
        for _, other, other_line in [] if is_test else others:
            yield finding.Finding(other, other_line, f"{name} is also a type of {path}:{line}")
