"""A header belongs to one library: an umbrella target exports other targets, and lists none of their headers."""

import posixpath

from tidy import build_files
from tidy import finding


def owners(tree):
    """The libraries that list each header, by its path."""
    found = {}
    for rule in build_files.rules(tree):
        if rule.kind.endswith("cc_library"):
            for path in build_files.files(rule, "hdrs", tree) + build_files.files(rule, "textual_hdrs", tree):
                found.setdefault(path, []).append(rule)
    return found


def check(tree):
    """Yields a finding for each header that two libraries list."""
    for path, rules in sorted(owners(tree).items()):
        if len(rules) > 1:
            labels = ", ".join(rule.label for rule in rules)
            yield finding.Finding(posixpath.join(posixpath.dirname(path), "BUILD.bazel"), rules[1].line,
                                  f"{posixpath.basename(path)} belongs to {labels}")
