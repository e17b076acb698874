"""The statements that read or write many rows of an SQLite table at once.

The rows come as one JSON array: a list of parameters has a limit, and a statement for each length
would have to be prepared.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

import attrs
import msgspec

from payments_core.storage import documents
from payments_core.storage.records import Collection, Record
from payments_core.storage.sqlite.queries import BODY_STORED


@attrs.frozen
class BulkStatements:
    """The SQL of one collection; `:rows` is the JSON array.

    To read, it holds ids; to replace, each row is [id, version, new version, columns..., body]; to
    delete, [id, version].
    """

    select: str
    replace: str
    delete: str


def bulk_statements_of(collection: Collection) -> BulkStatements:
    """The statements of a collection."""
    return _build_statements(collection.name, tuple(collection.columns))


@lru_cache(maxsize=512)
def _build_statements(table: str, columns: tuple[str, ...]) -> BulkStatements:
    names = ["version", *columns, "body"]
    sets = ", ".join(f'"{name}" = new."{name}"' for name in names)
    values = ", ".join(f'value ->> {place} AS "{name}"' for place, name in enumerate(names, 2))
    return BulkStatements(
        select=f"SELECT stored.id, {BODY_STORED} FROM json_each(:rows) AS wanted"
        f' CROSS JOIN "{table}" AS stored ON stored.partition = :partition'
        " AND stored.id = wanted.value",
        # The limit keeps SQLite from taking the table first, and the rows for each of its own.
        replace=f'UPDATE "{table}" SET {sets} FROM (SELECT stored.rowid AS place, {values}'
        f' FROM json_each(:rows) CROSS JOIN "{table}" AS stored ON stored.partition = :partition'
        " AND stored.id = value ->> 0 AND stored.version = value ->> 1 LIMIT -1) AS new"
        f' WHERE "{table}".rowid = new.place',
        delete=f'DELETE FROM "{table}" WHERE rowid IN (SELECT stored.rowid FROM json_each(:rows)'
        f' AS old CROSS JOIN "{table}" AS stored ON stored.partition = :partition'
        " AND stored.id = old.value ->> 0 AND stored.version = old.value ->> 1)",
    )


def replacement_rows(collection: Collection, records: Sequence[Record]) -> str:
    """The rows that replace these records."""
    rows = []
    for record in records:
        stored = documents.stamp(record, record.version + 1)
        body = documents.encode(stored).decode()
        values = collection.values(stored)
        rows.append((record.id, record.version, stored.version, *values, body))
    return msgspec.json.encode(rows).decode()


def deletion_rows(records: Sequence[Record]) -> str:
    """The rows that delete these records."""
    return json.dumps([(record.id, record.version) for record in records])
