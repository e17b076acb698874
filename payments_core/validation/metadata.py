"""The rules of `metadata` (interface "Authorize", contract §1), and of any text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from types import NoneType
from typing import Any, Final, NewType

import msgspec

from payments_core.errors import FieldError
from payments_core.validation.constraints import MAX_INTEGER

Metadata = NewType("Metadata", dict[str, Any])
"""A JSON object of the partner's own, within the limits below."""

AnyText = NewType("AnyText", str)
"""A text that is not stored: it may contain what no storage could hold."""

MAX_BYTES: Final = 4_096
MAX_DEPTH: Final = 3
MAX_KEYS: Final = 25
MAX_CHARACTERS: Final = 512
MAX_ITEMS: Final = 50

_MAX_NAME_CHARACTERS = 100


def validate_metadata(value: Any) -> tuple[list[FieldError], Metadata]:
    """Every error of a metadata object by its path, and the object as it is stored.

    The bytes are those of the compact UTF-8 text. A number with a fraction or an exponent must
    be exact as a double, so that it comes back as it was sent.
    """
    if type(value) is not dict:
        return [FieldError("", "must be an object")], Metadata({})
    faults = list(_find_faults(value, "", depth=1))
    if faults:
        return faults, Metadata({})
    kept = _normalize_numbers(value)
    if len(msgspec.json.encode(kept)) > MAX_BYTES:
        return [FieldError("", f"must have at most {MAX_BYTES} bytes as JSON")], Metadata({})
    return [], Metadata(kept)


def find_text_fault(text: str) -> str | None:
    """Why a text cannot be stored or sent, or None."""
    if "\0" in text:
        return "must not contain U+0000"
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        return "must not contain an unpaired surrogate"
    return None


def shorten_name(name: str) -> str:
    """A caller's own field name in a path: short, and always encodable."""
    clean = name.encode("utf-8", "backslashreplace").decode()
    return clean if len(clean) <= _MAX_NAME_CHARACTERS else clean[:_MAX_NAME_CHARACTERS] + "…"


def _find_faults(value: Any, path: str, *, depth: int) -> Iterator[FieldError]:
    if isinstance(value, dict | list) and depth > MAX_DEPTH:
        yield FieldError(path, f"is nested deeper than {MAX_DEPTH}")
    elif isinstance(value, dict):
        if len(value) > MAX_KEYS:
            yield FieldError(path, f"must have at most {MAX_KEYS} keys")
        for name, item in value.items():
            if type(name) is not str:
                yield FieldError(path, "must have strings as keys")
                continue
            here = f"{path}.{shorten_name(name)}" if path else shorten_name(name)
            if fault := _find_long_text_fault(name):
                yield FieldError(here, f"has a key that {fault}")
            yield from _find_faults(item, here, depth=depth + 1)
    elif isinstance(value, list):
        if len(value) > MAX_ITEMS:
            yield FieldError(path, f"must have at most {MAX_ITEMS} items")
        for index, item in enumerate(value):
            yield from _find_faults(item, f"{path}[{index}]", depth=depth + 1)
    elif fault := _find_scalar_fault(value):
        yield FieldError(path, fault)


def _find_scalar_fault(value: Any) -> str | None:
    if isinstance(value, str):
        return _find_long_text_fault(value)
    if isinstance(value, Decimal) and not _is_double(value):
        return (
            "must be a number that a double can represent exactly; send longer numbers as a string"
        )
    if isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER:
        return "must be within ±(2^53−1); send larger integers as a string"
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    if not isinstance(value, bool | int | float | Decimal | NoneType):
        return "must be a JSON value"
    return None


def _find_long_text_fault(text: str) -> str | None:
    if len(text) > MAX_CHARACTERS:
        return f"must have at most {MAX_CHARACTERS} characters"
    return find_text_fault(text)


def _is_double(number: Decimal) -> bool:
    # The shortest text of the nearest double names the same number, or a digit would be lost.
    return Decimal(repr(float(number))) == number


def _normalize_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _normalize_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_normalize_numbers(item) for item in value]
    return float(value) if isinstance(value, Decimal) else value
