"""What was public stays so, and what becomes public is entered on purpose."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs import public_interface
from tests.public_types import NOT_PUBLIC, PACKAGES


def test_no_public_name_is_gone_and_each_new_one_is_listed() -> None:
    listed = public_interface.LISTED.read_text(encoding="utf-8").split("\n")[:-1]
    found = list(public_interface.names())
    assert [name for name in listed if name not in found] == [], "deprecate them first"
    assert [name for name in found if name not in listed] == [], "enter them in the list"
    assert listed == sorted(listed)


def test_every_public_module_says_what_it_is() -> None:
    for path in public_interface.MODULES:
        assert (importlib.import_module(path).__doc__ or "").strip(), path


def test_a_checker_of_any_kind_knows_the_type_of_every_public_attribute() -> None:
    """What pyright finds where mypy infers: `make public-types` asks pyright itself."""
    files = [file for package in PACKAGES for file in sorted(Path(package).rglob("*.py"))]
    public = [
        file for file in files if not ".".join(file.with_suffix("").parts).startswith(NOT_PUBLIC)
    ]
    assert len(public) > 500
    assert [
        f"{file}: {name}"
        for file in public
        for kind in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(kind, ast.ClassDef) and not kind.name.startswith("_")
        for name in _untyped_attributes(kind)
    ] == [], "annotate them where they are assigned"


def _untyped_attributes(kind: ast.ClassDef) -> Iterator[str]:
    """Those that no annotation, constant or parameter of `__init__` alone gives a type."""
    typed, assigned = set[str](), dict[str, list[bool]]()
    for statement in kind.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if ast.unparse(statement.annotation) == "ClassVar":
                yield f"{kind.name}.{statement.target.id}"
            typed.add(statement.target.id)
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            called = map(ast.unparse, statement.targets)
            yield from (f"{kind.name}.{name}" for name in called if not name.startswith("_"))
        if not isinstance(statement, ast.FunctionDef):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
                typed.add(node.target.attr)
            if isinstance(node, ast.Assign | ast.AugAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                simple = isinstance(node.value, ast.Name | ast.Constant)
                for name in _own_attributes(targets):
                    assigned.setdefault(name, []).append(simple and statement.name == "__init__")
    for name, ways in assigned.items():
        if name not in typed and not name.startswith("_") and ways != [True]:
            yield f"{kind.name}.{name}"


def _own_attributes(targets: list[ast.expr]) -> Iterator[str]:
    for target in targets:
        for one in target.elts if isinstance(target, ast.Tuple) else (target,):
            if isinstance(one, ast.Attribute) and getattr(one.value, "id", "") == "self":
                yield one.attr


@pytest.mark.parametrize(
    "name", [path for path in public_interface.MODULES if ".conformance." in path]
)
def test_the_class_that_a_suite_shows_has_hooks_of_the_suite(name: str) -> None:
    suite = importlib.import_module(name)
    shown = re.search(r"^    class \w+\((\w+)\):\n((?: {8}.*\n|\n)+)", suite.__doc__ or "", re.M)
    assert shown is not None
    hooks = set(re.findall(r"^ {8}(?:def )?(\w+)(?:\(| = )", shown[2], re.M)) - {"_place"}
    kind = getattr(suite, shown[1])
    declared = set(dir(kind)).union(
        *(vars(each).get("__annotations__", {}) for each in kind.__mro__)
    )
    assert hooks and hooks <= declared
