"""Tests of public_headers.py."""

import unittest

from tidy import public_headers
from tidy import source_tree

_PUBLIC = 'visibility = ["//visibility:public"]'
_HIDDEN = "actor/a/a.h:1: no public target has or exports it; make its target public, or move the header to the folder "
_HIDDEN += "`internal`"


def _hidden(build, header="actor/a/a.h"):
    tree = source_tree.FakeTree({"actor/a/BUILD.bazel": build, header: ""})
    return [str(found) for found in public_headers.check_visibility(tree)]


def _without_example(build, text):
    tree = source_tree.FakeTree({"b/BUILD.bazel": build, "b/b.h": text})
    return [str(found) for found in public_headers.check_examples(tree)]


class PublicHeadersTest(unittest.TestCase):
    """Which headers programs can include, and how these begin."""

    def test_finds_a_header_of_a_target_that_is_not_public(self):
        self.assertEqual(_hidden('fraktor_cc_library(name = "a", hdrs = ["a.h"])\n'), [_HIDDEN])

    def test_finds_a_header_without_a_target(self):
        self.assertEqual(_hidden(""), [_HIDDEN])

    def test_is_quiet_about_a_header_of_a_public_target(self):
        self.assertEqual(_hidden(f'fraktor_cc_library(name = "a", hdrs = ["a.h"], {_PUBLIC})\n'), [])

    def test_is_quiet_about_a_header_that_a_public_umbrella_exports(self):
        library = 'fraktor_cc_library(name = "x", hdrs = ["a.h"])\n'
        self.assertEqual(_hidden(library + f'fraktor_cc_umbrella(name = "a", deps = [":x"], {_PUBLIC})\n'), [])
        self.assertEqual(_hidden(library + 'fraktor_cc_umbrella(name = "a", deps = [":x"])\n'), [_HIDDEN])

    def test_is_quiet_about_headers_that_programs_do_not_include(self):
        self.assertEqual(_hidden("", header="actor/a/internal/a.h"), [])
        self.assertEqual(_hidden('fraktor_cc_library(name = "a", testonly = True, hdrs = ["a.h"])\n'), [])
        self.assertEqual(_hidden("", header="store/a/a.h"), [])

    def test_compares_the_page_of_headers(self):
        build = f'fraktor_cc_library(name = "a", hdrs = ["a.h"], {_PUBLIC})\n'
        build += 'fraktor_cc_library(name = "b", testonly = True, hdrs = ["b.h"])\n'
        files = {"actor/a/BUILD.bazel": build, "actor/a/a.h": "", "actor/a/b.h": ""}

        def found(page):
            tree = source_tree.FakeTree(files | {"docs/headers.md": page})
            return [(entry.path, entry.line) for entry in public_headers.check_page(tree)]

        self.assertEqual(found("| `actor/a/a.h` | count |\n"), [])
        self.assertEqual(found(""), [("actor/a/a.h", 1)])
        self.assertEqual(found("| `actor/a/a.h` | count |\n| `actor/a/a.h` | add |\n"), [("docs/headers.md", 2)])
        self.assertEqual(found("\n| `actor/a/b.h` | test |\n| `actor/a/a.h` | count |\n"), [("docs/headers.md", 2)])

    def test_finds_a_public_header_without_an_example(self):
        public = f'fraktor_cc_library(name = "b", hdrs = ["b.h"], {_PUBLIC})\n'
        found = _without_example(public, "// B: counts.\n#ifndef B_H_\n")
        self.assertEqual(found, ["b/b.h:1: programs include it, and its first comment has no example"])
        self.assertEqual(_without_example(public, "// B: counts.\n//\n//   B b;\n#ifndef B_H_\n"), [])

    def test_asks_no_other_header_for_an_example(self):
        self.assertEqual(_without_example('fraktor_cc_library(name = "b", hdrs = ["b.h"])\n', "// B: counts.\n"), [])


if __name__ == "__main__":
    unittest.main()
