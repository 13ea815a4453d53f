"""The command tools/mutate."""

import argparse
import os
import subprocess
import sys

from endurance import rooms

_DESCRIPTION = """\
Breaks a room of the repository on purpose, in one way after the other, and shows which tests notice.

  tools/mutate persistence
  tools/mutate persistence --only skip_sync --only lose_answer
  tools/mutate persistence --list       the mutations; runs none

The mutations are in the code, as calls of IsMutated, and are compiled only in a build with
--define=fraktor_mutations=1, which this command makes. Exits with 1 if a test fails without a mutation, or if no test
notices one. docs/mutations.md has the table.
"""
BUILD_ARGUMENTS = ["--define=fraktor_mutations=1"]
# A test that a mutation keeps waiting has noticed it.
MAX_SECONDS = 300


def passes(folder, test, mutation, max_seconds=MAX_SECONDS):
    """Whether a test passes with a mutation; with none if it is empty."""
    environment = {**os.environ, **test.get("env", {}), "FRAKTOR_MUTATION": mutation}
    command = [rooms.program(folder, test["target"])]
    if "filter" in test:
        command.append(f"--gtest_filter={test['filter']}")
    try:
        done = subprocess.run(
            command, env=environment, cwd=rooms.REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            timeout=max_seconds, check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def name_of(test):
    """What a table calls a test: store_simulation_test."""
    return test["target"].partition(":")[2]


def parse(arguments):
    """The options of a command line."""
    parser = argparse.ArgumentParser(
        prog="tools/mutate", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("room", choices=sorted(rooms.rooms("mutate")), help="a room of rooms.json")
    parser.add_argument("--only", action="append", metavar="MUTATION", help="only this one; may be given again")
    parser.add_argument("--list", action="store_true", help="print the mutations, and run none")
    options = parser.parse_args(arguments)
    known = rooms.rooms("mutate")[options.room]["mutations"]
    for name in options.only or []:
        if name not in known:
            parser.error(f'there is no mutation "{name}" in {options.room}; there are {", ".join(known)}')
    return options


def main():
    """Runs the command; gives its exit code."""
    options = parse(sys.argv[1:])
    room = rooms.rooms("mutate")[options.room]
    if options.list:
        for name, what in room["mutations"].items():
            print(f"{name}: {what}")
        return 0
    tests = room["tests"]
    folder = rooms.build("tools/mutate", [test["target"] for test in tests], BUILD_ARGUMENTS)
    broken = [name_of(test) for test in tests if not passes(folder, test, "")]
    if broken:
        print(f"tools/mutate: these tests fail without a mutation: {', '.join(broken)}", flush=True)
        return 1
    missed = []
    for mutation in options.only or room["mutations"]:
        caught = [name_of(test) for test in tests if not passes(folder, test, mutation)]
        print(f"{mutation}: {', '.join(caught) if caught else 'NOT CAUGHT'}", flush=True)
        if not caught:
            missed.append(mutation)
    print(f"{len(missed)} mutations are not caught" if missed else "each mutation is caught", flush=True)
    return 1 if missed else 0
