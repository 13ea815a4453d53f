#!/usr/bin/env python3
"""Checks what no compiler checks: the shape of lines, words, folders, targets, examples, links and requirements.

  tools/tidy/tidy.py                       every check; //tools/tidy:tidy_test runs it
  tools/tidy/tidy.py --since main          violations on lines that changed since a revision
  tools/tidy/tidy.py --list words          all violations of a check; of one folder with --list words actor/cell
  tools/tidy/tidy.py --update              lowers the exceptions to the violations that are left
  tools/tidy/tidy.py --update --may-grow   also raises them: only for merging work that was begun without these checks

tools/tidy/wrap.py wraps comments and Markdown that are too long, and tools/tidy/requirement_tags.py fills in the tests
of docs/requirements.md.

Folders that are not done yet have exceptions in tools/tidy/exceptions.json: numbers of violations, which may only go
down.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

# pylint: disable=wrong-import-position
from tidy import direct_deps
from tidy import header_examples
from tidy import header_owners
from tidy import include_cycles
from tidy import internal_headers
from tidy import internal_names
from tidy import line_length
from tidy import markdown_links
from tidy import one_definition
from tidy import public_headers
from tidy import ratchet
from tidy import requirement_tags
from tidy import source_tree
from tidy import words

EXCEPTIONS = "tools/tidy/exceptions.json"

# Checks that yield findings, which are counted by folder.
COUNTED = {
    "line_length": line_length.check,
    "words": words.check,
    "header_owners": header_owners.check,
    "internal_headers": internal_headers.check,
    "internal_names": internal_names.check,
    "public_headers": public_headers.check_visibility,
    "header_page": public_headers.check_page,
    "direct_deps": direct_deps.check,
    "header_examples": header_examples.check,
    "public_examples": public_headers.check_examples,
    "markdown_links": markdown_links.check,
    "one_definition": one_definition.check,
}


def problems(tree, exceptions):
    """Yields a text for each problem of the repository."""
    unknown = set(exceptions) - set(COUNTED) - {"include_cycles"}
    if unknown:
        yield f"{EXCEPTIONS}: there is no check {', '.join(sorted(unknown))}"
    for name, check in COUNTED.items():
        yield from ratchet.judge(name, check(tree), exceptions.get(name, {}))
    for text in include_cycles.check(tree, exceptions.get("include_cycles", [])):
        yield f"include_cycles: {text}"
    for text in requirement_tags.check(tree):
        yield f"requirement_tags: {text}"


def changed_lines(diff):
    """The (path, line) of the lines that `git diff -U0` says are new."""
    changed, path = set(), None
    for line in diff.splitlines():
        if line.startswith("+++ "):
            path = line[6:] if line.startswith("+++ b/") else None
        match = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)
        if match and path:
            first, count = int(match.group(1)), int(match.group(2) or 1)
            changed.update((path, first + i) for i in range(count))
    return changed


def _since(root, tree, revision):
    command = ["git", "diff", "-U0", revision, "--"]
    diff = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, errors="replace", check=True)
    changed = changed_lines(diff.stdout)
    found = sorted(f for check in COUNTED.values() for f in check(tree) if (f.path, f.line) in changed)
    print("\n".join(map(str, found)) or f"no violation on the lines that changed since {revision}")
    return 1 if found else 0


def _list(tree, name, folder):
    if name not in COUNTED:
        sys.exit(f"tools/tidy/tidy.py: there is no check {name}; there are {', '.join(COUNTED)}")
    for found in sorted(COUNTED[name](tree)):
        if folder in (None, found.folder):
            print(found)
    return 0


def _update(root, tree, exceptions, may_grow):
    new = {}
    for name, check in COUNTED.items():
        try:
            new[name] = ratchet.updated(name, check(tree), exceptions.get(name, {}), may_grow)
        except ValueError as error:
            sys.exit(f"tools/tidy/tidy.py: {error}")
    new["include_cycles"] = exceptions.get("include_cycles", [])
    (root / EXCEPTIONS).write_text(json.dumps(new, indent=2) + "\n", encoding="utf-8")
    return 0


def main():
    """Runs the command; gives its exit code."""
    parser = argparse.ArgumentParser(
        prog="tools/tidy/tidy.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", metavar="REV", help="only lines that changed since a revision")
    parser.add_argument("--list", nargs="+", metavar="NAME", help="the violations of a check, and of a folder")
    parser.add_argument("--update", action="store_true", help="lower the exceptions")
    parser.add_argument("--may-grow", action="store_true", help="with --update: raise exceptions too")
    options = parser.parse_args()

    # A test of Bazel runs in a folder of links; the repository is where they lead.
    root = pathlib.Path(__file__).resolve().parents[2]
    if not (root / "WORKSPACE.bazel").exists():
        sys.exit(f"tools/tidy/tidy.py: {root} is not the root of the repository; the test must not run remotely")
    start = time.monotonic()
    tree = source_tree.SourceTree(root)
    exceptions = json.loads((root / EXCEPTIONS).read_text(encoding="utf-8"))
    if options.since:
        return _since(root, tree, options.since)
    if options.list:
        return _list(tree, options.list[0], options.list[1] if len(options.list) > 1 else None)
    if options.update:
        return _update(root, tree, exceptions, options.may_grow)
    found = list(problems(tree, exceptions))
    print("\n\n".join(found) or "nothing to tidy up")
    if found:
        print("\ntools/tidy/tidy.py --since REV lists the violations on lines that changed")
    print(f"{len(tree.paths)} files, {time.monotonic() - start:.1f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
