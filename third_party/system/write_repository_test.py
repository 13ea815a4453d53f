#!/usr/bin/env python3
"""Runs write_repository.py against a pkg-config that knows two modules."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
PKG_CONFIG = """#!/bin/sh
case "$*" in
  "--cflags-only-I nuts"|"--cflags-only-I nuts bolts") ;;
  "--libs nuts") echo -L/opt/lib -lnuts -pthread ;;
  "--libs nuts bolts") echo -lnuts -lbolts -lnuts ;;
  "--variable=includedir nuts") echo "$INCLUDE" ;;
  "--cflags-only-I far") echo -I/opt/far/include ;;
  *) echo "Package $* was not found" >&2; exit 1 ;;
esac
"""


class WriteRepositoryTest(unittest.TestCase):

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)
        for folder in ["bin", "include/nuts", "out"]:
            (self.root / folder).mkdir(parents=True)
        for name, text in {"pkg-config": PKG_CONFIG, "nutcracker": "#!/bin/sh\n"}.items():
            (self.root / "bin" / name).write_text(text)
            (self.root / "bin" / name).chmod(0o755)
        self.path = "%s:/usr/bin:/bin" % (self.root / "bin")

    def write(self, *targets, package="", name="workshop"):
        libraries = {"workshop": {"debian": "libnuts-dev nut-tools", "pkg_config": "{target}", "packages": {package: list(targets)}}}
        (self.root / "libraries.json").write_text(json.dumps(libraries))
        return subprocess.run([sys.executable, HERE / "write_repository.py", self.root / "libraries.json", name, self.root / "out"],
                              capture_output=True, text=True, env={"PATH": self.path, "INCLUDE": str(self.root / "include")})

    def build_file(self, package=""):
        return (self.root / "out" / package / "BUILD.bazel").read_text()

    def test_links_what_pkg_config_says(self):
        self.assertEqual(self.write("nuts", package="a/b").stderr, "")
        self.assertIn('name = "nuts",\n    linkopts = ["-L/opt/lib", "-lnuts"],', self.build_file("a/b"))
        self.assertNotIn("cc_library(", self.build_file())

    def test_links_several_modules_and_words_of_our_own_once(self):
        self.assertEqual(self.write("both=-lextra nuts bolts").stderr, "")
        self.assertIn('name = "both",\n    linkopts = ["-lextra", "-lnuts", "-lbolts"],', self.build_file())

    def test_leaves_out_what_may_be_missing(self):
        self.assertEqual(self.write("nuts", "washers?").stderr, "")
        self.assertNotIn("washers", self.build_file())

    def test_keeps_what_may_be_missing_but_is_there(self):
        self.assertEqual(self.write("nuts?").stderr, "")
        self.assertIn('name = "nuts"', self.build_file())

    def test_names_the_packages_of_what_is_missing(self):
        answer = self.write("nuts", "washers", package="a")
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("@workshop//a:washers", answer.stderr)
        self.assertIn("install: libnuts-dev nut-tools", answer.stderr)

    def test_exports_a_program(self):
        self.assertEqual(self.write("cracker=/nutcracker").stderr, "")
        self.assertIn('exports_files(["cracker"])', self.build_file())
        self.assertEqual(os.readlink(self.root / "out" / "cracker"), str(self.root / "bin" / "nutcracker"))

    def test_names_the_program_that_is_missing(self):
        answer = self.write("cracker=/hammer")
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("no program hammer on PATH", answer.stderr)

    def test_groups_files_of_the_include_folder(self):
        for name in ["b.proto", "a.proto", "c.h"]:
            (self.root / "include" / "nuts" / name).write_text(name)
        self.assertEqual(self.write("protos=nuts:nuts/*.proto").stderr, "")
        self.assertIn('name = "protos",\n    srcs = ["nuts/a.proto", "nuts/b.proto"],', self.build_file())
        self.assertEqual((self.root / "out" / "nuts" / "a.proto").read_text(), "a.proto")

    def test_refuses_headers_that_the_compiler_would_not_find(self):
        answer = self.write("far")
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("/opt/far/include", answer.stderr)

    def test_refuses_a_repository_that_nobody_described(self):
        answer = self.write("nuts", name="garage")
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("@garage: there is no such repository; there are: workshop", answer.stderr)

    def test_says_that_pkg_config_is_missing(self):
        self.path = str(self.root / "out")
        answer = self.write("nuts")
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("pkg-config is missing", answer.stderr)


if __name__ == "__main__":
    unittest.main()
