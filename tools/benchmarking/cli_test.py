"""Tests of the commands that need no build: arguments, exit codes, messages."""

import argparse
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from benchmarking import against
from benchmarking import cli
from benchmarking import results
from benchmarking import suites

RUN = pathlib.Path(__file__).parent / "testdata" / "run"


class CliTest(unittest.TestCase):
    def _main(self, *arguments):
        """Exit code, output and error output of a command."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = cli.main([str(argument) for argument in arguments])
            except SystemExit as end:
                code = end.code
        return code, out.getvalue(), err.getvalue()

    def _slower(self, folder, factor):
        document = results.load(RUN).summary()
        samples = document["benchmarks"]["limit/ping_pong/w:1"]
        samples["items_per_second"] = [value * factor for value in samples["items_per_second"]]
        path = pathlib.Path(folder) / "slower.json"
        path.write_text(results.format_summary(document))
        return path

    def test_help_names_every_command(self):
        code, out, _ = self._main("--help")
        self.assertEqual(code, 0)
        for command in ("list", "run", "compare", "summary", "export", "peers", "bars", "against"):
            self.assertIn(f"    {command} ", out)
            self.assertEqual(self._main(command, "--help")[0], 0)

    def test_a_run_compared_with_itself_is_fine(self):
        code, out, _ = self._main("compare", RUN, RUN)
        self.assertEqual(code, 0)
        self.assertIn("0 worse and 0 better", out)

    def test_ten_percent_slower_fails_and_a_higher_threshold_lets_it_pass(self):
        with tempfile.TemporaryDirectory() as folder:
            slower = self._slower(folder, 0.9)
            self.assertEqual(self._main("compare", RUN, slower, "--threshold", "0.05")[0], 1)
            self.assertEqual(self._main("compare", RUN, slower, "--threshold", "0.2")[0], 0)
            self.assertEqual(self._main("compare", slower, RUN)[0], 0)

    def test_a_benchmark_that_has_begun_to_fail_fails_the_comparison(self):
        broken = results.load(RUN)
        del broken.samples["limit/ping_pong/w:1"]
        broken.errors["limit/ping_pong/w:1"] = "no answer"
        with mock.patch.object(results, "load", side_effect=[results.load(RUN), broken]):
            self.assertEqual(self._main("compare", "old", "new")[0], 1)

    def test_results_without_anything_in_common_are_no_comparison(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "other.json"
            path.write_text(
                results.format_summary(
                    {"format": results.SUMMARY_FORMAT, "machine": {}, "benchmarks": {"x/y": {"time_ns": [1.0]}}}
                )
            )
            code, _, err = self._main("compare", RUN, path)
        self.assertEqual(code, 2)
        self.assertIn("no benchmark in common", err)

    def test_a_threshold_in_percent_is_refused(self):
        code, _, err = self._main("compare", RUN, RUN, "--threshold", "5")
        self.assertEqual(code, 2)
        self.assertIn("5 % is 0.05", err)
        self.assertIn('"5%" is not a share', self._main("compare", RUN, RUN, "--threshold", "5%")[2])
        self.assertIn('"many" is not a whole number', self._main("run", "--out", "x", "--repetitions", "many")[2])

    def test_an_unknown_command_is_refused(self):
        self.assertEqual(self._main("measure")[0], 2)

    def test_an_unknown_group_of_bars_is_named(self):
        code, _, err = self._main("bars", RUN, "--group", "speed")
        self.assertEqual(code, 2)
        self.assertIn('there is no group of bars "speed"; there are cluster, hot path, paths, persistence, remote, utils', err)

    def test_bars_without_figures_fail_only_when_that_is_asked_for(self):
        code, out, _ = self._main("bars", RUN)
        self.assertEqual(code, 0)
        self.assertIn("0 passed, 0 failed", out)
        self.assertEqual(self._main("bars", RUN, "--strict")[0], 1)

    def test_export_prints_what_it_wrote(self):
        with tempfile.TemporaryDirectory() as folder:
            code, out, _ = self._main("export", "--format", "bencher", RUN, "--out", folder)
            self.assertEqual((code, out), (0, f"{folder}/bencher.json\n"))

    def test_what_cannot_be_written_is_named_with_the_option_that_helps(self):
        with tempfile.TemporaryDirectory() as folder:
            summary = self._slower(folder, 1)
            code, _, err = self._main("export", "--format", "bencher", summary)
            self.assertEqual(code, 2)
            self.assertIn("slower.json is a file, not a folder to write into: say where by --out DIR", err)
            code, _, err = self._main("export", "--format", "bencher", RUN, "--out", summary)
            self.assertEqual(code, 2)
            self.assertIn("slower.json is no folder to write into", err)
            code, _, err = self._main("summary", RUN, "--out", f"{folder}/nowhere/new.json")
            self.assertEqual(code, 2)
            self.assertIn("nowhere/new.json cannot be written", err)

    def test_a_reader_who_has_seen_enough_is_no_error_of_ours(self):
        # In a process of its own, since it is about the output of one.
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [sys.executable, "-c", "from benchmarking import cli; raise SystemExit(cli.main())", "summary", str(RUN)],
            cwd=pathlib.Path(__file__).parents[1],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        os.close(writer)
        self.assertEqual(done.returncode, 141)
        self.assertEqual(done.stderr, "")

    def test_results_never_mix_with_older_ones(self):
        code, _, err = self._main("run", "--out", RUN)
        self.assertEqual(code, 2)
        self.assertIn("is not an empty folder", err)


class NeededSuitesTest(unittest.TestCase):
    """A filter must not make Bazel build what it cannot match, and never keep it from building what it can."""

    def _needed(self, *patterns):
        wanted = cli.suites_for(patterns)
        return [suite for suite in ("actor/message", "actor/path", "limit", "remote/links") if wanted(suite)]

    def test_a_suite_is_needed_if_a_key_of_it_may_match(self):
        self.assertEqual(self._needed(), ["actor/message", "actor/path", "limit", "remote/links"])
        self.assertEqual(self._needed("limit/ring/.*"), ["limit"])
        self.assertEqual(self._needed("actor/.*"), ["actor/message", "actor/path"])
        self.assertEqual(self._needed("actor/(path|x)/.*", "limit/x"), ["actor/message", "actor/path", "limit"])
        self.assertEqual(self._needed("nothing"), [])

    def test_what_is_not_literal_narrows_nothing(self):
        everything = self._needed()
        for pattern in (".*", "limit/a|actor/b", "(limit|actor)/.*", "l*actor/.*", "x?limit/.*", "x{0}limit/.*"):
            self.assertEqual(self._needed(pattern), everything, pattern)
        self.assertEqual(self._needed(r"limit/[|]a\|b"), ["limit"])

    def test_bars_need_only_the_suites_that_they_look_at(self):
        self.assertEqual(self._needed("actor/*/ring/1000/w:1"), ["actor/message", "actor/path"])
        self.assertEqual(self._needed("actor/*/ask/w:2", "limit/ask/w:2", "peers/caf/ask/w:2"), self._needed()[:3])

    def test_only_programs_between_nodes_need_the_suites_of_remoting(self):
        options = argparse.Namespace(ours="actor")
        self.assertEqual(cli._own_folders(options, ["ask/w:2"]), ("actor",))
        self.assertEqual(cli._own_folders(options, ["ask/w:2", "remote_one_way/w:2"]), ("actor", "remote"))


class _FakeSuite:
    """Runs nothing and answers with one sample each."""

    def __init__(self, name, names, rate=None):
        self.name = name
        self._names = names
        self._figures = {"real_time": 1.0, "cpu_time": 1.0} if rate is None else {"items_per_second": rate}

    def run_names(self):
        return {name: name for name in self._names}

    def run(self, names, min_time):
        del min_time
        return {"context": {}, "benchmarks": [{"name": name, **self._figures} for name in names]}


class RunTest(unittest.TestCase):
    def _run(self, *arguments):
        built = {
            suite.name: suite
            for suite in (_FakeSuite("utils/queue", ["Push", "Pop"]), _FakeSuite("limit", ["ring/1/w:1"]))
        }
        err = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(cli, "_build", return_value=(built, [])):
            with contextlib.redirect_stderr(err):
                code = cli.main(["run", "--out", f"{folder}/new", *arguments])
            loaded = results.load(f"{folder}/new") if code == 0 else None
        return code, loaded, err.getvalue()

    def test_everything_runs_five_times(self):
        code, loaded, err = self._run()
        self.assertEqual(code, 0)
        self.assertEqual(sorted(loaded.samples), ["limit/ring/1/w:1", "utils/queue/Pop", "utils/queue/Push"])
        self.assertEqual(len(loaded.samples["utils/queue/Push"]["time_ns"]), 5)
        for field in ("cores", "cpu_model", "kernel", "compiler", "commit", "load_before", "load_after"):
            self.assertIn(field, loaded.machine)
        self.assertIn("[10/10]", err)

    def test_a_filter_matches_whole_keys(self):
        _, loaded, _ = self._run("--filter", "utils/queue/P.*h", "--repetitions", "2")
        self.assertEqual(
            {key: len(metrics["time_ns"]) for key, metrics in loaded.samples.items()}, {"utils/queue/Push": 2}
        )

    def test_a_named_set_brings_its_own_settings(self):
        _, loaded, _ = self._run("--filter", "smoke")
        self.assertEqual(sorted(loaded.samples), ["utils/queue/Pop", "utils/queue/Push"])
        self.assertEqual(len(loaded.samples["utils/queue/Pop"]["time_ns"]), 3)

    def test_a_filter_that_matches_nothing_is_refused(self):
        code, _, err = self._run("--filter", "queue")
        self.assertEqual(code, 2)
        self.assertIn('--filter "queue" matches no benchmark and is none of the named sets (smoke)', err)
        self.assertIn("is not a regular expression", self._run("--filter", "(")[2])

    def test_listing_names_keys_or_says_that_there_are_none(self):
        built = {"limit": _FakeSuite("limit", ["ring/1/w:1", "ring/2/w:1"])}
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.object(cli, "_build", return_value=(built, [])):
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                self.assertEqual(cli.main(["list", "--filter", "limit/ring/1.*"]), 0)
                self.assertEqual(cli.main(["list", "--filter", "rings"]), 2)
        self.assertEqual(out.getvalue(), "limit/ring/1/w:1\n")
        self.assertIn('--filter "rings" matches no benchmark', err.getvalue())

    def test_listing_knows_named_sets_too(self):
        built = {"limit": _FakeSuite("limit", ["ping_pong/w:1", "ring/2/w:1"])}
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.object(cli, "_build", return_value=(built, [])):
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                self.assertEqual(cli.main(["list", "--filter", "smoke"]), 0)
        self.assertEqual(out.getvalue(), "limit/ping_pong/w:1\n")

    def test_a_program_that_fails_fails_the_run_but_not_the_others(self):
        with mock.patch.object(_FakeSuite, "run", side_effect=suites.RunError("gone")):
            code, _, err = self._run()
        self.assertEqual(code, 1)
        self.assertIn("failed: limit, utils/queue", err)


class AgainstTest(unittest.TestCase):
    def _against(self, new_rate, *arguments):
        """Exit code and output of a comparison with a commit whose programs reach a rate of 100."""

        def build(_options, wanted, repository=None):
            rate = new_rate if repository is None else 100.0
            names = ["ping_pong/w:1", "fresh/w:1"] if repository is None else ["ping_pong/w:1", "gone/w:1"]
            built = [_FakeSuite("actor/program", names, rate), _FakeSuite("utils/queue", ["Push"], rate)]
            return {suite.name: suite for suite in built if wanted(suite.name)}, []

        out = io.StringIO()
        with mock.patch.object(against, "commit_of", return_value="c" * 40), mock.patch.object(
            against, "tree_of", return_value=pathlib.Path("/elsewhere")
        ), mock.patch.object(cli, "_build", build):
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                code = cli.main(["against", "v1", *arguments])
        return code, out.getvalue()

    def test_what_is_slower_than_the_other_commit_fails(self):
        code, out = self._against(96.0)
        self.assertEqual(code, 1)
        self.assertIn("2 compared, 2 worse and 0 better by more than 3 %", out)
        self.assertEqual(self._against(98.0)[0], 0)
        self.assertEqual(self._against(96.0, "--threshold", "0.05")[0], 0)

    def test_a_group_of_bars_narrows_what_is_measured(self):
        _, out = self._against(100.0, "--group", "hot path")
        self.assertIn("actor/program/ping_pong/w:1", out)
        self.assertIn("1 compared", out)

    def test_a_comparison_of_nothing_is_refused(self):
        self.assertEqual(self._against(100.0, "--filter", "actor/program/gone/w:1")[0], 2)
        self.assertEqual(self._against(100.0, "--group", "speed")[0], 2)


if __name__ == "__main__":
    unittest.main()
