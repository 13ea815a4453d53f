#!/usr/bin/env python3
"""Writes a Bazel registry whose modules are all on this machine, for a build with MODULE.bazel and without network.

Usage: write_registry.py [--bazel FOLDER] [--libraries FILE] REGISTRY MODULE_BAZEL...

REGISTRY is the folder to write; Bazel takes it as --registry=file://REGISTRY. It gets every version of every module that the given
MODULE.bazel files, Bazel's own tools, and the modules that these lead to ask for:
    - modules of Debian's packages bazel-rules-*, bazel-skylib and so on are the folders below /usr/share/bazel (--bazel);
    - modules that //third_party/system has (--libraries) are BUILD files over the installed library;
    - what only Bazel's tools or Debian's modules ask for, and Debian does not have, is an empty module: no C++ build uses it.
All versions of a module are the same folder: whatever is installed. A given MODULE.bazel that asks for something else than the first two
is an error.
"""

import argparse
import ast
import json
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).absolute().parent
sys.path.insert(0, str(HERE.parent / "system"))
import write_repository  # pylint: disable=wrong-import-position


class Module:
    """A MODULE.bazel file: what it is called, what it asks for."""

    def __init__(self, path):
        self.path = path
        self.text = path.read_text()
        self.attributes = {}
        self.dependencies = []  # of attributes of bazel_dep
        self.overridden = set()

        def ignore(*_, **__):
            return None

        def override(module_name, **_):
            self.overridden.add(module_name)

        class Extension:
            def __getattr__(self, tag):
                return ignore

        # MODULE.bazel files are Starlark without definitions, which Python reads as well.
        functions = {
            "module": lambda **attributes: self.attributes.update(attributes),
            "bazel_dep": lambda **attributes: self.dependencies.append(attributes),
            "use_extension": lambda *_, **__: Extension(),
            "use_repo_rule": lambda *_, **__: ignore,
            "archive_override": override,
            "git_override": override,
            "local_path_override": override,
            "use_repo": ignore,
            "register_toolchains": ignore,
            "register_execution_platforms": ignore,
            "single_version_override": ignore,
            "multiple_version_override": ignore,
        }
        try:
            exec(compile(self.text, str(path), "exec"), {"__builtins__": {}, **functions})  # pylint: disable=exec-used
        except Exception as error:  # whatever the file does wrong
            sys.exit("%s: not understood: %s: %s" % (path, type(error).__name__, error))

    @property
    def name(self):
        return self.attributes.get("name", "")

    def asked_by_others(self):
        """What it asks for when it is not the root: (name, version)."""
        return [(d["name"], d["version"]) for d in self.dependencies if "version" in d and not d.get("dev_dependency")]

    def as_version(self, version):
        """The text of the file with another version."""
        lines = self.text.splitlines()
        attributes = {**self.attributes, "version": version}
        call = "module(%s)" % ", ".join("%s = %s" % (key, json.dumps(value)) for key, value in attributes.items())
        for node in ast.parse(self.text).body:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "module":
                return "\n".join(lines[:node.lineno - 1] + [call] + lines[node.end_lineno:]) + "\n"
        sys.exit("%s: has no module()" % self.path)


class Registry:
    """The folder that is written."""

    def __init__(self, folder):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "bazel_registry.json").write_text("{}\n")

    def add(self, name, version, source, text):
        place = self.folder / "modules" / name / version
        place.mkdir(parents=True)
        (place / "MODULE.bazel").write_text(text)
        (place / "source.json").write_text(json.dumps({"type": "local_path", "path": str(source)}) + "\n")


def root_requests(root, debian, system):
    """What a given MODULE.bazel asks for: (name, version). Exits if the machine cannot give it."""
    for dependency in root.dependencies:
        name, version = dependency["name"], dependency.get("version")
        if name in root.overridden:
            continue
        if not version:
            sys.exit("%s: bazel_dep %s has no version" % (root.path, name))
        if name not in debian and name not in system:
            sys.exit("%s: asks for %s %s, which is neither a module of Debian's Bazel packages nor in third_party/system/libraries.json"
                     % (root.path, name, version))
        if name in system and dependency.get("repo_name", name) != system[name]:
            sys.exit("%s: calls %s @%s; BUILD files and third_party/system call it @%s"
                     % (root.path, name, dependency.get("repo_name", name), system[name]))
        yield name, version


def write(folder, roots, bazel, libraries):
    debian = {}
    for path in sorted(bazel.glob("rules/*/MODULE.bazel")) + sorted(bazel.glob("tools/*/MODULE.bazel")):
        module = Module(path)
        debian[module.name] = module
    tools = bazel / "embedded_tools" / "MODULE.bazel"
    if not tools.exists():
        sys.exit("%s: not found; this needs Debian's Bazel 7 or later, package bazel-bootstrap" % tools)
    system = {description["module"]: repository for repository, description in libraries.items()}

    registry = Registry(folder)
    waiting = [request for root in roots for request in root_requests(root, debian, system)]
    versions_of_rules_cc = [version for name, version in waiting if name == "rules_cc"]
    waiting += Module(tools).asked_by_others()
    served = set()
    while waiting:
        name, version = request = waiting.pop()
        if request in served:
            continue
        served.add(request)
        if name in debian:
            registry.add(name, version, debian[name].path.parent, debian[name].as_version(version))
            waiting += debian[name].asked_by_others()
        elif name in system:
            place = folder / "system" / system[name]
            if not place.exists():
                place.mkdir(parents=True)
                write_repository.write(libraries, system[name], place)
            needs = "".join('bazel_dep(name = "rules_cc", version = "%s")\n' % v for v in versions_of_rules_cc[:1])
            registry.add(name, version, place, 'module(name = "%s", version = "%s")\n%s' % (name, version, needs))
        else:
            place = folder / "empty" / name
            place.mkdir(parents=True, exist_ok=True)
            (place / "BUILD.bazel").write_text("# %s is not on this machine; write_registry.py says why there is an empty module.\n" % name)
            registry.add(name, version, place, 'module(name = "%s", version = "%s")\n' % (name, version))
    return served


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bazel", type=pathlib.Path, default=pathlib.Path("/usr/share/bazel"))
    parser.add_argument("--libraries", type=pathlib.Path, default=HERE.parent / "system" / "libraries.json")
    parser.add_argument("registry", type=pathlib.Path)
    parser.add_argument("modules", type=pathlib.Path, nargs="+")
    options = parser.parse_args()
    write(options.registry.absolute(), [Module(path) for path in options.modules], options.bazel, json.loads(options.libraries.read_text()))


if __name__ == "__main__":
    main()
