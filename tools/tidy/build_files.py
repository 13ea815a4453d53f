"""Reads BUILD files: which rule names which sources."""

import ast
import dataclasses
import fnmatch
import posixpath

# Targets of which a target that depends on them may include the headers.
EXPORTERS = {"fraktor_cc_umbrella": "deps", "alias": "actual"}


@dataclasses.dataclass
class Rule:
    """A call in a BUILD file that has a name."""

    path: str  # of the BUILD file
    line: int
    kind: str
    name: str
    attributes: dict  # of literal texts, lists and booleans; others are left out

    @property
    def label(self):
        """The label of the target."""
        return f"//{posixpath.dirname(self.path)}:{self.name}"


def _value(node, variables):
    """The value of an expression of literals, or None if it is not one."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return variables.get(node.id)
    if isinstance(node, (ast.List, ast.Tuple)):
        return [value for value in (_value(entry, variables) for entry in node.elts) if value is not None]
    if isinstance(node, ast.Dict):
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _value(node.left, variables), _value(node.right, variables)
        # A list with a part that is no literal is the rest of it.
        if isinstance(left, list) or isinstance(right, list):
            return (left if isinstance(left, list) else []) + (right if isinstance(right, list) else [])
        return left + right if isinstance(left, str) and isinstance(right, str) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "glob":
        patterns = _value(node.args[0], variables) if node.args else None
        excluded = next((_value(k.value, variables) for k in node.keywords if k.arg == "exclude"), None) or []
        return Glob(patterns or [], excluded)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "select":
        return _selected(node, variables)
    return None


def _selected(node, variables):
    """All that a select may give: the lists of its branches, one after the other."""
    branches = node.args[0].values if node.args and isinstance(node.args[0], ast.Dict) else []
    values = [_value(branch, variables) for branch in branches]
    return [entry for value in values if isinstance(value, list) for entry in value]


class Glob(list):
    """The patterns of a glob, which `files` resolves."""

    def __init__(self, patterns, excluded):
        super().__init__(patterns)
        self.excluded = excluded


def rules(tree):
    """Yields the rules of all BUILD files."""
    for path in tree.with_suffix("BUILD.bazel"):
        variables = {}
        for statement in ast.parse(tree.text(path), path).body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                variables[statement.targets[0].id] = _value(statement.value, variables)
            if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
                continue
            call = statement.value
            attributes = {k.arg: _value(k.value, variables) for k in call.keywords if k.arg}
            if isinstance(attributes.get("name"), str) and isinstance(call.func, ast.Name):
                yield Rule(path, statement.lineno, call.func.id, attributes["name"], attributes)


def files(rule, attribute, tree):
    """The paths of the files that an attribute names; labels of other packages are left out."""
    folder = posixpath.dirname(rule.path)
    value = rule.attributes.get(attribute)
    if isinstance(value, Glob):
        inside = [path[len(folder) + 1:] for path in tree.paths if path.startswith(folder + "/")]
        chosen = [
            name for name in inside
            if any(fnmatch.fnmatch(name, pattern) for pattern in value)
            and not any(fnmatch.fnmatch(name, pattern) for pattern in value.excluded)
        ]
        return [posixpath.join(folder, name) for name in chosen]
    names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    own = [name for name in names if isinstance(name, str) and not name.startswith(("//", "@"))]
    return [posixpath.join(folder, name.lstrip(":")) for name in own]


def _label(text, folder):
    """The full label of a target of this repository; None for one of another."""
    text = text.removeprefix("@fraktor")
    if text.startswith("@"):
        return None
    if text.startswith("//"):
        package, colon, name = text[2:].partition(":")
        return f"//{package}:{name if colon else posixpath.basename(package)}"
    return f"//{folder}:{text.removeprefix(':')}"


def labels(rule, attribute):
    """The targets of this repository that an attribute names."""
    value = rule.attributes.get(attribute)
    names = [value] if isinstance(value, str) else value or []
    found = [_label(name, posixpath.dirname(rule.path)) for name in names]
    return [label for label in found if label is not None]


def exported(label, by_label):
    """The targets whose headers a target may include that depends on `label`."""
    rule = by_label.get(label)
    if rule is None or rule.kind not in EXPORTERS:
        return {label}
    found = set()
    for other in labels(rule, EXPORTERS[rule.kind]):
        found |= exported(other, by_label)
    return found


def test_only_files(tree):
    """The sources and headers that only tests and test-only targets have."""
    of_tests, of_product = set(), set()
    for rule in rules(tree):
        is_test = rule.attributes.get("testonly") is True or rule.kind.endswith(("_test", "_benchmark"))
        into = of_tests if is_test else of_product
        for attribute in ("srcs", "hdrs", "textual_hdrs"):
            into.update(files(rule, attribute, tree))
    return of_tests - of_product
