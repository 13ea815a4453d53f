"""The commands of tools/bench."""

import argparse
import fnmatch
import json
import os
import pathlib
import re
import sys
import tempfile

from benchmarking import against
from benchmarking import bars
from benchmarking import compare
from benchmarking import export
from benchmarking import measuring
from benchmarking import peers
from benchmarking import results
from benchmarking import suites

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SETS_FILE = pathlib.Path(__file__).with_name("sets.json")

_DESCRIPTION = """\
Builds, runs, compares and exports benchmarks.

  tools/bench list                                   every benchmark, by its key
  tools/bench run --filter smoke --out /tmp/new      a quick look, in less than three minutes
  tools/bench run --filter 'utils/queue/.*' --out /tmp/new
  tools/bench compare benchmarks/baseline/baseline.json /tmp/new
  tools/bench export --format bencher /tmp/new
  tools/bench peers                                  the same programs in CAF and Erlang, run in turn with ours
  tools/bench bars                                   what must be reached, and whether it is
  tools/bench against v1.2 --group "hot path"        whether a program is slower than at another commit

A key is <suite>/<benchmark>, such as limit/pairs/100/w:2. Keys are stable. A figure from a busy machine proves nothing:
compare what ran in turn, or at least on the same quiet machine.
"""


def _number(text, kind, is_right, what):
    """`text` as a number, or an error that says what it should have been."""
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not is_right(value):
        raise argparse.ArgumentTypeError(f'"{text}" is not {what}')
    return value


def _positive_int(text):
    return _number(text, int, lambda value: value >= 1, "a whole number of at least 1")


def _share(text):
    return _number(text, float, lambda value: 0 <= value < 1, "a share from 0 to below 1; 5 % is 0.05")


def _seconds(text):
    return _number(text, float, lambda value: 0 < value <= 3600, "a number of seconds from above 0 to 3600")


def named_sets():
    """The named sets of benchmarks, by name."""
    return json.loads(SETS_FILE.read_text())


def matcher(patterns):
    """A function that tells whether a key matches one of the patterns as a whole, or all keys if there are none."""
    compiled = []
    for pattern in patterns:
        try:
            compiled.append(re.compile(pattern))
        except re.error as error:
            raise suites.RunError(f'--filter "{pattern}" is not a regular expression: {error}') from error
    return lambda key: not compiled or any(expression.fullmatch(key) for expression in compiled)


def _literal_prefix(pattern):
    """What every text begins with that the regular expression `pattern` matches as a whole; it may know too little."""
    if "|" in pattern:
        # An alternative that is not within a group may begin in any way.
        depth = 0
        for char in re.sub(r"\\.|\[\^?\]?[^\]]*\]", "", pattern):
            depth += (char == "(") - (char == ")")
            if char == "|" and depth == 0:
                return ""
    prefix = re.match(r"[\w/:<>, -]*", pattern, re.ASCII).group()
    # Of a character that may be missing, or come again, nothing is known.
    return prefix[:-1] if pattern[len(prefix) : len(prefix) + 1] in ("*", "?", "{") else prefix


def suites_for(patterns):
    """A function that tells whether a suite may have keys that match one of the patterns.

    A pattern is a regular expression, or a key of a bar.
    """
    prefixes = [_literal_prefix(pattern) for pattern in patterns]

    def wanted(suite):
        folder = f"{suite}/"
        return not prefixes or any(folder.startswith(prefix) or prefix.startswith(folder) for prefix in prefixes)

    return wanted


def _build(options, wanted=None, repository=None):
    builder = suites.Builder(repository or REPOSITORY, options.bazel)
    labels = builder.labels()
    for name in options.suite or ():
        if name not in labels:
            raise suites.RunError(f"there is no suite \"{name}\"; there are {', '.join(labels)}")
    chosen = options.suite or [name for name in labels if wanted is None or wanted(name)]
    return builder.build({name: labels[name] for name in chosen}) if chosen else ({}, [])


def _empty_folder(path):
    folder = pathlib.Path(path)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise suites.RunError(f"{folder} is not an empty folder; results of two runs do not mix")
    return folder


