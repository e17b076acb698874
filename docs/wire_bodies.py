"""Prints the wire classes of bodies and queries: each field with its sentence, type and rule."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import attrs
import msgspec

from payments_core.validation.metadata import (
    MAX_BYTES,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_ITEMS,
    MAX_KEYS,
    Metadata,
)
from payments_core_http.openapi.sentences import describe_field
from payments_core_http.routing import Nothing, Route
from payments_core_http.wire.query import PageQuery

Row = tuple[str, str, str, str, str]

HEAD = ("Field", "What it is", "Type", "Required or default", "Rule")
METADATA = (
    f"at most {MAX_BYTES} bytes as JSON, {MAX_DEPTH} levels, {MAX_KEYS} keys per object,"
    f" {MAX_ITEMS} items per array and {MAX_CHARACTERS} characters per text"
)


def forms(route: Route) -> list[tuple[str, list[Row]]]:
    """What a route accepts: for each form, a sentence and the rows of its fields."""
    found = []
    if route.body is not Nothing:
        kinds = objects_in(route.body)
        for kind in kinds:
            sentence = about(kind, route)
            if len(kinds) > 1:
                tag, values = told_by(kind, kinds)
                sentence = f"With `{tag}` {values}: {sentence[:1].lower()}{sentence[1:]}"
            found.append(
                (sentence, list(rows_of(kind, if_unset=_IF_UNSET[route.method == "PATCH"])))
            )
    if route.query is not Nothing:
        own = [field.name for field in attrs.fields(PageQuery)]
        paged = issubclass(route.query, PageQuery)
        rows = [row for row in rows_of(route.query) if not paged or row[0].strip("`") not in own]
        if rows:
            besides = ", besides `limit` and `cursor`" if paged else ""
            found.append((f"In the query string{besides}. {about(route.query, route)}", rows))
    return found


def about(kind: Any, route: Route) -> str:
    """A class's description, and what it refuses besides its fields' own rules.

    A class without a class statement has no description: then the route's is used.
    """
    return " ".join([" ".join((kind.__doc__ or route.summary).split()), *refusal(kind)])


def refusal(kind: Any) -> Iterator[str]:
    """What the class refuses besides its fields' own rules."""
    if hasattr(kind, "faults"):
        text = " ".join((kind.faults.__doc__ or "").split())
        yield f"Also refused: {text[:1].lower()}{text[1:]}"


_IF_UNSET = {True: "stays as it is", False: "may be absent, not null"}
"""What a field without a value means in a change, and in any other body."""


def rows_of(
    kind: Any, above: str = "", only: str = "", *, if_unset: str = _IF_UNSET[True]
) -> Iterator[Row]:
    """The rows of an object's fields; those of an object inside are below it, with its path."""
    attrs.resolve_types(kind)
    groups = getattr(kind, "exactly_one_of", ())
    for field in attrs.fields(kind):
        path = f"{above}{field.name}"
        group = next((group for group in groups if field.name in group), ())
        inner, words = unwrapped(field.type)
        listed = get_origin(inner) is tuple
        kinds = objects_in(unwrapped(get_args(inner)[0])[0] if listed else inner)
        words += [text.rstrip(".").lower() for below in kinds for text in refusal(below)]
        rule = "; ".join(filter(None, [only, *words]))
        sentence = describe_field(kind, field.name) or ""
        yield f"`{path}`", sentence, type_of(inner), needed(field.default, group, if_unset), rule
        for below in kinds:
            prefix = f"{path}[]." if listed else f"{path}."
            with_tag = "with `{}` {}".format(*told_by(below, kinds)) if len(kinds) > 1 else ""
            for row in rows_of(
                below, prefix, "; ".join(filter(None, [only, with_tag])), if_unset=if_unset
            ):
                # The tag's own row would come once for each class; the type of the object names it.
                if not (len(kinds) > 1 and row[0] == f"`{prefix}{told_by(below, kinds)[0]}`"):
                    yield row


