"""Documents of before the names of fields said their units.

`created_at` of such a document is `created_at_ms` now, and `amount` is `amount_atomic`. The values
are the same.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import attrs

UNITS = ("_ms", "_atomic")


def add_units(kind: Any, value: Any) -> Any:
    """A decoded value of that type, with units in the names of all its objects' fields.

    What does not match the type is left as it is.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if attrs.has(kind) and isinstance(value, dict):
        named = dict(value)
        for name, former, part in _fields_of(kind):
            if former in named and name not in named:
                named[name] = named.pop(former)
            if name in named:
                named[name] = add_units(part, named[name])
        return named
    if origin in (Union, types.UnionType, Annotated):
        for part in parts:  # a value matches one of them, and the others leave it as it is
            value = add_units(part, value)
    elif origin in (tuple, Sequence) and isinstance(value, list):
        kinds = parts[:1] * len(value) if origin is Sequence or parts[1:] == (...,) else parts
        value = [add_units(part, item) for part, item in zip(kinds, value, strict=False)]
    elif origin is Mapping and isinstance(value, dict):
        value = {key: add_units(parts[1], item) for key, item in value.items()}
    return value


@cache
def _fields_of(kind: Any) -> Sequence[tuple[str, str, Any]]:
    return tuple(_find_fields(kind))


def _find_fields(kind: Any) -> Iterator[tuple[str, str, Any]]:
    """The name, the name without its unit, and the type of each field."""
    hints = get_type_hints(kind, include_extras=True)
    names = {field.name for field in attrs.fields(kind)}
    for name in names:
        former = next((name.removesuffix(unit) for unit in UNITS if name.endswith(unit)), name)
        yield name, name if former in names else former, hints[name]
