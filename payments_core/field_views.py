"""Fields in the form for people, beside the field itself in the form for arithmetic.

An object has `created_at_ms`, milliseconds since the Unix epoch, and shows it as `created_at`, an
aware datetime; it has `amount_atomic`, and shows it as `amount`, a decimal text. The column of a
field with a view has the view's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from types import MappingProxyType
from typing import Any, Generic, TypeVar, overload

from payments_core.clock import to_datetime
from payments_core.money import format_amount

T = TypeVar("T")


class FieldView(Generic[T]):
    """An attribute that is computed from a field of its object; nobody can set it."""

    def __init__(self, field: str, show: Callable[[Any, Any], T], text: str) -> None:
        self.field = field
        self._show = show
        self.__doc__ = text

    @overload
    def __get__(self, instance: None, owner: type) -> FieldView[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> FieldView[T] | T:
        return self if instance is None else self._show(instance, getattr(instance, self.field))


def instant_view(field: str) -> FieldView[datetime]:
    """The time of a field in milliseconds, as an aware datetime in UTC."""
    return FieldView(field, _show_instant, f"`{field}` as an aware datetime in UTC.")


def optional_instant_view(field: str) -> FieldView[datetime | None]:
    """As `instant_view`, for a field that may be None."""
    return FieldView(field, _show_or_none, f"`{field}` as an aware datetime in UTC, or None.")


def amount_view(field: str) -> FieldView[str]:
    """The amount of a field in its object's `asset`, as a decimal text."""
    return FieldView(field, _show_amount, f"`{field}` as a decimal text, for example `25.00`.")


def _show_instant(_: Any, instant: int) -> datetime:
    return to_datetime(instant)


def _show_or_none(_: Any, instant: int | None) -> datetime | None:
    return None if instant is None else to_datetime(instant)


def _show_amount(instance: Any, amount_atomic: int) -> str:
    return format_amount(amount_atomic, instance.asset.decimals)


def _find_viewed_fields(kind: type) -> Mapping[str, str]:
    members = [member for base in kind.__mro__ for member in vars(base).items()]
    return MappingProxyType(
        {name: view.field for name, view in members if isinstance(view, FieldView)}
    )


viewed_fields: Callable[[Any], Mapping[str, str]] = cache(_find_viewed_fields)
"""The fields of a class that have a view, by the names of their views."""
