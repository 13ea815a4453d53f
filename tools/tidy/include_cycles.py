"""Folders include each other in one direction only: no folder reaches itself through the includes of others.

A folder and its `internal` folder are one folder here. Tests may include anything, so they and
test-only headers do not count.
"""

import posixpath
import re

from tidy import build_files

_INCLUDE = re.compile(r'^\s*#\s*include\s+"fraktor/([^"]+)/[^"/]+"', re.MULTILINE)


def _folder(path):
    """The folder that a path counts for: `a/b` for `a/b/internal`, too."""
    return path.removesuffix("/internal")


def edges(tree):
    """The folders that each folder includes: a dictionary of folder to {other folder: a file that includes it}."""
    test_only = build_files.test_only_files(tree)
    found = {}
    for path in tree.with_suffix(".h", ".cc"):
        if path.endswith("_test.cc") or path in test_only:
            continue
        folder = _folder(posixpath.dirname(path))
        for other in map(_folder, _INCLUDE.findall(tree.text(path))):
            if other != folder:
                found.setdefault(folder, {}).setdefault(other, path)
    return found


def cycles(graph):
    """The groups of folders that reach each other, by Tarjan's algorithm; each a sorted tuple."""
    index, low, on_stack, stack, groups = {}, {}, set(), [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = []
            while True:
                member = stack.pop()
                on_stack.discard(member)
                group.append(member)
                if member == node:
                    break
            if len(group) > 1:
                groups.append(tuple(sorted(group)))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(groups)


def _describe(group, graph):
    lines = [f"{len(group)} folders include each other: {', '.join(group)}"]
    for folder in group:
        for other, path in sorted(graph.get(folder, {}).items()):
            if other in group:
                lines.append(f"  {folder} -> {other}, for example in {path}")
    return "\n".join(lines)


def check(tree, known):
    """Yields a text for each cycle that is not one of the `known` ones, and for each known one that is gone."""
    graph = edges(tree)
    found = cycles(graph)
    known = [tuple(sorted(group)) for group in known]
    for group in found:
        if group not in known:
            yield _describe(group, graph)
    for group in known:
        if group not in found:
            yield f"there is no cycle of exactly {', '.join(group)}; correct tools/tidy/exceptions.json"
