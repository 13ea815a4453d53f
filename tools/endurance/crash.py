"""The command tools/crash."""

import argparse
import os
import subprocess
import sys
import time

from endurance import rooms

_DESCRIPTION = """\
Kills a process of a room of the repository again and again, at random moments, and looks for what it has lost.

  tools/crash persistence --rounds 30 --ids 50000
  tools/crash persistence --seed 7      other moments
  tools/crash --list                    which rooms have a crash test

Exits with 1 if something was lost. rooms.json says what a room has.
"""


def environment_of(options):
    """What the test is told."""
    return {
        **os.environ,
        "FRAKTOR_CRASH_ROUNDS": str(options.rounds),
        "FRAKTOR_CRASH_IDS": str(options.ids),
        "FRAKTOR_CRASH_SEED": str(options.seed),
    }


def parse(arguments):
    """The options of a command line."""
    parser = argparse.ArgumentParser(
        prog="tools/crash", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("room", nargs="?", choices=sorted(rooms.rooms("crash")), help="a room of rooms.json")
    parser.add_argument("--rounds", type=rooms.positive, default=30, help="how often it is killed (30)")
    parser.add_argument("--ids", type=rooms.positive, default=50_000, help="persistence ids (50000)")
    parser.add_argument("--seed", type=rooms.positive, default=1, help="of the random moments (1)")
    parser.add_argument("--config", choices=["opt", "asan", "ubsan"], help="a config of .bazelrc")
    parser.add_argument("--list", action="store_true", help="print the rooms that have a crash test, and run none")
    options = parser.parse_args(arguments)
    if not options.list and options.room is None:
        parser.error(f"name a room: {', '.join(sorted(rooms.rooms('crash')))}")
    return options


def main():
    """Runs the command; gives its exit code."""
    options = parse(sys.argv[1:])
    if options.list:
        print("\n".join(sorted(rooms.rooms("crash"))))
        return 0
    room = rooms.rooms("crash")[options.room]
    folder = rooms.build("tools/crash", [room["target"]], [f"--config={options.config}"] if options.config else [])
    start = time.monotonic()
    done = subprocess.run(
        [rooms.program(folder, room["target"]), f"--gtest_filter={room['filter']}"],
        env=environment_of(options), cwd=rooms.REPOSITORY, check=False,
    )
    verdict = "nothing was lost" if done.returncode == 0 else "FAILED"
    print(f"tools/crash: {options.rounds} rounds, {options.ids} ids, {time.monotonic() - start:.0f} s: {verdict}")
    return 0 if done.returncode == 0 else 1
