"""Documents into wire classes, strictly, with every fault and its path (contract §3).

Nothing is coerced. What a field may hold is declared once, in its annotation: its type, and
`Annotated[..., msgspec.Meta(...)]`, which the schemas read too. `Meta(extra={"rule": "..."})` words
a pattern for people; `values` in it lists all allowed texts, with the sentence of its `fault`, and
`format` names one of `FORMATS`. A class may have a method `faults` that reports what an annotation
cannot, by paths relative to it. A union of objects is distinguished by the field that is a
`Literal` in all of them, and a union of an integer and a string by the value. The optional class
attribute `exactly_one_of` lists groups of fields that exclude each other.

A body is first read fast; only a body that fails is read again, slowly, to collect all its faults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import attrs
import msgspec
from cattrs import Converter
from cattrs.errors import AttributeValidationNote, ClassValidationError
from cattrs.gen import make_dict_structure_fn

from payments_core.errors import FieldError, ValidationFailed
from payments_core.validation.constraints import MAX_INTEGER, apply_checks, make_checks
from payments_core.validation.faults import InvalidValue, check_exactly_one, refuse_null
from payments_core.validation.metadata import (
    Metadata,
    find_text_fault,
    shorten_name,
    validate_metadata,
)

T = TypeVar("T")
StructureHook = Callable[[Any, Any], Any]

MAX_FAULTS: Final = 100
"""A body can hold thousands of unknown fields; no more faults than this are reported."""

_DIGITS = re.compile(r"-?(?:0|[1-9][0-9]{0,15})", re.ASCII)
_DECIMAL = re.compile(r"(?:0|[1-9][0-9]{0,77})(?:\.[0-9]{1,78})?", re.ASCII)


class Reader:
    """Reads documents into wire classes; `of_text` reads query strings, whose values are texts."""

    def __init__(self, *, of_text: bool = False) -> None:
        self._fast = _make_converter(of_text, detailed=False)
        self._detailed = _make_converter(of_text, detailed=True)

    def read(self, document: Any, kind: Any) -> Any:
        """An instance of `kind`. Raises ValidationFailed with all faults at once."""
        try:
            return self._fast.get_structure_hook(kind)(document, kind)
        except (InvalidValue, KeyError) as error:
            failure = error
        try:
            self._detailed.get_structure_hook(kind)(document, kind)
        except InvalidValue as faults:
            raise ValidationFailed(faults.found[:MAX_FAULTS]) from None
        raise failure  # the two converters differ, which is an internal error


def _make_converter(of_text: bool, *, detailed: bool) -> Converter:
    converter = Converter(detailed_validation=detailed)
    converter.register_structure_hook(str, _read_string)
    converter.register_structure_hook(int, _read_integer_text if of_text else _read_integer)
    converter.register_structure_hook(bool, _read_boolean_text if of_text else _read_boolean)
    converter.register_structure_hook(Decimal, _read_decimal_text if of_text else _read_decimal)
    converter.register_structure_hook_func(lambda kind: kind is Metadata, _read_metadata)
    for accepts, factory in (
        (attrs.has, _make_object_hook),
        (_is_array, _make_array_hook),
        (_is_mapping, _make_mapping_hook),
        (_is_union, _make_union_hook),
        (_is_literal, _make_literal_hook),
        (_is_annotated, _make_constrained_hook),
    ):
        converter.register_structure_hook_factory(accepts, factory)
    return converter


def _is_array(kind: Any) -> bool:
    return get_origin(kind) is tuple and get_args(kind)[1:] == (Ellipsis,)


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


# Values


def _read_string(value: Any, _: Any) -> str:
    if type(value) is not str:
        raise InvalidValue.of("must be a string")
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


def _read_decimal(value: Any, _: Any) -> Decimal:
    if type(value) not in (int, Decimal):
        raise InvalidValue.of("must be a number")
    return Decimal(value)


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


def _make_literal_hook(kind: Any) -> StructureHook:
    allowed = get_args(kind)
    sentence = "must be " + _join_names(allowed)

    def structure(value: Any, _: Any) -> Any:
        # True equals 1, so the type is compared too.
        if not any(type(value) is type(item) and value == item for item in allowed):
            raise InvalidValue.of(sentence)
        return value

    return structure


def _join_names(values: tuple[Any, ...]) -> str:
    names = [str(value) for value in values]
    return names[0] if len(names) == 1 else "one of " + ", ".join(names)


# Objects, arrays, unions


def _make_object_hook(kind: Any, converter: Converter) -> StructureHook:
    attrs.resolve_types(kind)
    names = frozenset(field.name for field in attrs.fields(kind))
    optional = frozenset(field.name for field in attrs.fields(kind) if null_is_absent(field))
    groups: tuple[tuple[str, ...], ...] = getattr(kind, "exactly_one_of", ())
    has_faults = hasattr(kind, "faults")
    detailed = converter.detailed_validation
    inner = make_dict_structure_fn(kind, converter, _cattrs_detailed_validation=detailed)

    def structure(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise InvalidValue.of("must be an object")
        found: list[FieldError] = []
        built = None
        given = {n: v for n, v in value.items() if v is not None or n not in optional}
        try:
            built = inner(given, kind)
        except ClassValidationError as error:
            found += _collect_field_faults(error)
        if not names.issuperset(value):
            unknown = (name for name in value if name not in names)
            found += [FieldError(shorten_name(name), "is not a known field") for name in unknown]
        for group in groups:
            found += check_exactly_one(group, value)
        if built is not None and has_faults:
            found += built.faults()
        if found:
            raise InvalidValue(*found)
        return built

    return structure


def null_is_absent(field: attrs.Attribute[Any]) -> bool:
    """Whether null means the field's default: an optional field that gives null no meaning.

    If the default is `UNSET`, null has a meaning of its own, such as to clear a field, or it is
    refused: where an absent field means everything, a null is more likely a lost value.
    """
    if field.default is attrs.NOTHING or field.default is msgspec.UNSET:
        return False
    return NoneType not in get_args(field.type)


def _collect_field_faults(error: ClassValidationError) -> list[FieldError]:
    """The faults of an object's fields, in the order of its class."""
    found: list[FieldError] = []
    for cause in error.exceptions:
        notes = [
            n for n in getattr(cause, "__notes__", ()) if isinstance(n, AttributeValidationNote)
        ]
        if not notes or not isinstance(cause, KeyError | InvalidValue):
            raise cause
        faults = cause if isinstance(cause, InvalidValue) else InvalidValue.of("is required")
        found += faults.nest_under(notes[-1].name)
    return found


