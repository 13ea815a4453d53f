"""Comments, texts and Markdown use plain words: a sentence begins with its subject, and one thing has one name.

CONTRIBUTING.md has the rules for people. This check knows the phrases that a search finds reliably. Names of types and
functions are not words: `RemoteDoor` and `topology_board` pass, and so does everything between backquotes or quotes.
"""

import re

from tidy import comments
from tidy import finding

# A comment or sentence that begins with a relative clause or a genitive has no subject yet.
_BEGINNINGS = re.compile(r"(?:^\s*|[.:;!?]\s+)((?:What|Who|Whom|Whose|So many|So much|So long)\b(?![^.]*\?)|^Of\b)")

# Phrases, and what to write instead.
PHRASES = {
    r"(?:who(?:m|se)?|what)ever": "name the caller, the sender or the thread",
    r"who (?:has|have|had) asked": "the asker",
    r"who (?:asks|asked|waits|sends|calls)": "the asker, the waiter, the sender, the caller",
    r"what (?:is|was|are|were|has been|had been) (?:put off|put aside|held back)": "deferred, queued or pending work",
    r"(?:put|puts|putting) (?:it |them )?(?:off|aside)": "defer, queue",
    r"(?:made|make|makes|making) (?:it |them |him )?ready": "schedule, wake",
    r"(?:ring|rings|rang|rung) (?:a|the|its|his) bell": "wake",
    r"somebody else's": "stale; name the owner",
    r"(?:what|which) (?:it|he|she|they|the actor|the target) (?:is|are|was|were) at": "what it is doing",
    r"former self": "an earlier incarnation",
    r"questions?": "ask",
    r"inquir(?:y|ies)": "status report",
    r"farewells?": "hand-over; the last message before leaving",
    r"(?:estate|legacy)": "hand-over",
    r"last moment": "lease, expiry",
    r"dues": "lease, renewal",
    r"(?:doors?|doorways?|wardens?)": "lock, guard, admission check",
    r"ears?": "subscriber, listener",
    r"(?:nothing|somebody|anybody|everybody|nobody) (?:that|who|whom) (?:is|has|was|had) (?:it|him|them|nothing)":
        "name the subject",
}
_PHRASES = re.compile("|".join(rf"\b(?P<p{i}>{phrase})\b" for i, phrase in enumerate(PHRASES)), re.IGNORECASE)
_ADVICE = list(PHRASES.values())

_CODE = re.compile(r"`[^`]*`|\"[^\"]*\"")
_INDENTED = re.compile(r"\s{3,}\S")


def problems(text, is_comment=True):
    """Yields what is wrong with the words of a line."""
    text = _CODE.sub(" x ", text)
    for match in _BEGINNINGS.finditer(text.strip()) if is_comment else ():
        yield f'a sentence begins with "{match.group(1).strip()}"; begin with its subject'
    for match in _PHRASES.finditer(text):
        advice = _ADVICE[int(match.lastgroup[1:])]
        yield f'"{match.group(0)}"; better: {advice}'


def _texts(path, text):
    """Yields (line, text, whether it is a comment) of what people read.

    Examples in comments and code in Markdown are left out, and so are the texts of tests.
    """
    if path.endswith(".md"):
        in_code = False
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith("```"):
                in_code = not in_code
            elif not in_code:
                yield number, line.lstrip("#-*>| "), True
        return
    for line, comment, _ in comments.comments(path, text):
        if not _INDENTED.match(comment):
            yield line, comment, True
    if path.endswith((".cc", ".h")) and not path.endswith("_test.cc"):
        for line, literal in comments.literals(text):
            yield line, literal, False


def check(tree):
    """Yields a finding for each phrase."""
    for path in tree.paths:
        for line, text, is_comment in _texts(path, tree.text(path)):
            for problem in problems(text, is_comment):
                yield finding.Finding(path, line, problem)
