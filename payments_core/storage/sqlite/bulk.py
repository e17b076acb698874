"""The statements that read or delete many rows of an SQLite table at once.

The rows come as one JSON array: a list of parameters has a limit, and a statement for each length
would have to be prepared.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

import attrs

from payments_core.storage.records import Collection, Record
from payments_core.storage.sqlite.queries import BODY_STORED


@attrs.frozen
class BulkStatements:
    """The SQL of one collection; `:rows` is the JSON array.

    To read, it holds ids; to delete, each row is [id, version].
    """

    select: str
    delete: str


def bulk_statements_of(collection: Collection) -> BulkStatements:
    """The statements of a collection."""
    return _build_statements(collection.name)


@lru_cache(maxsize=512)
def _build_statements(table: str) -> BulkStatements:
    return BulkStatements(
        select=f"SELECT stored.id, {BODY_STORED} FROM json_each(:rows) AS wanted"
        f' CROSS JOIN "{table}" AS stored ON stored.partition = :partition'
        " AND stored.id = wanted.value",
        delete=f'DELETE FROM "{table}" WHERE rowid IN (SELECT stored.rowid FROM json_each(:rows)'
        f' AS old CROSS JOIN "{table}" AS stored ON stored.partition = :partition'
        " AND stored.id = old.value ->> 0 AND stored.version = old.value ->> 1)",
    )


def deletion_rows(records: Sequence[Record]) -> str:
    """The rows that delete these records."""
    return json.dumps([(record.id, record.version) for record in records])