def _no_match(options):
    return suites.RunError(
        f'--filter "{options.filter}" matches no benchmark and is none of the named sets '
        f"({', '.join(named_sets())}); tools/bench list shows the keys, and a filter must match a whole key"
    )


def _chosen_set(options):
    """The named set that --filter names, and the patterns of keys that it stands for."""
    chosen = named_sets().get(options.filter, {})
    return chosen, chosen.get("patterns", [options.filter] if options.filter else [])


def command_list(options):
    _, patterns = _chosen_set(options)
    matches = matcher(patterns)
    built, failed = _build(options, suites_for(patterns))
    selected = measuring.select(built, matches)
    if options.filter and not selected:
        raise _no_match(options)
    for suite, names in selected.items():
        for name in names:
            print(f"{suite}/{name}")
    for name, details in named_sets().items():
        suites.say(f"named set {name}: {details['what']}")
    return _report_unbuilt(failed)


def _report_unbuilt(failed):
    if failed:
        suites.say(f"did not build: {', '.join(failed)}")
    return 1 if failed else 0


def command_run(options):
    folder = _empty_folder(options.out)
    chosen, patterns = _chosen_set(options)
    matches = matcher(patterns)
    built, unbuilt = _build(options, suites_for(patterns))
    selected = measuring.select(built, matches)
    if not selected:
        raise _no_match(options) if options.filter else suites.RunError("there is no benchmark to run")
    failures = measuring.run_rounds(
        REPOSITORY,
        built,
        selected,
        options.repetitions or chosen.get("repetitions", 5),
        options.min_time or chosen.get("min_time", 0.1),
        options.limit or chosen.get("limit_seconds"),
        folder,
    )
    code = _report_unbuilt(unbuilt)
    errors = results.load(folder).errors if (folder / results.MACHINE_FILE).exists() and not failures else {}
    for key, message in errors.items():
        suites.say(f"{key} reports an error: {message}")
    if failures:
        suites.say(f"failed: {', '.join(failures)}")
    suites.say(f"results are in {folder}")
    return 1 if failures or errors else code


def command_compare(options):
    comparison = compare.compare(results.load(options.old), results.load(options.new), options.threshold, options.alpha)
    if not comparison.rows and not comparison.failing:
        raise results.ResultsError(f"{options.old} and {options.new} have no benchmark in common")
    print(compare.table(comparison, options.threshold))
    return 1 if comparison.worse or comparison.failing else 0


def command_summary(options):
    text = results.format_summary(results.load(options.dir).summary())
    if options.out:
        try:
            pathlib.Path(options.out).write_text(text)
        except OSError as error:
            raise results.ResultsError(f"--out {options.out} cannot be written: {error.strerror}") from error
        suites.say(f"wrote {options.out}")
    else:
        print(text, end="")
    return 0


def command_export(options):
    loaded = results.load(options.dir)
    folder = options.out
    if not folder:
        if not pathlib.Path(options.dir).is_dir():
            raise results.ResultsError(f"{options.dir} is a file, not a folder to write into: say where by --out DIR")
        folder = pathlib.Path(options.dir) / results.EXPORT_FOLDER
    try:
        paths = export.write(loaded, options.format, folder)
    except OSError as error:
        raise results.ResultsError(f"{folder} is no folder to write into: {error.strerror}; see --out DIR") from error
    for path in paths:
        print(path)
    return 0


def _own_folders(options, programs):
    """Whose programs are ours: those between nodes are in a folder of their own."""
    between_nodes = any(program.startswith("remote_") for program in programs)
    return (options.ours, "remote") if options.ours == "actor" and between_nodes else (options.ours,)


