#!/usr/bin/env python3
"""Runs write_registry.py on small folders in the place of Debian's Bazel."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
FILES = {
    "bazel/embedded_tools/MODULE.bazel": """
module(name = "bazel_tools")
bazel_dep(name = "rules_cc", version = "0.0.11")
bazel_dep(name = "nuts", version = "3.0")
bazel_dep(name = "apple_support", version = "1.23.1")
configure = use_extension("//tools/cpp:configure.bzl", "configure")
configure.tag(name = "x")
use_repo(configure, "local_config_cc")
register_toolchains("@local_config_cc//:all")
""",
    "bazel/rules/cc/MODULE.bazel": """
module(
    name = "rules_cc",
    version = "0.0.11",
    compatibility_level = 1,
)
bazel_dep(name = "skylib", version = "1.3")
bazel_dep(name = "stardoc", version = "0.7", dev_dependency = True)
[register_toolchains("@" + name + "//:all") for name in ["a", "b"]]
""",
    "bazel/tools/skylib/MODULE.bazel": 'module(name = "skylib")\n',
    "libraries.json": json.dumps({"com_nuts": {"module": "nuts", "debian": "libnuts-dev", "packages": {"": ["nuts=nuts"]}}}),
    "bin/pkg-config": '#!/bin/sh\n[ "$1" != --libs ] || echo -lnuts\n',
}
ROOT = """
module(name = "ours")
bazel_dep(name = "rules_cc", version = "0.2.22")
bazel_dep(name = "nuts", version = "9.1", dev_dependency = True, repo_name = "com_nuts")
"""


class WriteRegistryTest(unittest.TestCase):

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)
        for name, text in FILES.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        (self.root / "bin/pkg-config").chmod(0o755)

    def write(self, *modules):
        paths = []
        for number, text in enumerate(modules):
            paths.append(self.root / ("MODULE%d.bazel" % number))
            paths[-1].write_text(text)
        return subprocess.run([sys.executable, HERE / "write_registry.py", "--bazel", self.root / "bazel", "--libraries",
                               self.root / "libraries.json", self.root / "registry"] + paths, capture_output=True, text=True,
                              env={"PATH": "%s:/usr/bin:/bin" % (self.root / "bin"), "PYTHONDONTWRITEBYTECODE": "1"})

    def served(self):
        return {"%s %s" % path.parts[-3:-1] for path in (self.root / "registry/modules").glob("*/*/source.json")}

    def module(self, name, version):
        return (self.root / "registry/modules" / name / version / "MODULE.bazel").read_text()

    def source(self, name, version):
        return json.loads((self.root / "registry/modules" / name / version / "source.json").read_text())

    def test_serves_every_version_that_anybody_asks_for(self):
        self.assertEqual(self.write(ROOT).stderr, "")
        self.assertEqual(self.served(), {
            "rules_cc 0.2.22", "rules_cc 0.0.11", "nuts 9.1", "nuts 3.0", "skylib 1.3", "apple_support 1.23.1",
        })

    def test_takes_debian_s_modules_where_they_are_under_the_version_asked_for(self):
        self.assertEqual(self.write(ROOT).stderr, "")
        text = self.module("rules_cc", "0.2.22")
        self.assertIn('module(name = "rules_cc", version = "0.2.22", compatibility_level = 1)', text)
        self.assertNotIn("0.0.11", text)
        self.assertIn('bazel_dep(name = "skylib", version = "1.3")', text)
        self.assertEqual(self.source("rules_cc", "0.2.22"), {"type": "local_path", "path": str(self.root / "bazel/rules/cc")})

    def test_makes_modules_of_installed_libraries(self):
        self.assertEqual(self.write(ROOT).stderr, "")
        self.assertIn('bazel_dep(name = "rules_cc", version = "0.2.22")', self.module("nuts", "9.1"))
        self.assertIn('linkopts = ["-lnuts"]', (pathlib.Path(self.source("nuts", "9.1")["path"]) / "BUILD.bazel").read_text())

    def test_leaves_empty_what_only_bazel_asks_for(self):
        self.assertEqual(self.write(ROOT).stderr, "")
        self.assertEqual(os.listdir(self.source("apple_support", "1.23.1")["path"]), ["BUILD.bazel"])

    def test_refuses_a_pin_that_it_cannot_serve(self):
        answer = self.write(ROOT + 'bazel_dep(name = "apple_support", version = "1.23.1")\n')
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("asks for apple_support 1.23.1, which is neither", answer.stderr)

    def test_refuses_a_pin_without_version(self):
        answer = self.write('bazel_dep(name = "rules_cc")\n')
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("bazel_dep rules_cc has no version", answer.stderr)

    def test_refuses_a_repository_name_that_the_other_world_does_not_have(self):
        answer = self.write('bazel_dep(name = "nuts", version = "9.1")\n')
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("calls nuts @nuts; BUILD files and third_party/system call it @com_nuts", answer.stderr)

    def test_needs_nothing_of_what_is_overridden(self):
        consumer = 'bazel_dep(name = "ours")\nlocal_path_override(module_name = "ours", path = "../..")\n'
        self.assertEqual(self.write(ROOT, consumer).stderr, "")
        self.assertNotIn("ours", " ".join(self.served()))

    def test_says_which_file_it_does_not_understand(self):
        answer = self.write("include('//:more.MODULE.bazel')\n")
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("MODULE0.bazel: not understood", answer.stderr)

    def test_replaces_an_earlier_registry(self):
        self.assertEqual(self.write(ROOT).returncode, 0)
        self.assertEqual(self.write(ROOT.replace("9.1", "9.2")).returncode, 0)
        self.assertNotIn("nuts 9.1", self.served())


if __name__ == "__main__":
    unittest.main()
