"""Reads what callers give, by the annotations of the place that it is for, strictly.

There is one set of rules and three forms: values of Python, documents of JSON, and the texts of a
query. Nothing is coerced. The rule of a field is its annotation: its type, and
`Annotated[..., msgspec.Meta(...)]`, which the schemas read too (`constraints.py`). A union of
classes is distinguished by the class of the instance, or in JSON by the field that is a `Literal`
in all of them; a union of an integer and a string by the value. A class of documents may have a
method `faults`, which reports what an annotation cannot, by paths relative to it, and an attribute
`exactly_one_of`, which lists groups of fields that exclude each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import attrs
import msgspec
from cattrs import Converter
from cattrs.errors import AttributeValidationNote, ClassValidationError
from cattrs.gen import make_dict_structure_fn

from payments_core.errors import FieldError, ValidationFailed
from payments_core.evolve import evolve
from payments_core.validation.faults import InvalidValue, check_exactly_one
from payments_core.validation.metadata import (
    shorten_name,
)
from payments_core.validation.values import (
    DOCUMENT_SCALARS,
    PYTHON_SCALARS,
    QUERY_SCALARS,
    Form,
    Hook,
    make_converter,
    require_one_of,
    scalar_of,
)

MAX_FAULTS: Final = 100
"""A body can hold thousands of unknown fields; no more faults than this are reported."""


class Reader:
    """Reads values of one form."""

    def __init__(self, form: Form) -> None:
        self._converter = make_converter(form)

    def read(self, value: Any, kind: Any) -> Any:
        """The value, as it is stored: sequences as tuples, metadata in its form.

        Raises ValidationFailed with every error, each with its path.
        """
        try:
            return self.hook(kind)(value, kind)
        except InvalidValue as faults:
            raise ValidationFailed(faults.found[:MAX_FAULTS]) from None

    def hook(self, kind: Any) -> Hook:
        """The hook of an annotation. Raises TypeError if there is no rule for it."""
        return self._converter.get_structure_hook(kind)


# Instances, in Python


def _make_instance_hook(kind: Any, converter: Converter) -> Hook:
    """Of a class with `checked_by_class`, any instance is right: callers get it from the service,
    or an operation checks its fields itself."""
    if getattr(kind, "checked_by_class", False):
        return _make_class_hook(kind)
    hints = get_type_hints(kind, include_extras=True)
    fields = [
        (field, field.default, hints[field.name], converter.get_structure_hook(hints[field.name]))
        for field in attrs.fields(kind)
    ]
    sentence = f"must be {name_with_article(kind)}"

    def read(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise InvalidValue.of(sentence)
        found: list[FieldError] = []
        changes: dict[str, Any] = {}
        for field, default, annotation, hook in fields:
            given = getattr(value, field.name)
            if given is default:
                continue
            try:
                kept = hook(given, annotation)
            except InvalidValue as faults:
                found += faults.nest_under(field.alias)
                continue
            if kept is not given:
                changes[field.alias] = kept
        if found:
            raise InvalidValue(*found)
        return evolve(value, **changes) if changes else value

    return read


def _make_class_hook(kind: Any) -> Hook:
    sentence = f"must be {name_with_article(kind)}"

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, kind):
            raise InvalidValue.of(sentence)
        return value

    return read


def name_with_article(kind: type) -> str:
    """The name of a class in a sentence."""
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


def _make_class_choice_hook(kinds: Sequence[Any], converter: Converter) -> Hook:
    hooks = {scalar_of(kind) or kind: (kind, converter.get_structure_hook(kind)) for kind in kinds}
    # What callers do not make themselves is no choice of theirs.
    offered = [kind for kind in hooks if not getattr(kind, "checked_by_class", False)]
    sentence = require_one_of([kind.__name__ for kind in offered])

    def read(value: Any, _: Any) -> Any:
        if type(value) in hooks:
            kind, hook = hooks[type(value)]
        elif len(offered) == 1:
            kind, hook = hooks[offered[0]]
        else:
            raise InvalidValue.of(sentence)
        return hook(value, kind)

    return read


# Objects, in JSON


def _make_object_hook(kind: Any, converter: Converter) -> Hook:
    attrs.resolve_types(kind)
    names = frozenset(field.name for field in attrs.fields(kind))
    optional = frozenset(field.name for field in attrs.fields(kind) if null_is_absent(field))
    groups: tuple[tuple[str, ...], ...] = getattr(kind, "exactly_one_of", ())
    has_faults = hasattr(kind, "faults")
    inner = make_dict_structure_fn(kind, converter)

    def read(value: Any, _: Any) -> Any:
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

    return read


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


def _make_object_choice_hook(kinds: Sequence[Any], converter: Converter) -> Hook:
    tag, by_value = find_discriminator(kinds)
    hooks = {value: (kind, converter.get_structure_hook(kind)) for value, kind in by_value.items()}
    sentence = require_one_of(tuple(by_value))

    def read(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise InvalidValue.of("must be an object")
        if tag not in value:
            raise InvalidValue(FieldError(tag, "is required"))
        chosen = value[tag]
        if type(chosen) is not str or chosen not in hooks:
            raise InvalidValue(FieldError(tag, sentence))
        kind, hook = hooks[chosen]
        return hook(value, kind)

    return read


def find_discriminator(kinds: Sequence[Any]) -> tuple[str, dict[str, Any]]:
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


# The three forms

_DOCUMENT = Form(
    scalars=DOCUMENT_SCALARS,
    array_types=(list,),
    array_fault="must be an array",
    object_fault="must be an object",
    make_class_hook=_make_object_hook,
    make_choice_hook=_make_object_choice_hook,
)

JSON: Final = Reader(_DOCUMENT)
"""Documents of JSON, as `json_text` parses them, into classes with the names of the wire."""

QUERY: Final = Reader(evolve(_DOCUMENT, scalars=QUERY_SCALARS))
"""The parameters of a query, whose values are texts, into classes with the names of the wire."""

PYTHON: Final = Reader(
    Form(
        scalars=PYTHON_SCALARS,
        array_types=(list, tuple),
        array_fault="must be a list or a tuple",
        object_fault="must be a dict",
        make_class_hook=_make_instance_hook,
        make_choice_hook=_make_class_choice_hook,
    )
)
"""Values of Python; instances of input classes stay instances."""
