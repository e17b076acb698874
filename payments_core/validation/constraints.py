"""Rules of values beyond their types: `msgspec.Meta`, as checks that fail with a sentence.

`Meta(extra={"rule": "..."})` words a pattern for people; `values` in it lists the allowed texts,
with the sentence of its `fault`; `format` names one of `FORMATS`. More is checked that is not in
the schema of a contract, which never becomes narrower: `known` lists the allowed texts by its rule;
with `printable` it is not blank and has no control characters; with `url` it has the form of a URL;
`narrowed` is the `Meta` that is checked instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final

import msgspec

from payments_core.clock import parse_iso
from payments_core.validation.urls import find_url_form_fault

MAX_INTEGER: Final = 2**53 - 1
"""The integers that every JSON reader keeps exactly."""

Check = Callable[[Any], str | None]


def checked_rule(meta: msgspec.Meta) -> msgspec.Meta:
    """The rule that is checked: the annotation's own, or the narrower one that it holds."""
    narrowed: msgspec.Meta = (meta.extra or {}).get("narrowed", meta)
    return narrowed


def make_checks(meta: msgspec.Meta) -> list[Check]:
    """The checks of one annotation, in the order in which their errors matter."""
    meta = checked_rule(meta)
    checks: list[Check] = []
    extra = meta.extra or {}
    if "format" in extra:  # it states the rule, which a length does not
        checks.append(FORMATS[extra["format"]])
    if extra.get("url"):
        checks.append(find_url_form_fault)
    if meta.min_length is not None or meta.max_length is not None:
        checks.append(_make_length_check(meta.min_length or 0, meta.max_length))
    if extra.get("printable"):
        checks.append(_check_printable)
    if meta.ge is not None or meta.le is not None:
        checks.append(_make_range_check(meta.ge, meta.le))
    if meta.pattern is not None:
        rule = extra.get("rule", f"a text that matches {meta.pattern}")
        checks.append(_make_pattern_check(meta.pattern, f"must be {rule}"))
    if "values" in extra:
        checks.append(_make_values_check(frozenset(extra["values"]), extra["fault"]))
    if "known" in extra:
        checks.append(_make_values_check(frozenset(extra["known"]), f"must be {extra['rule']}"))
    if any(rule is not None for rule in (meta.gt, meta.lt, meta.multiple_of)):
        raise TypeError("use ge and le")
    return checks


def _make_length_check(minimum: int, maximum: int | None) -> Check:
    bounds = f"{minimum} to {maximum}" if maximum is not None else f"at least {minimum}"

    def check(value: Any) -> str | None:
        if minimum <= len(value) and (maximum is None or len(value) <= maximum):
            return None
        return f"must have {bounds} {'characters' if isinstance(value, str) else 'items'}"

    return check


def _make_range_check(minimum: float | None, maximum: float | None) -> Check:
    if minimum is not None and maximum is not None:
        sentence = f"must be {minimum} to {maximum}"
    else:
        sentence = (
            f"must be at least {minimum}" if maximum is None else f"must be at most {maximum}"
        )

    def check(value: Any) -> str | None:
        fits = (minimum is None or minimum <= value) and (maximum is None or value <= maximum)
        return None if fits else sentence

    return check


def _make_pattern_check(pattern: str, sentence: str) -> Check:
    # The whole text must match: `$` alone would let a final newline through.
    matches = re.compile(pattern, re.ASCII).fullmatch
    return lambda value: None if matches(value) else sentence


def _make_values_check(values: frozenset[Any], sentence: str) -> Check:
    return lambda value: None if value in values else sentence


def _check_printable(value: Any) -> str | None:
    if not value.isprintable():  # control characters, line breaks, marks that turn the text around
        return "must have printable characters only"
    return None if value.strip() else "must not be blank"


def _check_moment(value: Any) -> str | None:
    try:
        parse_iso(value)
    except ValueError:
        return "must be an ISO 8601 time with a zone"
    return None


def _check_day(value: Any) -> str | None:
    try:
        is_plain = date.fromisoformat(value).isoformat() == value  # other forms of ISO 8601 too
    except ValueError:
        is_plain = False
    return None if is_plain else "must be a day of the calendar such as 2026-11-01"


FORMATS: Final[Mapping[str, Check]] = {"date-time": _check_moment, "date": _check_day}
"""The rules of named formats, by their names in JSON Schema."""
