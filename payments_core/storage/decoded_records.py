"""Decoded records by their bodies, so that an equal body is decoded once.

Every request reads its environment, and every step of a Payment the record that the previous step
wrote. Decoding a Payment takes 40 microseconds, a lookup here 2. There is no invalidation: the key
is the body that storage has just read.

Callers share these records, also the program that embeds the library. So only immutable records are
kept: frozen ones of texts, numbers and tuples. A record with a mapping is kept only if its class
wraps the mapping in a MappingProxyType.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
import msgspec

from payments_core.storage.records import R, Record

MAX_RECORDS = 1_024
"""The number of kept records of all tenants; one more empties the collection."""
MAX_BODY_BYTES = 8_192
"""A longer body is decoded each time. So all kept records take at most some megabytes."""

_IMMUTABLE = (str, int, float, bytes, type(None))
_COMPOUND = (Union, types.UnionType, tuple, frozenset)


class DecodedRecords:
    """The records of recently decoded bodies. Threads may share it."""

    def __init__(self, find_decoder: Callable[[type[Record]], msgspec.json.Decoder[Any]]) -> None:
        self._find_decoder = find_decoder
        self._records: dict[tuple[type[Record], bytes | str], Any] = {}

    def get(self, kind: type[R], body: bytes | str) -> R:
        """The record of a body. Raises msgspec.DecodeError."""
        record: R | None = self._records.get((kind, body))
        if record is not None:
            return record
        decoded: R = self._find_decoder(kind).decode(body)
        if len(body) <= MAX_BODY_BYTES and is_immutable(decoded):
            if len(self._records) >= MAX_RECORDS:
                self._records.clear()
            self._records[kind, body] = decoded
        return decoded


def is_immutable(record: Record) -> bool:
    """Whether nobody can change a record or a value inside it."""
    kind: Any = type(record)
    for name in mutable_fields(kind):
        value = getattr(record, name)
        if value is not None and not isinstance(value, types.MappingProxyType):
            return False
    return True


@cache
def mutable_fields(kind: type[Any]) -> tuple[str, ...]:
    """The public fields of an attrs class whose types allow a mutable value."""
    return _find_mutable_fields(kind, frozenset())


def _find_mutable_fields(kind: type[Any], around: frozenset[type[Any]]) -> tuple[str, ...]:
    """As `mutable_fields`, for a class inside others: each of those looks at its own fields."""
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in attrs.fields(kind) if not field.name.startswith("_")]
    return tuple(name for name in names if _may_change(hints[name], around | {kind}))


def _may_change(kind: Any, around: frozenset[type[Any]]) -> bool:
    origin = get_origin(kind)
    if kind is Ellipsis or origin is Literal:
        return False
    if origin is Annotated:
        return _may_change(get_args(kind)[0], around)
    if origin in _COMPOUND:
        return any(_may_change(part, around) for part in get_args(kind))
    if not isinstance(kind, type):  # Any, or another form that is not known here
        return True
    if not attrs.has(kind):
        return not issubclass(kind, _IMMUTABLE)
    if kind in around:
        return False
    return not attrs.inspect(kind).is_frozen or bool(_find_mutable_fields(kind, around))
