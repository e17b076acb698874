"""The `repr` of records and of what callers pass and receive: one short line.

`__repr__ = brief_repr` in the body of an attrs class; attrs then makes none of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

import attrs

LONGEST = 300
"""The maximum number of characters of a `repr`."""

_LONGEST_VALUE = 90
"""The maximum number of characters of one field's value."""


def brief_repr(instance: Any) -> str:
    """The class, then the fields that say something: `id` and `status` come first.

    A field does not show if it has `repr=False`, or if its value is its default, None or empty.
    `...` stands for what has no room.
    """
    return _write(instance, LONGEST)


def _write(instance: Any, longest: int) -> str:
    kind: Any = type(instance)
    name = kind.__name__
    room = longest - len(name) - len("()")
    shown: list[str] = []
    for field in _shown_fields(kind):
        value = getattr(instance, field.name)
        if value is None or _is_empty(value) or value == _default(field, instance):
            continue
        text = f"{field.alias}={_write_value(value)}"
        room -= len(text) + len(", ")
        if room < len("..."):
            shown.append("...")
            break
        shown.append(text)
    return f"{name}({', '.join(shown)})"


def _write_value(value: Any) -> str:
    kind: Any = type(value)
    if kind.__repr__ is brief_repr:
        return _write(value, _LONGEST_VALUE)
    if isinstance(value, (tuple, list)) and attrs.has(type(value[0])):
        return f"<{len(value)} {type(value[0]).__name__}>"
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


def _is_empty(value: Any) -> bool:
    return isinstance(value, Collection) and not value


def _default(field: attrs.Attribute[Any], instance: Any) -> Any:
    default: Any = field.default
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        return default.factory(instance) if default.takes_self else default.factory()
    return default


@cache
def _shown_fields(kind: Any) -> tuple[attrs.Attribute[Any], ...]:
    fields = [field for field in attrs.fields(kind) if field.repr]
    return tuple(sorted(fields, key=lambda field: _FIRST.get(field.name, len(_FIRST))))


_FIRST = {"id": 0, "status": 1}