def _measure_peers(options, folder):
    """Builds and measures what is compared with the peers, and prints the ratios."""
    matches = matcher([options.filter] if options.filter else [])
    programs = [program for program in peers.PROGRAMS if matches(program)]
    if not programs:
        raise suites.RunError(
            f"--filter \"{options.filter}\" matches none of the programs: {', '.join(peers.PROGRAMS)}"
        )
    folders = _own_folders(options, programs)
    built, unbuilt = _build(options, lambda name: name == "limit" or name.partition("/")[0] in folders)
    ours = {program: suite for folder in folders for program, suite in measuring.programs_of(built, folder).items()}
    if not ours:
        raise suites.RunError(
            f'no suite of "{options.ours}" has any of the programs; --ours limit compares the bare mechanism'
        )
    limit = measuring.programs_of(built, "limit") if options.ours != "limit" else {}
    sources = REPOSITORY / "benchmarks" / "peers"
    others = [peers.Caf(sources), peers.Erlang(sources)]
    failures = measuring.run_in_turn(
        REPOSITORY, built, [ours, limit], others, programs, options.repetitions, options.min_time, folder
    )
    if failures:
        suites.say(f"failed: {', '.join(failures)}")
    keys = {program: f"{suite}/{program}" for program, suite in ours.items()}
    prefixes = {**({"limit": "limit"} if limit else {}), **{peer.name: f"peers/{peer.name}" for peer in others}}
    print("\n".join(peers.ratio_lines(results.load(folder), keys, prefixes, programs)))
    return _report_unbuilt(unbuilt) or (1 if failures else 0)


def command_peers(options):
    if options.out:
        return _measure_peers(options, _empty_folder(options.out))
    with tempfile.TemporaryDirectory() as folder:
        return _measure_peers(options, pathlib.Path(folder))


def _measure_for_bars(options, wanted, folder):
    """Measures what bars look at, in turn with the peers where a bar is against those. Returns an exit code."""
    patterns = {
        pattern for bar in wanted for condition in bar.conditions for pattern in (condition.of, *condition.over)
    }
    against_peers = any(pattern.startswith("peers/") for pattern in patterns)
    code = 0
    if against_peers:
        # Only what a bar looks at.
        programs = [program for program in peers.PROGRAMS if any(key.endswith(f"/{program}") for key in patterns)]
        options.filter, options.ours = "|".join(map(re.escape, programs)), "actor"
        try:
            code = _measure_peers(options, folder / "peers")
        except suites.RunError as error:
            suites.say(f"not measured: {error}")
    in_turn = {*peers.PROGRAMS, *map(peers.typed, peers.PROGRAMS)}
    built, unbuilt = _build(options, suites_for(patterns))
    selected = {}
    for suite, names in measuring.select(
        built, lambda key: any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns)
    ).items():
        rest = [name for name in names if not (against_peers and name in in_turn)]
        if rest:
            selected[suite] = rest
    if selected:
        failures = measuring.run_rounds(
            REPOSITORY, built, selected, options.repetitions, options.min_time, None, folder / "run"
        )
        code = 1 if failures else code
    return _report_unbuilt(unbuilt) or code


def _bars_of(groups):
    """The bars of these groups, or all if there are none."""
    wanted = bars.load()
    known = sorted({bar.group for bar in wanted})
    for group in groups or ():
        if group not in known:
            raise results.ResultsError(f"there is no group of bars \"{group}\"; there are {', '.join(known)}")
    return [bar for bar in wanted if not groups or bar.group in groups]


def command_bars(options):
    wanted = _bars_of(options.group)
    loaded = results.Results()
    code = 0
    with tempfile.TemporaryDirectory() as temporary:
        folders = options.dirs
        if not folders:
            folder = _empty_folder(options.out) if options.out else pathlib.Path(temporary)
            code = _measure_for_bars(options, wanted, folder)
            folders = [path for path in (folder / "peers", folder / "run") if path.is_dir()]
        for folder in folders:
            loaded.merge(results.load(folder))
    verdicts = bars.judge(loaded, wanted)
    print(bars.table(verdicts))
    failing = {bars.FAIL, bars.NOT_MEASURED} if options.strict else {bars.FAIL}
    return 1 if any(verdict.verdict in failing for verdict in verdicts) else code


def _matcher_against(options):
    """A function that tells whether `against` measures a key, and one that tells whether a suite may have such keys."""
    patterns = _chosen_set(options)[1]
    in_filter, suite_in_filter = matcher(patterns), suites_for(patterns)
    if not options.group:
        return in_filter, suite_in_filter
    of_bars = sorted({condition.of for bar in _bars_of(options.group) for condition in bar.conditions})
    suite_in_bars = suites_for(of_bars)
    return (
        lambda key: in_filter(key) and any(fnmatch.fnmatchcase(key, pattern) for pattern in of_bars),
        lambda suite: suite_in_filter(suite) and suite_in_bars(suite),
    )


