"""Reads texts, numbers, flags, arrays and unions, in the form in which the caller writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from operator import is_
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import attrs
import msgspec
from cattrs import Converter

from payments_core.validation.constraints import MAX_INTEGER, make_checks
from payments_core.validation.faults import InvalidValue, refuse_null
from payments_core.validation.metadata import (
    AnyText,
    Metadata,
    find_text_fault,
    shorten_name,
    validate_metadata,
)

Hook = Callable[[Any, Any], Any]
"""Takes a value and its annotation, and returns the value as it is stored. Raises InvalidValue."""


@attrs.frozen(kw_only=True)
class Form:
    """How values are written."""

    scalars: Mapping[Any, Hook]
    array_types: tuple[type, ...]
    array_fault: str
    object_fault: str
    make_class_hook: Callable[[Any, Converter], Hook]
    make_choice_hook: Callable[[Sequence[Any], Converter], Hook]


def make_converter(form: Form) -> Converter:
    """A converter with the hooks of a form; it refuses a kind without a rule."""
    converter = Converter(detailed_validation=True)
    for kind in (bytes, float, Path):  # cattrs would coerce them
        converter.register_structure_hook(kind, _refuse_kind)
    for kind, hook in form.scalars.items():
        converter.register_structure_hook(kind, hook)
    for accepts, factory in (
        (lambda kind: True, _refuse_annotation),
        (attrs.has, form.make_class_hook),
        (_is_array, partial(_make_array_hook, form)),
        (_is_mapping, partial(_make_mapping_hook, form)),
        (_is_union, partial(_make_union_hook, form)),
        (_is_literal, _make_literal_hook),
        (_is_annotated, partial(_make_constrained_hook, form)),
        (lambda kind: kind is Metadata, lambda kind, _: _read_metadata),
    ):
        converter.register_structure_hook_factory(accepts, factory)
    return converter


def _refuse_kind(value: Any, kind: Any) -> Any:
    raise TypeError(f"no rule for the annotation {kind}")


def _refuse_annotation(kind: Any, converter: Converter) -> Hook:
    raise TypeError(f"no rule for the annotation {kind}")


# Texts, numbers and flags


def _read_any_text(value: Any, _: Any) -> str:
    if type(value) is not str:
        raise InvalidValue.of("must be a string")
    return value


def _read_string(value: Any, _: Any) -> str:
    if type(value) is not str:
        raise InvalidValue.of("must be a string")
    if value.isascii() and "\0" not in value:
        return value
    if fault := find_text_fault(value):
        raise InvalidValue.of(fault)
    return value


def _read_integer(value: Any, _: Any) -> int:
    if type(value) is not int or not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise InvalidValue.of("must be an integer within ±(2^53−1)")
    return value


def _read_boolean(value: Any, _: Any) -> bool:
    if type(value) is not bool:
        raise InvalidValue.of("must be true or false")
    return value


def _read_flag(value: Any, _: Any) -> bool:
    if type(value) is not bool:
        raise InvalidValue.of("must be True or False")
    return value


def _read_datetime(value: Any, _: Any) -> datetime:
    if type(value) is not datetime:
        raise InvalidValue.of("must be a datetime with a time zone")
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidValue.of("must have a time zone, for example datetime.UTC")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidValue.of("must be within the years 1 to 9999 of UTC") from None


def _read_decimal(value: Any, _: Any) -> Decimal:
    if type(value) not in (int, Decimal):
        raise InvalidValue.of("must be a number")
    return Decimal(value)


def _read_exact_decimal(value: Any, _: Any) -> Decimal:
    if type(value) is not Decimal or not value.is_finite():
        raise InvalidValue.of("must be a finite Decimal")
    return value


_DIGITS = re.compile(r"-?(?:0|[1-9][0-9]{0,15})", re.ASCII)
_DECIMAL = re.compile(r"(?:0|[1-9][0-9]{0,77})(?:\.[0-9]{1,78})?", re.ASCII)


def _read_integer_text(value: Any, _: Any) -> int:
    if not _DIGITS.fullmatch(value):
        raise InvalidValue.of("must be an integer")
    return int(value)


def _read_boolean_text(value: Any, _: Any) -> bool:
    if value not in ("true", "false"):
        raise InvalidValue.of("must be true or false")
    return bool(value == "true")


def _read_decimal_text(value: Any, _: Any) -> Decimal:
    if not _DECIMAL.fullmatch(value):
        raise InvalidValue.of("must be a decimal number with no sign or exponent")
    return Decimal(value)


def _read_metadata(value: Any, _: Any) -> Metadata:
    faults, kept = validate_metadata(value)
    if faults:
        raise InvalidValue(*faults)
    return kept


def _make_literal_hook(kind: Any, _: Converter) -> Hook:
    allowed = get_args(kind)
    sentence = require_one_of(allowed)
    # True equals 1, so values are compared with those of their own type.
    by_type = {type(item): [one for one in allowed if type(one) is type(item)] for item in allowed}

    def read(value: Any, _: Any) -> Any:
        if value not in by_type.get(type(value), ()):
            raise InvalidValue.of(sentence)
        return value

    return read


def require_one_of(names: Sequence[Any]) -> str:
    listed = ", ".join(map(str, names))
    return f"must be {listed}" if len(names) == 1 else f"must be one of {listed}"


def _make_constrained_hook(form: Form, kind: Any, converter: Converter) -> Hook:
    inner_kind, *rules = get_args(kind)
    if Metadata in rules:
        return _read_metadata
    if AnyText in rules:
        return _read_any_text
    inner = converter.get_structure_hook(inner_kind)
    checks = [c for rule in rules if isinstance(rule, msgspec.Meta) for c in make_checks(rule)]
    # An array's length is judged before its items: too many of them need no reading.
    early = form.array_types if _is_array(inner_kind) else ()

    def read(value: Any, _: Any) -> Any:
        is_early = type(value) in early
        kept = value if is_early else inner(value, inner_kind)
        if kept is None:  # a constraint of an optional value
            return None
        for check in checks:
            if sentence := check(kept):
                raise InvalidValue.of(sentence)
        return inner(value, inner_kind) if is_early else kept

    return read


# Arrays, objects, unions


def _make_array_hook(form: Form, kind: Any, converter: Converter) -> Hook:
    item_kind = get_args(kind)[0]
    read_item = converter.get_structure_hook(item_kind)

    def read(value: Any, _: Any) -> tuple[Any, ...]:
        if type(value) not in form.array_types:
            raise InvalidValue.of(form.array_fault)
        kept, found = [], []
        for place, item in enumerate(value):
            try:
                kept.append(read_item(item, item_kind))
            except InvalidValue as faults:
                found += faults.nest_under(f"[{place}]")
        if found:
            raise InvalidValue(*found)
        if type(value) is tuple and all(map(is_, kept, value)):
            return value
        return tuple(kept)

    return read


def _make_mapping_hook(form: Form, kind: Any, converter: Converter) -> Hook:
    """An object whose names the caller chooses, by the rule of its first parameter."""
    name_kind, item_kind = get_args(kind)
    read_name = converter.get_structure_hook(name_kind)
    read_item = converter.get_structure_hook(item_kind)

    def read(value: Any, _: Any) -> dict[Any, Any]:
        if type(value) is not dict:
            raise InvalidValue.of(form.object_fault)
        kept, found = {}, []
        for name, item in value.items():
            try:
                kept[read_name(name, name_kind)] = read_item(item, item_kind)
            except InvalidValue as faults:
                found += faults.nest_under(shorten_name(str(name)))
        if found:
            raise InvalidValue(*found)
        return kept

    return read


def _make_union_hook(form: Form, kind: Any, converter: Converter) -> Hook:
    """`X | None`, a field that may be absent or `UNSET`, or one of several kinds."""
    parts = get_args(kind)
    kinds = [part for part in parts if part not in (NoneType, msgspec.UnsetType)]
    only: Any = kinds[0] if len(kinds) == 1 else kind
    if len(kinds) == 1:
        inner = converter.get_structure_hook(only)
    elif all(scalar_of(part) for part in kinds):
        inner = _make_scalar_choice_hook(kinds, converter)
    else:
        inner = form.make_choice_hook(kinds, converter)
    is_nullable, may_be_unset = NoneType in parts, msgspec.UnsetType in parts

    def read(value: Any, _: Any) -> Any:
        if value is None:
            if is_nullable:
                return None
            if may_be_unset:
                refuse_null(lambda null: inner(null, only))
        elif value is msgspec.UNSET and may_be_unset:
            return value
        return inner(value, only)

    return read


def scalar_of(kind: Any) -> Any:
    """The plain type of a text or a number, without its constraints; None for all else."""
    plain = get_args(kind)[0] if _is_annotated(kind) else kind
    return plain if plain in _SCALAR_NAMES else None


_SCALAR_NAMES: Mapping[Any, str] = {int: "an integer", str: "a string"}


def _make_scalar_choice_hook(kinds: Sequence[Any], converter: Converter) -> Hook:
    hooks = {scalar_of(kind): (kind, converter.get_structure_hook(kind)) for kind in kinds}
    sentence = "must be " + " or ".join(_SCALAR_NAMES[plain] for plain in hooks)

    def read(value: Any, _: Any) -> Any:
        if type(value) not in hooks:
            raise InvalidValue.of(sentence)
        kind, hook = hooks[type(value)]
        return hook(value, kind)

    return read


# Kinds of annotations


def _is_array(kind: Any) -> bool:
    """Whether it is the annotation of an array: `Sequence[X]` or `tuple[X, ...]`."""
    if get_origin(kind) is tuple:
        return get_args(kind)[1:] == (Ellipsis,)
    return get_origin(kind) is Sequence


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) is Mapping


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType)


def _is_literal(kind: Any) -> bool:
    origin: Any = get_origin(kind)
    return origin is Literal


def _is_annotated(kind: Any) -> bool:
    origin: Any = get_origin(kind)
    return origin is Annotated


# The three forms of scalars

DOCUMENT_SCALARS: Final[Mapping[Any, Hook]] = {
    str: _read_string,
    int: _read_integer,
    bool: _read_boolean,
    Decimal: _read_decimal,
}
QUERY_SCALARS: Final[Mapping[Any, Hook]] = {
    str: _read_string,
    int: _read_integer_text,
    bool: _read_boolean_text,
    Decimal: _read_decimal_text,
}
PYTHON_SCALARS: Final[Mapping[Any, Hook]] = {
    str: _read_string,
    int: _read_integer,
    bool: _read_flag,
    Decimal: _read_exact_decimal,
    datetime: _read_datetime,
}
