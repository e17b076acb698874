"""A value of a query or a form that is one of a few."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from payments_core.errors import ValidationFailed

C = TypeVar("C", bound=str)


def find_choice(choices: Iterable[C], text: str | None) -> C | None:
    """The choice that a text names; None if it names none."""
    return next((one for one in choices if one == text), None)


def require_choice(fields: Mapping[str, str], name: str, choices: Iterable[C]) -> C:
    """The choice of a field. Raises ValidationFailed."""
    choices = tuple(choices)
    chosen = find_choice(choices, fields.get(name))
    if chosen is None:
        raise ValidationFailed.at(name, f"must be one of {', '.join(choices)}")
    return chosen
