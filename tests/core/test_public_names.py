"""What `from payments_core import X` gives: three lists in `payments_core/__init__.py` agree."""

from __future__ import annotations

import ast
import inspect
import pydoc
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import payments_core
from docs import python_reference
from payments_core import KeyRing, PaymentsService, Resources, errors
from payments_core.storage.memory.adapter import MemoryStorage

SOURCE = Path(payments_core.__file__)

STORAGE_DECLARATION = "collection"
"""The attribute of a record's class that only storages read."""


def names_for_type_checkers() -> dict[str, str]:
    """Each name that is imported under `TYPE_CHECKING`, as `module:name`."""
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.asname or alias.name: f"{node.module}:{alias.name}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_the_names_that_are_loaded_lazily_are_those_that_type_checkers_see() -> None:
    lazy = {name: ":".join(home) for name, home in payments_core._LAZY.items()}
    assert lazy == names_for_type_checkers()


def test_all_names_them_once_each() -> None:
    assert sorted(payments_core.__all__) == sorted(names_for_type_checkers())


@pytest.mark.parametrize("name", payments_core.__all__)
def test_every_public_name_can_be_imported_and_is_documented(name: str) -> None:
    value = getattr(payments_core, name)
    assert name in dir(payments_core)
    assert inspect.getdoc(value)


def test_another_name_is_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchName'"):
        payments_core.NoSuchName  # noqa: B018


def test_every_error_is_public() -> None:
    kinds = {
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and value.__module__ == errors.__name__
    }
    assert kinds <= {getattr(payments_core, name) for name in payments_core.__all__}


def test_what_a_public_class_holds_is_public_too() -> None:
    public = {getattr(payments_core, name) for name in payments_core.__all__}
    missing = {
        f"{kind.__name__}.{field}: {held.__name__}"
        for kind in public
        if inspect.isclass(kind) and attrs.has(kind)
        for field, hint in typing.get_type_hints(kind).items()
        for held in classes_in(hint)
        if held not in public and attrs.has(held) and field != STORAGE_DECLARATION
    }
    assert not missing, sorted(missing)


def classes_in(hint: Any) -> Iterator[type]:
    """The classes of this library that a type hint names."""
    for part in (typing.get_origin(hint), *typing.get_args(hint)):
        if part is not None:
            yield from classes_in(part)
    if inspect.isclass(hint) and hint.__module__.startswith("payments_core"):
        yield hint


def test_what_operations_take_and_return_has_an_example() -> None:
    """The page of the Python API has the examples, and test_docs.py runs it.

    A class that others hold is in their examples; errors are in their operations'.
    """
    classes = [
        value
        for value in (getattr(payments_core, name) for name in payments_core.__all__)
        if inspect.isclass(value)
    ]
    public = {kind for kind in classes if not issubclass(kind, Exception)}
    groups = python_reference.list_resources().values()
    kinds = {PaymentsService, Resources, *(kind for group in groups for kind in group.values())}
    for kind in tuple(kinds):
        for name, operation in inspect.getmembers(kind, inspect.isfunction):
            if name == "__init__" or not name.startswith("_"):
                for hint in typing.get_type_hints(inspect.unwrap(operation)).values():
                    kinds |= public & {*classes_in(hint)}
    assert sorted(kind.__name__ for kind in kinds if not has_example(kind)) == []
    held = {
        found
        for kind in filter(attrs.has, classes)
        for hint in typing.get_type_hints(kind).values()
        for found in classes_in(hint)
    }
    assert sorted(kind.__name__ for kind in public - held if not has_example(kind)) == []


def has_example(kind: type) -> bool:
    return "\n\n>>> " in (inspect.getdoc(kind) or "")


def test_a_receiver_does_not_load_the_service() -> None:
    script = (
        "import sys; from payments_core.webhooks import verify; "
        "print('payments_core.service' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_the_service_shows_resources_and_few_more() -> None:
    """What the service is made of is behind one attribute, `parts`."""
    service = PaymentsService(MemoryStorage(), KeyRing.parse(KeyRing.generate()))
    shown = {name for name in vars(service) if not name.startswith("_")}
    assert shown == {"settings", "chains", "networks", "parts", *python_reference.OF_THE_SERVICE}


def test_help_says_what_each_attribute_of_the_service_is() -> None:
    text = pydoc.render_doc(PaymentsService, renderer=pydoc.plaintext)
    for name, value in vars(PaymentsService).items():
        if not name.startswith("_"):
            first_line = (inspect.getdoc(value) or "").split("\n")[0]
            assert first_line, name
            assert first_line in text, name


def test_the_methods_that_the_reference_leaves_out_are_there() -> None:
    methods = {f"KeyRing.{name}" for name in vars(KeyRing)}
    assert python_reference.NOT_FOR_CALLERS.keys() <= methods


def test_the_reference_is_the_same_text_in_every_process() -> None:
    script = "from docs.python_reference import page; print(page())"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True,
        cwd=SOURCE.parent.parent, env={"PYTHONHASHSEED": "1"},
    )  # fmt: skip
    assert done.stdout == python_reference.page() + "\n"