def _measure_against(options, folder):
    matches, wanted = _matcher_against(options)
    commit = against.commit_of(REPOSITORY, options.revision)
    tree = against.tree_of(REPOSITORY, commit)
    new, unbuilt = _build(options, wanted)
    old, unbuilt_old = _build(options, wanted, tree)
    old_names = measuring.select(old, matches)
    selected = {
        suite: [name for name in names if name in old_names.get(suite, ())]
        for suite, names in measuring.select(new, matches).items()
    }
    selected = {suite: names for suite, names in selected.items() if names}
    if not selected:
        raise suites.RunError(f"no benchmark that this tree and {commit[:12]} both have is asked for")
    failures = measuring.run_against(
        REPOSITORY, old, new, selected, options.repetitions, options.min_time, folder
    )
    if failures:
        suites.say(f"failed: {', '.join(failures)}")
    comparison = compare.compare(
        results.load(folder / "old"), results.load(folder / "new"), options.threshold, options.alpha
    )
    print(compare.table(comparison, options.threshold))
    code = _report_unbuilt(unbuilt + [f"{name} of {commit[:12]}" for name in unbuilt_old])
    return 1 if comparison.worse or comparison.failing or failures else code


def command_against(options):
    if options.out:
        return _measure_against(options, _empty_folder(options.out))
    with tempfile.TemporaryDirectory() as folder:
        return _measure_against(options, pathlib.Path(folder))