def _make_array_hook(kind: Any, converter: Converter) -> StructureHook:
    item_kind = get_args(kind)[0]
    inner = converter.get_structure_hook(item_kind)

    def structure(value: Any, _: Any) -> Any:
        if type(value) is not list:
            raise InvalidValue.of("must be an array")
        items, found = [], []
        for index, item in enumerate(value):
            try:
                items.append(inner(item, item_kind))
            except InvalidValue as faults:
                found += faults.nest_under(f"[{index}]")
        if found:
            raise InvalidValue(*found)
        return tuple(items)

    return structure


def _make_mapping_hook(kind: Any, converter: Converter) -> StructureHook:
    """An object whose names the caller chooses, by the rule of its first parameter."""
    name_kind, item_kind = get_args(kind)
    of_name = converter.get_structure_hook(name_kind)
    of_item = converter.get_structure_hook(item_kind)

    def structure(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise InvalidValue.of("must be an object")
        items, found = {}, []
        for name, item in value.items():
            try:
                of_name(name, name_kind)
                items[name] = of_item(item, item_kind)
            except InvalidValue as faults:
                found += faults.nest_under(shorten_name(name))
        if found:
            raise InvalidValue(*found)
        return items

    return structure


def _make_union_hook(kind: Any, converter: Converter) -> StructureHook:
    """`X | None`, or one of several objects; `UnsetType` is for fields that may be absent."""
    parts = get_args(kind)
    nullable = NoneType in parts
    kinds = [part for part in parts if part not in (NoneType, msgspec.UnsetType)]
    if len(kinds) == 1:
        only = kinds[0]
        inner = converter.get_structure_hook(only)
    elif all(_scalar_of(part) for part in kinds):
        only, inner = kind, _make_scalar_choice_hook(kinds, converter)
    else:
        only, inner = kind, _make_choice_hook(kinds, converter)

    can_be_left_out = msgspec.UnsetType in parts

    def structure(value: Any, _: Any) -> Any:
        if value is None:
            if nullable:
                return None
            if can_be_left_out:
                refuse_null(lambda null: inner(null, only))
        return inner(value, only)

    return structure


def _scalar_of(kind: Any) -> Any:
    """The plain type of a text or a number, without its constraints; None for all else."""
    plain = get_args(kind)[0] if _is_annotated(kind) else kind
    return plain if plain in _SCALARS else None


def _make_scalar_choice_hook(kinds: list[Any], converter: Converter) -> StructureHook:
    hooks = {_scalar_of(kind): (kind, converter.get_structure_hook(kind)) for kind in kinds}
    sentence = "must be " + " or ".join(_SCALARS[plain] for plain in hooks)

    def structure(value: Any, _: Any) -> Any:
        if type(value) not in hooks:
            raise InvalidValue.of(sentence)
        kind, hook = hooks[type(value)]
        return hook(value, kind)

    return structure


_SCALARS: Mapping[Any, str] = {int: "an integer", str: "a string"}


def _make_choice_hook(kinds: list[Any], converter: Converter) -> StructureHook:
    tag, by_value = find_discriminator(kinds)
    hooks = {value: (kind, converter.get_structure_hook(kind)) for value, kind in by_value.items()}
    sentence = "must be " + _join_names(tuple(by_value))

    def structure(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise InvalidValue.of("must be an object")
        if tag not in value:
            raise InvalidValue(FieldError(tag, "is required"))
        chosen = value[tag]
        if type(chosen) is not str or chosen not in hooks:
            raise InvalidValue(FieldError(tag, sentence))
        kind, hook = hooks[chosen]
        return hook(value, kind)

    return structure


def find_discriminator(kinds: list[Any]) -> tuple[str, dict[str, Any]]:
    """The field that distinguishes the classes, and the class for each of its values."""
    if not all(map(attrs.has, kinds)):
        raise TypeError(f"no classes: {kinds}")
    for kind in kinds:
        attrs.resolve_types(kind)
    for field in attrs.fields(kinds[0]):
        types = [getattr(attrs.fields_dict(kind).get(field.name), "type", None) for kind in kinds]
        if all(get_origin(item) is Literal for item in types):
            pairs = zip(kinds, types, strict=True)
            return field.name, {value: kind for kind, item in pairs for value in get_args(item)}
    raise TypeError(f"no field distinguishes {kinds}")


# Constraints


def _make_constrained_hook(kind: Any, converter: Converter) -> StructureHook:
    inner_kind, *annotations = get_args(kind)
    array = _is_array(inner_kind)
    inner = converter.get_structure_hook(inner_kind)
    checks = [
        check
        for meta in annotations
        if isinstance(meta, msgspec.Meta)
        for check in make_checks(meta)
    ]

    def structure(value: Any, _: Any) -> Any:
        # An array's length is judged before its items: too many of them need no reading.
        if array and type(value) is list:
            apply_checks(checks, value)
            return inner(value, inner_kind)
        built = inner(value, inner_kind)
        if built is not None:
            apply_checks(checks, built)
        return built

    return structure
