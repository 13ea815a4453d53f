"""A target depends directly on the owner of each header that its sources include.

clang's layering_check finds the same, but only where clang compiles everything, which takes very long. This check reads
the BUILD files. A header of the repository counts as reachable if it belongs to

- the target itself,
- a target in `deps`,
- a library that an umbrella or an alias in `deps` exports, or
- a proto library in `deps`, for its generated headers.

Headers of other repositories are not checked.
"""

import re

from tidy import build_files
from tidy import finding

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"fraktor/([^"]+)"', re.MULTILINE)
_SOURCES = ("srcs", "hdrs", "textual_hdrs")
_OF_PROTO = {"fraktor_cc_proto_library": (".pb.h",), "cc_grpc_library": (".pb.h", ".grpc.pb.h")}


def _is_cc(rule):
    return "cc_" in rule.kind and rule.kind not in _OF_PROTO and rule.kind not in build_files.EXPORTERS


def _headers(rule, tree):
    """The headers that others may include from a target."""
    if rule.kind in _OF_PROTO:
        stems = [path.removesuffix(".proto") for path in build_files.files(rule, "srcs", tree)]
        return [stem + suffix for stem in stems for suffix in _OF_PROTO[rule.kind]]
    return build_files.files(rule, "hdrs", tree) + build_files.files(rule, "textual_hdrs", tree)


def missing(tree):
    """Yields (rule, path of the source, line, header, owners) for each header that a target includes without a dep."""
    rules = {rule.label: rule for rule in build_files.rules(tree)}
    owners = {}
    for label, rule in rules.items():
        if _is_cc(rule) or rule.kind in _OF_PROTO:
            for header in _headers(rule, tree):
                owners.setdefault(header, []).append(label)
    exported = {label: build_files.exported(label, rules) for label in rules}
    for label, rule in rules.items():
        if not _is_cc(rule):
            continue
        sources = [path for attribute in _SOURCES for path in build_files.files(rule, attribute, tree)]
        reachable = {label}.union(*(exported.get(dep, {dep}) for dep in build_files.labels(rule, "deps")))
        for path in sources:
            if path not in tree:
                continue
            for match in _INCLUDE.finditer(tree.text(path)):
                header = match.group(1)
                if header not in sources and reachable.isdisjoint(owners.get(header, ())):
                    line = tree.text(path).count("\n", 0, match.start()) + 1
                    yield rule, path, line, header, owners.get(header, [])


def check(tree):
    """Yields a finding for each header that a target includes without a direct dep."""
    for rule, path, line, header, owners in missing(tree):
        if owners:
            text = f"{rule.label} includes {header} and has no dep {' or '.join(sorted(owners))}"
        else:
            text = f"{rule.label} includes {header}, which belongs to no library"
        yield finding.Finding(path, line, text)
