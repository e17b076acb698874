"""The decorators of wire classes: `frozen_body` for requests, `frozen_view` for responses.

Both are `attrs.frozen` with fields by keyword only. Each process of the service makes some 250 of
these classes when it starts, and attrs compiles `__repr__`, `__eq__` and `__hash__` for each, which
hardly anything calls. Here all classes share one of each, so that a process starts a tenth sooner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

import attrs

from payments_core.brief_repr import brief_repr

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(attrs.field,))
def frozen_body(kind: type[T]) -> type[T]:
    """Make a class of request bodies."""
    return _share_methods(attrs.frozen(kw_only=True, eq=False, repr=False)(kind))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(attrs.field,))
def frozen_view(kind: type[T]) -> type[T]:
    """Make a class of responses, which msgspec reads from the instance's dict."""
    return _share_methods(attrs.frozen(kw_only=True, slots=False, eq=False, repr=False)(kind))


def _share_methods(kind: type[T]) -> type[T]:
    for name, method in SHARED.items():
        setattr(kind, name, method)
    return kind


def _equals(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash(_values(self))


def _values(instance: Any) -> tuple[Any, ...]:
    fields = attrs.fields(type(instance))
    return tuple(getattr(instance, field.name) for field in fields if field.eq)


SHARED: dict[str, Callable[..., Any]] = {
    "__repr__": brief_repr,
    "__eq__": _equals,
    "__hash__": _hash,
}
