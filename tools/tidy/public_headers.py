"""Programs can include each header of the API, and each of these headers shows how to use it.

Headers outside of folders `internal` are the API. In the rooms that `_ROOMS` names, each of them belongs to a public
target or to one that a public umbrella exports, and docs/headers.md says what programs include it for; headers that
only tests have are free. In all rooms, a header that programs can include begins with an example, which
header_examples.py compares with the sources that compile it. integration/ has programs of others, and their headers are
no API.
"""

import re

from tidy import build_files
from tidy import finding
from tidy import header_examples
from tidy import header_owners
from tidy import internal_headers

_PUBLIC = "//visibility:public"
# The rooms that have folders `internal`.
_ROOMS = ("actor/", "utils/")
_PAGE = "docs/headers.md"
_ROW = re.compile(r"\| `([^`]+\.h)` \|")


def _public_labels(tree):
    """The targets whose headers programs may include."""
    by_label = {rule.label: rule for rule in build_files.rules(tree)}
    found = set()
    for label, rule in by_label.items():
        if _PUBLIC in (rule.attributes.get("visibility") or []):
            found |= build_files.exported(label, by_label)
    return found


def _of_api(tree):
    """Yields (path, whether a program may include it) for each header outside of folders `internal`."""
    public, owners = _public_labels(tree), header_owners.owners(tree)
    for path in tree.with_suffix(".h"):
        if not internal_headers.is_internal(path):
            yield path, any(rule.label in public for rule in owners.get(path, ()))


def check_visibility(tree):
    """Yields a finding for each header of the API that programs cannot include."""
    test_only = build_files.test_only_files(tree)
    for path, is_public in _of_api(tree):
        if path.startswith(_ROOMS) and not is_public and path not in test_only:
            yield finding.Finding(path, 1, "no public target has or exports it; make its target public, or move the "
                                  "header to the folder `internal`")


def check_page(tree):
    """Yields a finding for each header that docs/headers.md lacks, and for each row without a header of the API."""
    test_only = build_files.test_only_files(tree)
    api = {path for path, is_public in _of_api(tree)
           if is_public and path.startswith(_ROOMS) and path not in test_only}
    listed = set()
    for line, text in enumerate(tree.lines(_PAGE) if _PAGE in tree else [], 1):
        row = _ROW.match(text)
        if row is None:
            continue
        if row.group(1) not in api or row.group(1) in listed:
            yield finding.Finding(_PAGE, line, f"{row.group(1)} is no header of the API, or has another row")
        listed.add(row.group(1))
    for path in sorted(api - listed):
        yield finding.Finding(path, 1, f"programs include it, and {_PAGE} does not say for what")


def check_examples(tree):
    """Yields a finding for each header without an example that programs can include."""
    for path, is_public in _of_api(tree):
        if is_public and not path.startswith("integration/") and not header_examples.example(tree.text(path)):
            yield finding.Finding(path, 1, "programs include it, and its first comment has no example")
