"""Sets columns to the values in their rows' bodies, while the service runs.

Rows are walked in batches, each a short transaction. A row is corrected only at the version at
which it was read: a writer that changed it meanwhile, and knows the column, has written it; one
that does not belongs to the previous release, and `finish_migration` comes after that has ended.
"""

from __future__ import annotations

import logging
from typing import Any

import psycopg

from payments_core.storage.damaged_records import try_decode
from payments_core.storage.postgres.lock_retry import retry_on_lock
from payments_core.storage.records import Record, Value

Connection = psycopg.Connection[tuple[Any, ...]]

BACKFILL_BATCH = 200

_log = logging.getLogger(__name__)


def backfill_columns(connection: Connection, kind: type[Record]) -> int:
    """Correct the columns that differ from the body; return how many rows did."""
    collection = kind.collection
    columns = ", ".join(f'"{column}"' for column in collection.columns)
    batch = (
        f'SELECT partition, id, version, body, {columns} FROM "{collection.name}" '
        f"WHERE (partition, id) > (%s, %s) ORDER BY partition, id LIMIT {BACKFILL_BATCH}"
    ).encode()
    corrected = unreadable = 0
    last = ("", "")
    while rows := connection.execute(batch, last).fetchall():
        last = rows[-1][:2]
        wrong: list[tuple[Value, ...]] = []
        for partition, id, version, body, *present in rows:
            record = try_decode(kind, body)
            if record is None:
                unreadable += 1
            elif (values := collection.values(record)) != tuple(present):
                wrong.append((*values, partition, id, version))
        if wrong:
            corrected += retry_on_lock(lambda wrong=wrong: _update_columns(connection, kind, wrong))  # type: ignore[misc]
    if unreadable:
        _log.error("%s rows of %s cannot be read and were not changed", unreadable, collection.name)
    return corrected


def _update_columns(
    connection: Connection, kind: type[Record], wrong: list[tuple[Value, ...]]
) -> int:
    collection = kind.collection
    sets = ", ".join(f'"{column}" = %s' for column in collection.columns)
    sql = f'UPDATE "{collection.name}" SET {sets} WHERE partition = %s AND id = %s AND version = %s'
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(sql.encode(), wrong)
        return cursor.rowcount
