"""Records as documents: the JSON bodies that adapters store.

Amounts are digit strings in a document, since a JSON number of 78 digits does not survive every
reader. A document says its schema: an older one is upgraded as it is read, and the fields of a
newer one are kept through `replace`.
"""

from __future__ import annotations

from typing import Any

import attrs
import msgspec

from payments_core.money import Atomic
from payments_core.storage.records import Document, R, Record

MAX_BODY_BYTES = 100_000


class UnreadableDocument(Exception):
    """A stored body is not what its collection declares: damage, or an upgrade that is missing."""


def _encode_extra(value: Any) -> Any:
    if isinstance(value, Atomic):
        return str(int(value))
    raise TypeError(f"a {type(value).__name__} cannot be stored")


def _decode_extra(kind: type, value: Any) -> Any:
    if kind is Atomic:
        return Atomic(value)
    raise TypeError(f"a {kind.__name__} cannot be read")


_encoder = msgspec.json.Encoder(enc_hook=_encode_extra)


_decoders: dict[type[Record], msgspec.json.Decoder[Any]] = {}


def _decoder(kind: type[Record]) -> msgspec.json.Decoder[Any]:
    if kind not in _decoders:
        _decoders[kind] = msgspec.json.Decoder(kind, dec_hook=_decode_extra)
    return _decoders[kind]


def stamp(record: R, version: int) -> R:
    """The record as it is stored at that version."""
    return attrs.evolve(
        record, version=version, schema=max(record.schema, type(record).collection.schema)
    )


def encode(record: Record) -> bytes:
    """The body of a stamped record."""
    body = _encoder.encode(record)
    if record._unknown:
        document = {**record._unknown, **msgspec.json.decode(body)}
        body = msgspec.json.encode(document)
    if len(body) > MAX_BODY_BYTES:
        raise ValueError(f"a {type(record).__name__} of {len(body)} bytes is too large to store")
    return body


def decode(kind: type[R], body: bytes | str) -> R:
    """The record of a stored body, upgraded to the present schema."""
    try:
        record: R = _decoder(kind).decode(body)
    except msgspec.ValidationError as error:
        record = _convert(kind, msgspec.json.decode(body), error)
    if record.schema == kind.collection.schema:
        return record
    return _convert(kind, msgspec.json.decode(body), None)


def _convert(kind: type[R], document: Document, cause: Exception | None) -> R:
    collection = kind.collection
    schema = document.get("schema", 0)
    if schema == collection.schema:
        raise UnreadableDocument(f"{collection.name}: {cause}") from cause
    while schema < collection.schema:
        if schema not in collection.upgrades:
            raise UnreadableDocument(f"{collection.name}: no upgrade from schema {schema}")
        document = collection.upgrades[schema](document)
        schema += 1
        document["schema"] = schema
    try:
        record = msgspec.convert(document, kind, dec_hook=_decode_extra)
    except msgspec.ValidationError as error:
        raise UnreadableDocument(f"{collection.name}: {error}") from error
    known = {field.name for field in attrs.fields(kind)}
    return attrs.evolve(
        record, unknown={name: value for name, value in document.items() if name not in known}
    )
