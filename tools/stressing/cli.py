"""The command tools/stress."""

import argparse
import os
import pathlib
import subprocess
import sys
import time

from stressing import burner
from stressing import threaded_tests
from stressing import verdict

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
STORM = "//actor/testkit:storm_test"
# The storm runs in rounds, each with a seed of its own: a failed round is repeated by its seed.
MAX_ROUND_SECONDS = 300

_DESCRIPTION = f"""\
Looks for failures that come once in many runs.

  tools/stress                          each test that has threads, 50 times, beside a busy core
  tools/stress //actor/...              the same for some tests
  tools/stress --runs 500 //utils/queue:inbox_test
  tools/stress --config tsan            under ThreadSanitizer; asan likewise
  tools/stress --minutes 30             {STORM} for so long, in rounds with different seeds
  tools/stress --minutes 5 --seed 77    the same, with the seed of the first round
  tools/stress --list                   which tests have threads; runs none

Names each test that failed, and closes with a line `N passed, N failed`. Exits with 1 if a test failed or did not run.
"""


def _say(text):
    print(f"tools/stress: {text}", flush=True)


def _positive(text):
    value = int(text) if text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number of at least 1')
    return value


def _bazel(arguments, output=None):
    """Runs Bazel in the repository; gives the finished process."""
    return subprocess.run(["bazel", *arguments], cwd=REPOSITORY, stdout=output, stderr=output, text=True, check=False)


def _query(expression, *options):
    """The output of a query, or an exit with the error of Bazel."""
    done = subprocess.run(
        ["bazel", "query", "--noshow_progress", *options, expression],
        cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=False,
    )
    if done.returncode != 0:
        sys.exit(f"tools/stress: bazel query failed for {expression}")
    return done.stdout


def _text_of(label):
    path = REPOSITORY / label.removeprefix("//").replace(":", "/").lstrip("/")
    return path.read_text(errors="replace") if path.exists() else ""


def _default_patterns(config):
    """Every test; under ThreadSanitizer, the tests whose libraries are instrumented."""
    if config != "tsan":
        return ["//..."]
    return (REPOSITORY / "tools" / "tsan_targets").read_text().split()


def tests_with_threads(patterns):
    """The labels of the tests of some target patterns that have threads."""
    chosen = " + ".join(f'tests("{pattern}")' for pattern in patterns)
    # The libraries of the repository come along: a fixture may start the threads.
    libraries = 'kind("(cc_library|fraktor_cc_umbrella) rule", //...)'
    all_rules = threaded_tests.rules(_query(f"{chosen} + {libraries}", "--output=xml"))
    wanted = set(_query(chosen).split())
    return [label for label in threaded_tests.threaded(all_rules, _text_of) if label in wanted]


def _config(options):
    return [f"--config={options.config}"] if options.config else []


def _run_test(label, runs, options, extra=()):
    """Runs a test `runs` times; prints the output of failed runs."""
    done = subprocess.run(
        ["bazel", "test", "--noshow_progress", "--nocache_test_results", "--keep_going", f"--runs_per_test={runs}",
         "--runs_per_test_detects_flakes=false", "--test_output=errors", "--test_summary=short",
         *_config(options), *extra, label],
        cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
    )
    result = verdict.verdict(label, runs, done.stdout, done.returncode)
    if not result.passed:
        print(done.stdout, flush=True)
    return result


def _close(passed, failed, not_run):
    for label, text in failed:
        _say(f"{label}: {text}")
    for label in not_run:
        _say(f"{label}: not run; the time was over")
    print(f"{passed} passed, {len(failed)} failed", flush=True)
    return 1 if failed or not_run else 0


def _stress_tests(options):
    labels = tests_with_threads(options.targets or _default_patterns(options.config))
    if options.list:
        print("\n".join(labels))
        return 0
    if not labels:
        _say("none of these tests has threads")
        return 2
    if _bazel(["build", "--noshow_progress", "--show_result=0", *_config(options), "--", *labels]).returncode != 0:
        _say("the tests cannot be built")
        return 2
    _say(f"{len(labels)} tests with threads, {options.runs} runs each, beside {options.burners} busy processes")
    passed, failed, not_run = 0, [], []
    end = time.monotonic() + 60 * options.at_most
    with burner.burning(options.burners):
        for i, label in enumerate(labels):
            start = time.monotonic()
            if start > end:
                not_run.append(label)
                continue
            result = _run_test(label, options.runs, options)
            _say(f"[{i + 1}/{len(labels)}] {label}: {result.text}, {time.monotonic() - start:.0f} s")
            if result.passed:
                passed += 1
            else:
                failed.append((label, result.text))
    return _close(passed, failed, not_run)


def rounds(minutes, seed):
    """The rounds of a storm: pairs of seconds and seed that add up to `minutes`."""
    left, number = 60 * minutes, 0
    while left > 0:
        seconds = min(left, MAX_ROUND_SECONDS)
        yield seconds, seed + number
        left -= seconds
        number += 1


def _storm(options):
    if _bazel(["build", "--noshow_progress", "--show_result=0", *_config(options), "--", STORM]).returncode != 0:
        _say(f"{STORM} cannot be built")
        return 2
    seed = options.seed if options.seed is not None else int(time.time()) % 1_000_000 * 1_000
    passed, failed = 0, []
    with burner.burning(options.burners):
        for seconds, round_seed in rounds(options.minutes, seed):
            # The clock bounds a round, but not its end, which is slow under a sanitizer.
            extra = [f"--test_env=FRAKTOR_STORM_SECONDS={seconds}", f"--test_env=FRAKTOR_STORM_SEED={round_seed}",
                     f"--test_timeout={2 * seconds + 300}"]
            result = _run_test(STORM, 1, options, extra)
            _say(f"{STORM}: {seconds} s with seed {round_seed}: {result.text}")
            if result.passed:
                passed += 1
            else:
                failed.append((STORM, f"seed {round_seed}: {result.text}"))
    return _close(passed, failed, [])


def parse(arguments):
    """The options of a command line."""
    parser = argparse.ArgumentParser(
        prog="tools/stress", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", help="target patterns such as //actor/...; every test if none is given")
    parser.add_argument("--runs", type=_positive, default=50, help="runs of each test (50)")
    parser.add_argument("--minutes", type=_positive, help=f"run only {STORM}, for so many minutes")
    parser.add_argument("--seed", type=_positive, help="the seed of the first round; by default from the clock")
    parser.add_argument("--config", choices=["asan", "tsan", "ubsan"], help="a config of .bazelrc")
    parser.add_argument("--burners", type=int, default=max(1, (os.cpu_count() or 1) // 2),
                        help="busy processes beside the tests (half of the cores)")
    parser.add_argument("--at-most", type=_positive, default=180, metavar="MINUTES",
                        help="begin no further test after so many minutes (180)")
    parser.add_argument("--list", action="store_true", help="print the tests that have threads, and run none")
    options = parser.parse_args(arguments)
    if options.burners < 0:
        parser.error(f"--burners is {options.burners}; it must not be negative")
    if options.minutes and (options.targets or options.list):
        parser.error(f"--minutes runs {STORM} alone; it takes neither targets nor --list")
    if options.seed is not None and not options.minutes:
        parser.error("--seed is the seed of a storm; it needs --minutes")
    return options


def main():
    """Runs the command; gives its exit code."""
    options = parse(sys.argv[1:])
    if not options.list:
        subprocess.run([REPOSITORY / "tools" / "setup"], check=True)
    return _storm(options) if options.minutes else _stress_tests(options)
