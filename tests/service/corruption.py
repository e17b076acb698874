"""Rows that cannot be read any more, made on any storage by its own port."""

from __future__ import annotations

import attrs

from payments_core.storage.port import Storage
from payments_core.storage.records import Record
from tests.service.world import write


def corrupt(storage: Storage, partition: str, record: Record) -> str:
    """Store another document in the place of a record; what an alarm says about it.

    The columns stay as they are, so that the row is found where the record was.
    """
    kind = type(record)
    stored = storage.read(partition, lambda snapshot: snapshot.get(kind, record.id))
    assert stored is not None
    columns = kind.collection.row(stored)
    torn = attrs.frozen(kw_only=True)(
        type("Torn", (Record,), {"collection": kind.collection, **columns})
    )
    write(
        storage,
        partition,
        lambda tx: tx.replace(torn(id=record.id, version=stored.version, schema=stored.schema)),
    )
    return f"{record.id} of {partition} in {kind.collection.name}"
