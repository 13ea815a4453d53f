"""The headers of a folder that programs must not include are in its folder `internal`. Three rules keep them inside:

- A target whose headers are all internal is not public: programs cannot depend on it. A public target may contain some
  of them beside a header of the API, whose sources need them.
- A header of the API does not include internal headers of another folder: a program would then include them, too.
  `INLINED` names the headers that must, because they inline the way of a message.
- Sources include internal headers of their own room, and of `utils`, which is the foundation of all rooms except
  examples. A room is a folder of the root, such as `actor`. Tests in docs/ and benchmarks are free: they compile the
  examples of internal headers, and measure them.

Inside of a room, sources and internal headers include what they need.
"""

import posixpath
import re

from tidy import build_files
from tidy import finding

# The headers of the API that include internal headers of other folders. ARCHITECTURE.md says why.
INLINED = {
    "actor/context/actor_context.h": (
        "actor/ask/internal/ask_source.h",
        "actor/ask/internal/reply_promise.h",
        "actor/send/internal/actor_worker.h",
        "actor/slot/internal/actor_lifecycle.h",
        "actor/slot/internal/actor_slot.h",
    ),
    "actor/message/envelope.h": ("utils/queue/internal/inbox.h",),
    "actor/ref/actor_ref.h": ("utils/table/internal/table_slot.h",),
    "actor/system/actor_system.h": ("actor/ask/internal/ask_source.h",),
    "actor/typed/typed_context.h": (
        "actor/ask/internal/ask_source.h",
        "actor/send/internal/actor_worker.h",
    ),
}

_FOUNDATION = "utils"
_FREE = ("docs/", "benchmarks/")
_PUBLIC = "//visibility:public"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"fraktor/([^"]+)"', re.MULTILINE)


def is_internal(path):
    """Whether programs must not include a header."""
    return posixpath.basename(posixpath.dirname(path)) == "internal"


def _folder(path):
    """The folder that a file belongs to: `a/b` for files of `a/b/internal`, too."""
    return posixpath.dirname(path).removesuffix("/internal")


def _room(path):
    return path.partition("/")[0]


def _may_know(path, room):
    """Whether a source may include internal headers of a room."""
    return _room(path) == room or (room == _FOUNDATION and not path.startswith("examples/"))


def _public_targets(tree):
    for rule in build_files.rules(tree):
        if not rule.kind.endswith("cc_library") or _PUBLIC not in (rule.attributes.get("visibility") or []):
            continue
        headers = build_files.files(rule, "hdrs", tree) + build_files.files(rule, "textual_hdrs", tree)
        if headers and all(map(is_internal, headers)):
            yield finding.Finding(rule.path, rule.line, f"{rule.label} is public and has only internal headers")


def _includes(tree):
    test_only = build_files.test_only_files(tree)
    for path in tree.with_suffix(".h", ".cc"):
        if path.startswith(_FREE):
            continue
        inlined = set(INLINED.get(path, ()))
        is_of_api = path.endswith(".h") and not is_internal(path) and path not in test_only
        for match in _INCLUDE.finditer(tree.text(path)):
            header = match.group(1)
            if not is_internal(header) or _folder(header) == _folder(path):
                continue
            line = tree.text(path).count("\n", 0, match.start()) + 1
            if not _may_know(path, _room(header)):
                yield finding.Finding(path, line, f"{header} is internal to {_room(header)}")
            elif header in inlined:
                inlined.remove(header)
            elif is_of_api:
                yield finding.Finding(path, line, f"{header} is internal to {_folder(header)}, and programs include "
                                      f"{posixpath.basename(path)}")
        for header in sorted(inlined):
            yield finding.Finding(path, 0, f"does not include {header}; remove it from INLINED")


def check(tree):
    """Yields a finding for each internal header that is visible where it must not be."""
    yield from _public_targets(tree)
    yield from _includes(tree)
