"""Checks the input of a library caller, by the annotations of its class or of an operation.

HTTP reads its bodies by the same annotations (`fields.py`), so both doors refuse the same. Nothing
is coerced: a `Decimal` is not an amount, and a tuple is the only change to a list.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache, wraps
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import attrs
import msgspec

from payments_core.errors import FieldError, ValidationFailed
from payments_core.evolve import evolve
from payments_core.validation.constraints import MAX_INTEGER, apply_checks, make_checks
from payments_core.validation.faults import InvalidValue, UnfitPosition, refuse_null
from payments_core.validation.metadata import (
    AnyText,
    Metadata,
    find_text_fault,
    shorten_name,
    validate_metadata,
)

T = TypeVar("T")
P = ParamSpec("P")
Reader = Callable[[Any], Any]
"""Returns the value as it is stored. Raises InvalidValue."""


def validate_input(given: T) -> T:
    """An instance of an attrs class, as it is stored: sequences as tuples, metadata in its form.

    Raises ValidationFailed with every error. Paths have the names of the fields in JSON, as
    in every other refusal: `expires_in_s` is `expiresInSeconds`.
    """
    try:
        kept: T = _instance_reader(cast(Hashable, type(given)))(given)
    except InvalidValue as faults:
        raise ValidationFailed(faults.found) from None
    return kept


def validate_operations(resource: type[T]) -> type[T]:
    """A class decorator: each public operation checks its arguments before it does anything.

    A parameter is checked if its annotation has a rule of `fields.py`, lists its values, or is
    of plain texts, numbers and flags. So an id that is not a text is refused by the argument's
    name, and an unknown text is not found. An input class must be given as an instance, whose
    fields the operation checks by `validate_input`. Only the list's index can check `after`, in the
    storage. Raises ValidationFailed with every error.
    """
    for name, operation in list(vars(resource).items()):
        if inspect.isfunction(operation) and not name.startswith("_"):
            setattr(resource, name, _validate_arguments(operation))
    return resource


def _validate_arguments(operation: Callable[P, T]) -> Callable[P, T]:
    signature = inspect.signature(operation)

    @wraps(operation)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        found: list[FieldError] = []
        changes: dict[str, Any] = {}
        for place, name, reader in _argument_readers(operation):
            if name in kwargs:
                given = kwargs[name]
            elif place < len(args):
                given = args[place]
            else:
                continue
            try:
                kept = reader(given)
            except InvalidValue as faults:
                found += faults.nest_under(json_name(name))
                continue
            if kept is not given:
                changes[name] = kept
        if found:
            raise ValidationFailed(tuple(found))
        try:
            if not changes:  # the common case: binding takes longer than all the rest
                return operation(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.arguments.update(changes)
            return operation(*bound.args, **bound.kwargs)
        except UnfitPosition:
            raise ValidationFailed.at(
                "after", "must be the `next` of a page of this list"
            ) from None

    return checked


@cache
def _argument_readers(operation: Callable[..., Any]) -> Sequence[tuple[int, str, Reader]]:
    """Place, name and reader of each parameter that is checked; made when all names are known."""
    hints = get_type_hints(operation, include_extras=True)
    readers = []
    for place, name in enumerate(inspect.signature(operation).parameters):
        hint: Any = hints.get(name)
        if _has_rule(hint) or _is_plain(hint):
            readers.append((place, name, _reader(hint)))
        elif attrs.has(hint) and name != "authority":  # an authority is made by the library
            readers.append((place, name, _kind_reader(hint)))
    return readers


def _has_rule(annotation: Any) -> bool:
    if get_origin(annotation) in (Annotated, Literal):
        return True
    return any(map(_has_rule, get_args(annotation)))


def _is_plain(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, UnionType, Sequence, Mapping):
        return all(map(_is_plain, get_args(annotation)))
    return annotation in (*_PLAIN, *_CONSTANTS)


def _kind_reader(kind: type) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, kind):
            raise InvalidValue.of(f"must be a {kind.__name__}")
        return value

    return read


@cache
def _instance_reader(kind: Any) -> Reader:
    """Reads instances of one class; made once, since every request needs it."""
    hints = get_type_hints(kind, include_extras=True)
    readers = [
        (
            field.name,
            field.metadata.get(JSON_NAME, json_name(field.name)),
            _reader(hints[field.name]),
        )
        for field in attrs.fields(kind)
    ]

    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise InvalidValue.of(f"must be a {kind.__name__}")
        found: list[FieldError] = []
        changes: dict[str, Any] = {}
        for name, json_name, reader in readers:
            given = getattr(value, name)
            try:
                kept = reader(given)
            except InvalidValue as faults:
                found += faults.nest_under(json_name)
                continue
            if kept is not given:
                changes[name] = kept
        if found:
            raise InvalidValue(*found)
        return evolve(value, **changes) if changes else value

    return read


JSON_NAME = "json_name"
"""The key of an attrs field's metadata that holds its name in JSON, if `json_name` is wrong."""


