#!/usr/bin/env python3
"""Writes BUILD files whose targets are an installed library's.

Usage: write_repository.py LIBRARIES_JSON NAME FOLDER

LIBRARIES_JSON has, for each repository, its packages and in each the targets:
    "strings"                links what pkg-config says of the repository's "pkg_config" pattern
    "grpc++=grpc++ protobuf" links what pkg-config says of these modules; words that begin with - are taken as they are
    "protoc=/protoc"         is the program of that name on PATH
    "protos=protobuf:a/*.b"  is a group of the files that match in the include folder of the pkg-config module before the colon
A name that ends in ? ("no_destructor?") may be missing: it came with a later version than the oldest that is supported. Everything else
has to be there, or the answer is an error that names the packages to install.
"""

import json
import pathlib
import shutil
import subprocess
import sys


class Missing(Exception):
    """Something is not installed, or not where it can be used."""


def pkg_config(*words):
    answer = subprocess.run(["pkg-config", *words], capture_output=True, text=True)
    if answer.returncode != 0:
        raise Missing(answer.stderr.strip())
    return answer.stdout.split()


def link(place, name, destination):
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(destination)


def rule(kind, **attributes):
    return "\n%s(\n%s)" % (kind, "".join("    %s = %s,\n" % (key, json.dumps(value)) for key, value in attributes.items()))


def program(place, target, name):
    found = shutil.which(name)
    if not found:
        raise Missing("there is no program %s on PATH" % name)
    link(place, target, found)
    return '\nexports_files(["%s"])' % target


def files(place, target, module, pattern):
    include = pathlib.Path(*pkg_config("--variable=includedir", module))
    found = sorted(str(path.relative_to(include)) for path in include.glob(pattern))
    if not found:
        raise Missing("there is no %s in %s" % (pattern, include))
    for name in found:
        link(place, name, include / name)
    return rule("filegroup", name=target, srcs=found)


def library(target, words):
    flags = [word for word in words if word.startswith("-")]
    modules = [word for word in words if not word.startswith("-")]
    # pkg-config leaves out the folders that the compiler searches by itself. Bazel takes no headers from other absolute paths.
    elsewhere = pkg_config("--cflags-only-I", *modules)
    if elsewhere:
        raise Missing("the headers of %s are in %s, which is not a folder that the compiler searches by itself"
                      % (" ".join(modules), " ".join(flag[2:] for flag in elsewhere)))
    flags += [flag for flag in pkg_config("--libs", *modules) if flag.startswith(("-L", "-l"))]
    return rule("cc_library", name=target, linkopts=list(dict.fromkeys(flags)))


def write(libraries, name, folder):
    """Writes the repository of that name into the folder, or exits with what is missing and how to get it."""
    if name not in libraries:
        sys.exit("@%s: there is no such repository; there are: %s" % (name, ", ".join(sorted(libraries))))
    description = libraries[name]
    if not shutil.which("pkg-config"):
        sys.exit("@%s: pkg-config is missing; run tools/setup, or install the package pkg-config" % name)
    (folder / "WORKSPACE").write_text("")
    for package, targets in {"": [], **description["packages"]}.items():
        place = folder / package
        place.mkdir(parents=True, exist_ok=True)
        lines = ['load("@rules_cc//cc:defs.bzl", "cc_library")', "", 'package(default_visibility = ["//visibility:public"])']
        for entry in targets:
            target, _, source = entry.partition("=")
            optional = target.endswith("?")
            target = target.rstrip("?")
            source = source or description["pkg_config"].format(target=target)
            try:
                if source.startswith("/"):
                    lines.append(program(place, target, source[1:]))
                elif ":" in source:
                    lines.append(files(place, target, *source.split(":")))
                else:
                    lines.append(library(target, source.split()))
            except Missing as missing:
                if not optional:
                    sys.exit("@%s//%s:%s: %s\nRun tools/setup, or install: %s" % (name, package, target, missing, description["debian"]))
        (place / "BUILD.bazel").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    write(json.loads(pathlib.Path(sys.argv[1]).read_text()), sys.argv[2], pathlib.Path(sys.argv[3]))