def _parser():
    parser = argparse.ArgumentParser(
        prog="tools/bench", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name, function, text, more=""):
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}. {more}".strip())
        command.set_defaults(function=function)
        return command

    def add_building(command):
        command.add_argument(
            "--suite",
            action="append",
            metavar="SUITE",
            help="build only this suite, such as utils/queue; may be repeated (default: all that are needed)",
        )
        command.add_argument(
            "--bazel",
            default="bazel",
            metavar="COMMAND",
            help="how to call Bazel, with startup options if need be (default: bazel)",
        )

    def add_repetitions(command, default, note=""):
        command.add_argument(
            "--repetitions",
            type=_positive_int,
            default=default,
            metavar="N",
            help=f"how often each benchmark runs; medians are taken (default: {default or 5}{note})",
        )
        command.add_argument(
            "--min-time",
            type=_seconds,
            default=0.1 if default else None,
            metavar="SECONDS",
            help=f"how long a benchmark runs at least, each time (default: 0.1{note})",
        )

    def add_comparing(command, threshold):
        command.add_argument(
            "--threshold",
            type=_share,
            default=threshold,
            metavar="SHARE",
            help=f"how much worse is too much (default: {threshold:g})",
        )
        command.add_argument(
            "--alpha",
            type=_share,
            default=0.01,
            metavar="P",
            help="how improbable chance must be; 5 against 5 repetitions can reach 0.004 (default: 0.01). "
            "With fewer repetitions than it takes, the medians alone decide",
        )

    command = add(
        "list",
        command_list,
        "list the keys of all benchmarks",
        "The programs are built for that: what a program runs, only it knows.",
    )
    filter_help = f"a regular expression that the whole key must match, or a named set: {', '.join(named_sets())}"
    command.add_argument("--filter", metavar="F", help=filter_help)
    add_building(command)

    command = add(
        "run",
        command_run,
        "run benchmarks and store what they say",
        "Writes one file of Google Benchmark's JSON per suite and machine.json. Exits 1 if something failed.",
    )
    command.add_argument("--filter", metavar="F", help=f"{filter_help} (default: everything)")
    add_repetitions(command, None, ", or what the named set says")
    command.add_argument(
        "--limit",
        type=_seconds,
        metavar="SECONDS",
        help="stop repeating after this time; everything runs at least once (default: what the named set says)",
    )
    command.add_argument(
        "--out", required=True, metavar="DIR", help="a folder for the results; it must be new or empty"
    )
    add_building(command)

    command = add(
        "compare",
        command_compare,
        "compare two results",
        "Medians decide, and a Mann-Whitney test has the say on whether chance could do the same. "
        "Exits 1 if something is worse beyond the threshold, or fails that did not, and 2 if there is nothing to compare.",
    )
    command.add_argument("old", metavar="OLD", help="a folder of results, or a summary file such as the baseline")
    command.add_argument("new", metavar="NEW", help="the same, later")
    add_comparing(command, 0.05)

    command = add(
        "summary",
        command_summary,
        "put results into one small file",
        "All samples that comparisons look at, and the machine: this is what a baseline is.",
    )
    command.add_argument("dir", metavar="DIR", help="a folder of results")
    command.add_argument("--out", metavar="FILE", help="where to write it (default: the output)")

    command = add("export", command_export, "write results as a dashboard reads them", "Prints the paths of the files.")
    command.add_argument("--format", required=True, choices=export.FORMATS, help="whose format")
    command.add_argument("dir", metavar="DIR", help="a folder of results, or a summary file")
    command.add_argument("--out", metavar="DIR", help="where to write the files (default: the folder export in DIR; a summary file has none)")

    command = add(
        "peers",
        command_peers,
        "run the programs of CAF and Erlang in turn with ours",
        "Prints `ratio <bench>/<param>/w<workers> <peer> <ours divided by theirs>`; above 1 we are better, whatever is "
        "measured. The peers are Debian's packages; what is not installed is unpacked into the user's cache.",
    )
    command.add_argument(
        "--filter", metavar="F", help="a regular expression that the whole name of a program must match"
    )
    command.add_argument(
        "--ours",
        default="actor",
        metavar="FOLDER",
        help="whose programs are ours: the suites of actor and remote, or the bare mechanism, limit (default: actor)",
    )
    add_repetitions(command, 5)
    command.add_argument("--out", metavar="DIR", help="keep the results in this folder; it must be new or empty")
    add_building(command)

    command = add(
        "bars",
        command_bars,
        "judge what must be reached",
        "Prints value, bar and verdict of each; without results it measures first. Exits 1 if a bar fails.",
    )
    command.add_argument(
        "dirs", nargs="*", metavar="DIR", help="folders of results of `run` and `peers` (default: measure now)"
    )
    command.add_argument("--group", action="append", metavar="GROUP", help="only this group of bars; may be repeated")
    command.add_argument("--strict", action="store_true", help="exit 1 also if something was not measured")
    add_repetitions(command, 5)
    command.add_argument("--out", metavar="DIR", help="keep what is measured in this folder; it must be new or empty")
    add_building(command)

    command = add(
        "against",
        command_against,
        "measure another commit in turn with this tree",
        "Builds the benchmarks of the commit in a folder of the user's cache, runs each benchmark that both trees have "
        "in turn, and compares as `compare` does. Exits 1 if something is worse beyond the threshold.",
    )
    command.add_argument("revision", metavar="REV", help="the other commit: a hash, a tag or a branch")
    command.add_argument("--filter", metavar="F", help=f"{filter_help} (default: everything)")
    command.add_argument(
        "--group", action="append", metavar="GROUP", help="only what this group of bars looks at; may be repeated"
    )
    add_repetitions(command, 7)
    add_comparing(command, 0.03)
    command.add_argument("--out", metavar="DIR", help="keep the results in this folder; it must be new or empty")
    add_building(command)
    return parser


def main(arguments=None):
    """Runs a command and returns the exit code: 1 for a verdict against the code, 2 for a use that makes no sense."""
    options = _parser().parse_args(arguments)
    try:
        code = options.function(options)
        sys.stdout.flush()
        return code
    except (suites.RunError, results.ResultsError) as error:
        print(f"tools/bench: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Whoever reads has seen enough, as `head` does. What is still in the buffer would fail again at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # As programs that do not notice end: 128 and the number of SIGPIPE.
    except KeyboardInterrupt:
        print("tools/bench: interrupted", file=sys.stderr)
        return 130
