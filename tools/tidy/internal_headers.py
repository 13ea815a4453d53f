"""A target whose headers are all internal is not public: programs cannot depend on it.

The headers of a folder that programs must not include are in its folder `internal`. A public target may contain some of
them beside a header of the API, whose sources need them.
"""

import posixpath

from tidy import build_files
from tidy import finding

_PUBLIC = "//visibility:public"


def is_internal(path):
    """Whether programs must not include a header."""
    return posixpath.basename(posixpath.dirname(path)) == "internal"


def check(tree):
    """Yields a finding for each public library that has only internal headers."""
    for rule in build_files.rules(tree):
        if not rule.kind.endswith("cc_library") or _PUBLIC not in (rule.attributes.get("visibility") or []):
            continue
        headers = build_files.files(rule, "hdrs", tree) + build_files.files(rule, "textual_hdrs", tree)
        if headers and all(map(is_internal, headers)):
            yield finding.Finding(rule.path, rule.line, f"{rule.label} is public and has only internal headers")
