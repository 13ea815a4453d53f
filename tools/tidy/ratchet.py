"""Compares the violations of a check with the exceptions for folders that are not done yet.

An exception is a number: so many violations may the folder have, and no more. A folder without one may have none. An
exception that a folder no longer needs is an error, so that the list gets shorter.
"""

MAX_SHOWN = 12


def counts(findings):
    """The number of findings by folder."""
    found = {}
    for entry in findings:
        found[entry.folder] = found.get(entry.folder, 0) + 1
    return found


def judge(name, findings, limits):
    """Yields a text for each folder with more violations than its limit, and for each limit that is not needed."""
    by_folder = {}
    for entry in findings:
        by_folder.setdefault(entry.folder, []).append(entry)
    for folder, entries in sorted(by_folder.items()):
        limit = limits.get(folder, 0)
        if len(entries) > limit:
            shown = [f"  {entry}" for entry in sorted(entries)[:MAX_SHOWN]]
            if len(entries) > MAX_SHOWN:
                shown.append(f"  and {len(entries) - MAX_SHOWN} more: tools/tidy/tidy.py --list {name} {folder}")
            yield "\n".join([f"{name}: {folder} has {len(entries)} violations; at most {limit} are excepted"] + shown)
    for folder in sorted(limits):
        if folder not in by_folder:
            yield f"{name}: {folder} has no violation; remove its exception, or run tools/tidy/tidy.py --update"


def updated(name, findings, limits, may_grow=False):
    """The limits that fit the findings. ValueError if the check has more violations than all of its limits allow."""
    new = counts(findings)
    count, allowed = sum(new.values()), sum(limits.values())
    if count > allowed and not may_grow:
        raise ValueError(f"{name}: {count} violations, and the exceptions allow {allowed}; correct the new ones first")
    return dict(sorted(new.items()))
