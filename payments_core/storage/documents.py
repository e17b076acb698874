"""Records as documents: the JSON bodies that adapters store.

Amounts are digit strings in a document, since a JSON number of 78 digits does not survive every
reader. A document has its schema: an older one is upgraded as it is read, and the fields of a
newer one are kept through `replace`. A newer one that this release would misread is refused: it
lists the schemas that may read it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import attrs
import msgspec

from payments_core.evolve import evolve
from payments_core.fork_safety import register_fork_reset
from payments_core.money import Atomic
from payments_core.storage.decoded_records import DecodedRecords
from payments_core.storage.records import Collection, Document, R, Record
from payments_core.storage.unit_names import add_units

MAX_BODY_BYTES = 100_000

OLDEST_READER = "oldest_reader"
"""A document has this field if releases of schema 1 would misread it (see `Collection`)."""


class UnreadableDocument(Exception):
    """A stored body does not match its collection: it is damaged, or an upgrade is missing."""


class UnstorableRecord(ValueError):
    """A record that could not be read back, or is too large; it is refused before it is stored."""


def _encode_extra(value: Any) -> Any:
    if isinstance(value, Atomic):
        return int.__repr__(value)
    if isinstance(value, MappingProxyType):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} cannot be stored")


def _read_extra(kind: type, value: Any) -> Any:
    if kind is Atomic:
        return Atomic(value)
    raise TypeError(f"a {kind.__name__} cannot be read")


_decode_extra: Callable[[type, Any], Any] = lru_cache(maxsize=4_096)(_read_extra)
"""Cached, since the records of a Payment repeat its few amounts."""


_encoder = msgspec.json.Encoder(enc_hook=_encode_extra)


class _Decoders:
    """The decoders of this process, each made once."""

    def __init__(self) -> None:
        self._made: dict[tuple[Any, bool], msgspec.json.Decoder[Any]] = {}
        self._lock = threading.Lock()
        register_fork_reset(self)

    def reset_after_fork(self) -> None:
        """Start with a free lock: no thread of the child has it."""
        self._lock = threading.Lock()

    def get(self, kind: Any, *, strict: bool = True) -> msgspec.json.Decoder[Any]:
        """The decoder of a class."""
        made = self._made.get((kind, strict))
        if made is None:
            # msgspec caches its analysis of a class with the class, and while one thread does so
            # another would see it incomplete: its first decoding then ends the process.
            with self._lock:
                made = self._made.get((kind, strict)) or msgspec.json.Decoder(
                    kind, strict=strict, dec_hook=_decode_extra
                )
                self._made[kind, strict] = made
        return made


_decoders = _Decoders()
_decoder = _decoders.get


def stamp(record: R, version: int) -> R:
    """The record as it is stored at that version."""
    return evolve(
        record, version=version, schema=max(record.schema, type(record).collection.write_schema)
    )


def encode(record: Record) -> bytes:
    """The body of a stamped record, in its schema.

    The body is decoded once, which takes some microseconds: a record with a value that its class
    does not allow would otherwise be stored, and every list with it would fail. Raises
    UnstorableRecord.
    """
    collection = type(record).collection
    body = _encoder.encode(record)
    if record._unknown or collection.write_schema < collection.schema:
        document = {**record._unknown, **msgspec.json.decode(body)}
        body = msgspec.json.encode(_downgrade(collection, document))
    elif collection.oldest_reader > 1:
        body = b'%b,"%b":%d}' % (body[:-1], OLDEST_READER.encode(), collection.oldest_reader)
    if len(body) > MAX_BODY_BYTES:
        raise UnstorableRecord(
            f"a {type(record).__name__} of {len(body)} bytes is too large to store"
        )
    try:
        decode(type(record), body)
    except UnreadableDocument as error:
        raise UnstorableRecord(f"a {type(record).__name__} cannot be stored: {error}") from error
    return body


_decoded = DecodedRecords(_decoder)


def decode(kind: type[R], body: bytes | str) -> R:
    """The record of a stored body, upgraded to the present schema. Raises UnreadableDocument."""
    fault: msgspec.DecodeError | None = None
    try:
        record = _decoded.get(kind, body)
        if record.schema == kind.collection.schema:
            return record
    except msgspec.DecodeError as error:
        fault = error
    return _convert(kind, _parse_document(kind, body), fault)


def encode_value(kind: Any, value: Any) -> bytes:
    """The body of a value made of records, such as an operation's result; it has no schema.

    `kind` is its type. Fields added to its class later need a default. Raises UnstorableRecord if
    `decode_value` would not return the same value.
    """
    body = _encoder.encode(value)
    try:
        # Not strict: an `int` field may hold an Atomic, which is written as text.
        again = _decoder(kind, strict=False).decode(body)
    except msgspec.DecodeError as error:
        raise UnstorableRecord(f"a {kind} cannot be stored: {error}") from error
    # A newer release's fields of a record are left out, which changes the record.
    if again != value and _encoder.encode(again) != body:
        raise UnstorableRecord(f"a {kind} changes when it is stored")
    return body


def decode_value(kind: Any, body: bytes) -> Any:
    """The value of a body of `encode_value`. Raises UnreadableDocument."""
    _decoder(kind, strict=False)  # analyses the class: `convert` would in two threads at once
    try:
        value = add_units(kind, msgspec.json.decode(body))
        return msgspec.convert(value, kind, strict=False, dec_hook=_decode_extra, str_keys=True)
    except msgspec.DecodeError as error:
        raise UnreadableDocument(f"{kind}: {error}") from error


def _parse_document(kind: type[Record], body: bytes | str) -> Document:
    try:
        return msgspec.json.decode(body, type=Document)
    except msgspec.DecodeError as error:
        raise UnreadableDocument(f"{kind.collection.name}: {error}") from error


def _downgrade(collection: Collection, document: Document) -> Document:
    """A document in the code's form, converted to the stored form.

    A document of the next release stays in its form, since that may contain more than the form
    that this release writes; the forms of later releases are not known here.
    """
    stored = max(document["schema"], collection.write_schema)
    if stored > collection.schema:
        return document
    for schema in range(collection.schema, stored, -1):
        document = collection.downgrades[schema - 1](document)
    oldest_reader = collection.oldest_reader if stored == collection.write_schema else stored
    marked = {OLDEST_READER: oldest_reader} if oldest_reader > 1 else {}
    return {**document, "schema": stored, **marked}


def _convert(kind: type[R], document: Document, cause: Exception | None) -> R:
    collection = kind.collection
    schema = document.get("schema", 0)
    if schema == collection.schema or not isinstance(schema, int):
        raise UnreadableDocument(f"{collection.name}: {cause}") from cause
    if schema > collection.schema:
        if document.get(OLDEST_READER, 1) > collection.schema:
            # If it were read, a renamed field would be missed, and lost at the next write.
            raise UnreadableDocument(
                f"{collection.name}: schema {schema} is of a release that must not run next to this"
            )
    else:
        document.pop(OLDEST_READER, None)  # it was for other releases
        document = add_units(kind, _upgrade(collection, document, schema))
    try:
        record = msgspec.convert(document, kind, dec_hook=_decode_extra, str_keys=True)
    except msgspec.ValidationError as error:
        raise UnreadableDocument(f"{collection.name}: {error}") from error
    known = {field.name for field in attrs.fields(kind)}
    return attrs.evolve(
        record, unknown={name: value for name, value in document.items() if name not in known}
    )


def _upgrade(collection: Collection, document: Document, stored: int) -> Document:
    """A document in the code's form, with the schema in which it will be stored."""
    if stored < 1:
        raise UnreadableDocument(f"{collection.name}: there is no schema {stored}")
    for schema in range(stored, collection.schema):
        try:
            document = collection.upgrades.get(schema, dict)(document)
        except Exception as error:  # the document does not match that schema
            raise UnreadableDocument(
                f"{collection.name}: no document of schema {schema}: {type(error).__name__}"
            ) from error
    return {**document, "schema": max(stored, collection.write_schema)}
