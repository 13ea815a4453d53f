"""The command tools/sim."""

import argparse
import concurrent.futures
import dataclasses
import os
import subprocess
import sys
import time

from endurance import rooms

_DESCRIPTION = """\
Runs the simulations of a room of the repository with many seeds.

  tools/sim persistence --seeds 10000
  tools/sim persistence --seeds 500 --first-seed 20001
  tools/sim persistence --seeds 200 --config asan
  tools/sim --list                      which rooms have simulations

A seed makes every choice, so a failing seed fails again: the output has the line that repeats it. Exits with 1 if a
seed failed. rooms.json says what a room has.
"""
# Seeds of one process: it ends at the first failure, and a later chunk goes on.
CHUNK = 100


@dataclasses.dataclass
class Outcome:
    """What became of one process."""

    first: int
    count: int
    passed: bool
    output: str


def chunks(first, count, size=CHUNK):
    """The seeds in pieces: pairs of the first one and their number."""
    return [(start, min(size, first + count - start)) for start in range(first, first + count, size)]


def run_chunk(program, test_filter, first, count):
    """Runs the seeds of one piece."""
    environment = {**os.environ, "FRAKTOR_SIM_FIRST_SEED": str(first), "FRAKTOR_SIM_SEEDS": str(count)}
    environment.pop("FRAKTOR_SIM_SEED", None)
    done = subprocess.run(
        [program, f"--gtest_filter={test_filter}"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", check=False, cwd=rooms.REPOSITORY,
    )
    return Outcome(first, count, done.returncode == 0, done.stdout)


def parse(arguments):
    """The options of a command line."""
    parser = argparse.ArgumentParser(
        prog="tools/sim", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("room", nargs="?", choices=sorted(rooms.rooms("sim")), help="a room of rooms.json")
    parser.add_argument("--seeds", type=rooms.positive, default=1000, help="how many (1000)")
    parser.add_argument("--first-seed", type=rooms.positive, default=1, help="the first of them (1)")
    parser.add_argument("--jobs", type=rooms.positive, default=os.cpu_count() or 1, help="processes at a time (cores)")
    parser.add_argument("--config", choices=["opt", "asan", "ubsan"], help="a config of .bazelrc")
    parser.add_argument("--list", action="store_true", help="print the rooms that have simulations, and run none")
    options = parser.parse_args(arguments)
    if not options.list and options.room is None:
        parser.error(f"name a room: {', '.join(sorted(rooms.rooms('sim')))}")
    return options


def main():
    """Runs the command; gives its exit code."""
    options = parse(sys.argv[1:])
    if options.list:
        print("\n".join(sorted(rooms.rooms("sim"))))
        return 0
    room = rooms.rooms("sim")[options.room]
    folder = rooms.build("tools/sim", [room["target"]], [f"--config={options.config}"] if options.config else [])
    program = rooms.program(folder, room["target"])
    start = time.monotonic()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [
            pool.submit(run_chunk, program, room["filter"], first, count)
            for first, count in chunks(options.first_seed, options.seeds)
        ]
        for run in concurrent.futures.as_completed(runs):
            outcome = run.result()
            last = outcome.first + outcome.count - 1
            print(f"tools/sim: seeds {outcome.first} to {last} {'passed' if outcome.passed else 'FAILED'}", flush=True)
            if not outcome.passed:
                failed += 1
                print(outcome.output, flush=True)
    print(f"{options.seeds} seeds in {time.monotonic() - start:.0f} s, {failed} pieces failed", flush=True)
    return 1 if failed else 0