def json_name(name: str) -> str:
    """The name of a field in JSON: `expires_in_s` is `expiresInSeconds`."""
    first, *others = re.sub(r"_s$", "_seconds", name).split("_")
    return first + "".join(map(str.capitalize, others))


def _reader(annotation: Any) -> Reader:
    origin = get_origin(annotation)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if origin is Annotated:
        return _constrained_reader(*get_args(annotation))
    if origin is Literal:
        return _literal_reader(get_args(annotation))
    if origin in (Union, UnionType):
        return _union_reader(get_args(annotation))
    if origin is Sequence or (origin is tuple and get_args(annotation)[1:] == (Ellipsis,)):
        return _sequence_reader(get_args(annotation)[0])
    if origin is Mapping:
        return _mapping_reader(*get_args(annotation))
    if attrs.has(annotation):
        return _instance_reader(annotation)
    raise TypeError(f"no rule for the annotation {annotation}")


def _read_any_text(value: Any) -> str:
    if type(value) is not str:
        raise InvalidValue.of("must be a string")
    return value


def _read_string(value: Any) -> str:
    text = _read_any_text(value)
    if fault := find_text_fault(text):
        raise InvalidValue.of(fault)
    return text


def _read_integer(value: Any) -> int:
    if type(value) is not int or not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise InvalidValue.of("must be an integer within ±(2^53−1)")
    return value


def _read_boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise InvalidValue.of("must be True or False")
    return value


def _read_metadata(value: Any) -> Metadata:
    faults, kept = validate_metadata(value)
    if faults:
        raise InvalidValue(*faults)
    return kept


_PLAIN: Mapping[Any, Reader] = {str: _read_string, int: _read_integer, bool: _read_boolean}


def _constrained_reader(inner: Any, *rules: Any) -> Reader:
    if Metadata in rules:
        return _read_metadata
    if AnyText in rules:
        return _read_any_text
    read = _reader(inner)
    checks = [c for rule in rules if isinstance(rule, msgspec.Meta) for c in make_checks(rule)]

    def read_constrained(value: Any) -> Any:
        kept = read(value)
        apply_checks(checks, kept)
        return kept

    return read_constrained


def _literal_reader(allowed: tuple[Any, ...]) -> Reader:
    names = ", ".join(map(str, allowed))  # the words of the HTTP door
    sentence = f"must be {names}" if len(allowed) == 1 else f"must be one of {names}"

    def read(value: Any) -> Any:
        # True equals 1, so the type is compared too.
        if not any(type(value) is type(item) and value == item for item in allowed):
            raise InvalidValue.of(sentence)
        return value

    return read


def _union_reader(parts: tuple[Any, ...]) -> Reader:
    """`X | None`, a field that may be `UNSET`, or one of several classes."""
    kinds = [part for part in parts if part not in (NoneType, msgspec.UnsetType)]
    constants = [value for kind, value in _CONSTANTS.items() if kind in parts]
    if len(kinds) == 1:
        only = _reader(kinds[0])

        def read_one(value: Any) -> Any:
            for constant in constants:
                if value is constant:
                    return value
            if value is None:
                refuse_null(only)
            return only(value)

        return read_one
    readers = {kind: _instance_reader(kind) for kind in kinds}
    names = ", ".join(kind.__name__ for kind in kinds)

    def read(value: Any) -> Any:
        if any(value is one for one in constants):
            return value
        if type(value) not in readers:
            raise InvalidValue.of(f"must be one of {names}")
        return readers[type(value)](value)

    return read


_CONSTANTS: Mapping[Any, Any] = {NoneType: None, msgspec.UnsetType: msgspec.UNSET}


def _sequence_reader(item: Any) -> Reader:
    read_item = _reader(item)

    def read(value: Any) -> tuple[Any, ...]:
        if type(value) not in (list, tuple):
            raise InvalidValue.of("must be a list or a tuple")
        kept, found = [], []
        for place, one in enumerate(value):
            try:
                kept.append(read_item(one))
            except InvalidValue as faults:
                found += faults.nest_under(f"[{place}]")
        if found:
            raise InvalidValue(*found)
        return tuple(kept)

    return read


def _mapping_reader(key: Any, item: Any) -> Reader:
    read_key, read_item = _reader(key), _reader(item)

    def read(value: Any) -> dict[Any, Any]:
        if type(value) is not dict:
            raise InvalidValue.of("must be a dict")
        kept, found = {}, []
        for name, one in value.items():
            try:
                kept[read_key(name)] = read_item(one)
            except InvalidValue as faults:
                found += faults.nest_under(shorten_name(str(name)))
        if found:
            raise InvalidValue(*found)
        return kept

    return read
