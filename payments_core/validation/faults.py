"""Faults of a document on their way up from the value that has them, each with its path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from payments_core.errors import FieldError, ValidationFailed


class InvalidValue(Exception):
    """The errors of one value, by paths relative to it."""

    def __init__(self, *found: FieldError) -> None:
        super().__init__(*found)
        self.found = found

    @classmethod
    def of(cls, message: str) -> InvalidValue:
        """The value itself is wrong."""
        return cls(FieldError("", message))

    def nest_under(self, name: str) -> list[FieldError]:
        """The faults, seen from the object or array that holds the value under `name`."""
        return [FieldError(join_path(name, fault.path), fault.message) for fault in self.found]


def refuse_null(read: Callable[[Any], Any]) -> NoReturn:
    """Refuse null for a field that may be left out, by the rule of its values: `read`.

    Raises InvalidValue.
    """
    try:
        read(None)
    except InvalidValue as faults:
        raise InvalidValue(
            *(FieldError(one.path, f"{one.message}, or left out") for one in faults.found)
        ) from None
    raise AssertionError("null has no rule")


class UnfitPosition(ValueError):
    """A cursor that no page of the list can have returned."""


def join_path(above: str, below: str) -> str:
    """A path and a path below it: `a` and `b` make `a.b`, `a` and `[0]` make `a[0]`."""
    return above + below if not below or below.startswith("[") else f"{above}.{below}"


def check_exactly_one(group: tuple[str, ...], value: Mapping[str, Any]) -> list[FieldError]:
    """The errors if exactly one of some fields must be given."""
    given = [name for name in group if value.get(name) is not None]
    if not given:
        return [FieldError(group[0], f"is required, unless {' or '.join(group[1:])} is given")]
    return [FieldError(name, f"cannot be given together with {given[0]}") for name in given[1:]]


def require_exactly_one(values: Mapping[str, Any]) -> None:
    """Return if exactly one of the values, which are given by their paths, is not None.

    Raises ValidationFailed.
    """
    if found := check_exactly_one(tuple(values), values):
        raise ValidationFailed(tuple(found))
