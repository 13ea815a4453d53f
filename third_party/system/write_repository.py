#!/usr/bin/env python3
"""Writes BUILD files whose targets link an installed library.

Usage: write_repository.py LIBRARIES_JSON NAME FOLDER

LIBRARIES_JSON has, for each repository, its packages and in each the targets:
    "strings"                links what pkg-config says of the repository's "pkg_config" pattern
    "grpc++=grpc++ protobuf" links what pkg-config says of these modules; words that begin with - are taken as they are
    "protoc=/protoc"         is the program of that name on PATH
Targets that the installed version does not have are left out, so that one list serves old and new versions; a repository with nothing
left is an error that names the package to install.
"""

import json
import pathlib
import shutil
import subprocess
import sys


def link_flags(words):
    """The -L and -l flags for pkg-config modules and literal flags, or None if a module is not installed."""
    flags = [word for word in words if word.startswith("-")]
    modules = [word for word in words if not word.startswith("-")]
    answer = subprocess.run(["pkg-config", "--libs"] + modules, capture_output=True, text=True)
    if answer.returncode != 0:
        return None
    flags += [flag for flag in answer.stdout.split() if flag.startswith(("-L", "-l"))]
    return list(dict.fromkeys(flags))


def write(libraries, name, folder):
    library = libraries[name]
    if not shutil.which("pkg-config"):
        sys.exit("pkg-config is missing: run tools/setup, or install the package pkg-config")
    found = 0
    (folder / "WORKSPACE").write_text("")
    for package, targets in {"": [], **library["packages"]}.items():
        place = folder / package
        place.mkdir(parents=True, exist_ok=True)
        lines = ['load("@rules_cc//cc:defs.bzl", "cc_library")', "", 'package(default_visibility = ["//visibility:public"])']
        for entry in targets:
            target, _, source = entry.partition("=")
            source = source or library["pkg_config"].format(target=target)
            if source.startswith("/"):
                program = shutil.which(source[1:])
                if not program:
                    continue
                link = place / target
                link.unlink(missing_ok=True)
                link.symlink_to(program)
                lines.append('\nexports_files(["%s"])' % target)
            else:
                flags = link_flags(source.split())
                if flags is None:
                    continue
                lines.append("\ncc_library(\n    name = %s,\n    linkopts = %s,\n)" % (json.dumps(target), json.dumps(flags)))
            found += 1
        (place / "BUILD.bazel").write_text("\n".join(lines) + "\n")
    if not found:
        sys.exit("@%s: not installed; run tools/setup, or install: %s" % (name, library["debian"]))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    write(json.loads(pathlib.Path(sys.argv[1]).read_text()), sys.argv[2], pathlib.Path(sys.argv[3]))
