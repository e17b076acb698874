"""Records that were decoded before, so that an equal body is not decoded again.

Each request reads its environment, and each step of a Payment what the step before wrote. To decode
a Payment takes 40 microseconds, and to find it here 2. Nothing has to be invalidated: the key is
the body itself, which storage has read a moment ago.

Callers share such a record, those of an embedding program too. So only a record that nobody can
change is kept: a frozen one of texts, numbers and tuples. One that holds a mapping is not, but for
a read-only one that its class makes of it.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from payments_core.storage.records import R, Record

MAX_RECORDS = 2_048
"""So many records of all tenants are kept; with one more the collection begins anew."""
MAX_BODY_BYTES = 8_192
"""A longer body is decoded each time, so that all that is kept takes some megabytes."""

_IMMUTABLE = (str, int, float, bytes, type(None))
_COMPOUND = (Union, types.UnionType, tuple, frozenset)


class DecodedRecords:
    """The record of each body that was decoded lately. Threads may share it."""

    def __init__(self, decode: Callable[[type[Record], bytes | str], Any]) -> None:
        self._decode = decode
        self._records: dict[tuple[type[Record], bytes | str], Any] = {}

    def get(self, kind: type[R], body: bytes | str) -> R:
        """The record of a body. Raises what `decode` raises."""
        record: R | None = self._records.get((kind, body))
        if record is not None:
            return record
        decoded: R = self._decode(kind, body)
        if len(body) <= MAX_BODY_BYTES and is_immutable(decoded):
            if len(self._records) >= MAX_RECORDS:
                self._records.clear()
            self._records[kind, body] = decoded
        return decoded


def is_immutable(record: Record) -> bool:
    """Whether nobody can change a record, however deep its values lie."""
    kind: Any = type(record)
    values = [getattr(record, name) for name in mutable_fields(kind)]
    return all(value is None or isinstance(value, types.MappingProxyType) for value in values)


@cache
def mutable_fields(kind: type[Any]) -> tuple[str, ...]:
    """The public fields of an attrs class whose values may be mappings or the like."""
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in attrs.fields(kind) if not field.name.startswith("_")]
    return tuple(name for name in names if _may_change(hints[name]))


def _may_change(kind: Any) -> bool:
    origin = get_origin(kind)
    if kind is Ellipsis or origin in (Literal, ClassVar):
        return False
    if origin is Annotated:
        return _may_change(get_args(kind)[0])
    if origin in _COMPOUND:
        return any(map(_may_change, get_args(kind)))
    if not isinstance(kind, type):  # Any, or a kind of type that is not known here
        return True
    if attrs.has(kind):
        return not attrs.inspect(kind).is_frozen or bool(mutable_fields(kind))
    return not issubclass(kind, _IMMUTABLE)