def unwrapped(kind: Any) -> tuple[Any, list[str]]:
    """A type without null and annotations, and the rules of these in words."""
    words: list[str] = []
    while True:
        if get_origin(kind) is Annotated:
            inner, *metas = get_args(kind)
            words += [
                word for meta in metas if isinstance(meta, msgspec.Meta) for word in said(meta)
            ]
            if get_origin(inner) is tuple and metas:
                words = [word.replace("characters", "items") for word in words]
            kind = inner
        elif get_origin(kind) in (Union, UnionType):
            left = [it for it in get_args(kind) if it not in (NoneType, msgspec.UnsetType)]
            if NoneType in get_args(kind) and msgspec.UnsetType in get_args(kind):
                words.append("null clears it")
            if len(left) > 1:
                scalars = [unwrapped(it) for it in left if not attrs.has(it)]
                ruled = [f"{type_of(it)}: {word}" for it, rules in scalars for word in rules]
                return kind, [*words, *ruled]
            kind = left[0]
        elif get_origin(kind) is tuple:
            words += [f"each {word}" for word in unwrapped(get_args(kind)[0])[1]]
            return kind, words
        elif get_origin(kind) is Mapping:
            name, item = (unwrapped(part)[1] for part in get_args(kind))
            words += [*(f"each name {word}" for word in name), *(f"each {word}" for word in item)]
            return kind, words
        else:
            return kind, [*words, *([METADATA] if kind is Metadata else [])]


def said(meta: msgspec.Meta) -> Iterator[str]:
    """A constraint in words."""
    if meta.extra and "rule" in meta.extra:
        yield meta.extra["rule"]
    elif meta.pattern:
        yield f"matches `{meta.pattern}`"
    bounds = ((meta.min_length, meta.max_length, " characters"), (meta.ge, meta.le, ""))
    for least, most, unit in bounds:
        if least is not None and most is not None:
            yield f"{least} to {most}{unit}"
        elif most is not None:
            yield f"at most {most}{unit}"
        elif least is not None:
            yield f"at least {least}{unit}"


def type_of(kind: Any) -> str:
    """A type's name on the wire."""
    if get_origin(kind) is Literal:
        return values_of(kind)
    if get_origin(kind) is Mapping:
        return f"object of: {type_of(unwrapped(get_args(kind)[1])[0])}"
    if get_origin(kind) is tuple:
        return f"array of: {type_of(unwrapped(get_args(kind)[0])[0])}"
    kinds = objects_in(kind)
    if len(kinds) > 1:
        tag = told_by(kinds[0], kinds)[0]
        return f"object; its `{tag}` (required): " + ", ".join(
            told_by(each, kinds)[1] for each in kinds
        )
    if kinds or kind is Metadata:
        return "object"
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(type_of(unwrapped(part)[0]) for part in get_args(kind))
    return {str: "string", int: "integer", bool: "boolean", Decimal: "number"}[kind]


def values_of(kind: Any) -> str:
    return ", ".join(f"`{value}`" for value in get_args(kind))


def needed(default: Any, group: Iterable[str], if_unset: str) -> str:
    """Whether a field is required, and its default if it is not."""
    if group:
        return "exactly one of " + ", ".join(f"`{name}`" for name in group)
    if default is attrs.NOTHING:
        return "required"
    if default is msgspec.UNSET:
        return if_unset
    return "–" if default is None else f"`{json.dumps(default, default=int)}`"


def objects_in(kind: Any) -> list[Any]:
    """The possible wire classes of a value."""
    if get_origin(kind) in (Union, UnionType):
        return [part for part in get_args(kind) if attrs.has(part)]
    return [kind] if attrs.has(kind) else []


def told_by(kind: Any, kinds: list[Any]) -> tuple[str, str]:
    """The field that distinguishes the class from the others, and its values."""
    for each in kinds:
        attrs.resolve_types(each)
    for field in attrs.fields(kind):
        types = [getattr(attrs.fields_dict(each).get(field.name), "type", None) for each in kinds]
        if all(get_origin(one) is Literal for one in types):
            return field.name, values_of(field.type)
    raise TypeError(f"no field distinguishes {kinds}")
