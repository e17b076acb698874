"""Rows of a collection that another one takes over, as that one stores them."""

from __future__ import annotations

import msgspec

from payments_core.storage import documents
from payments_core.storage.damaged_records import try_decode
from payments_core.storage.records import Document, Record, Upgrade, Value


def convert_row(kind: type[Record], convert: Upgrade, body: str) -> tuple[tuple[Value, ...], str]:
    """The column values and the body that a row of another collection has in that of `kind`.

    A row that cannot be read has no column values. It stays unreadable, so that it is reported as
    damaged, and keeps what is stored of it.
    """
    try:
        document = convert(msgspec.json.decode(body, type=Document))
    except msgspec.DecodeError:
        return _no_values(kind), body
    body = msgspec.json.encode(document).decode()
    record = try_decode(kind, body)
    if record is None:
        return _no_values(kind), body
    return kind.collection.values(record), documents.encode(record).decode()


def make_tombstone(kind: type[Record], earlier: str) -> str:
    """The name and the query of a view in place of an earlier collection's table.

    A process of the earlier release fails then, as it cannot make its table again when it starts:
    it would write there, where nobody reads. The view has none of the columns that it uses.
    """
    return f'"{earlier}" AS SELECT 1 AS taken_over_by_{kind.collection.name}'


def _no_values(kind: type[Record]) -> tuple[Value, ...]:
    return (None,) * len(kind.collection.columns)
