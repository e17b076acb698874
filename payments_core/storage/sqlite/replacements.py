"""Replacing rows of an SQLite table. Only the columns that change are set.

SQLite rewrites every index that has a column of an UPDATE's SET, whether its value changes or not:
six for a Payment, of which each is a page more in the log. So the columns whose values differ from
those of the record that the transaction has read are set, and the others are compared. They differ
only where the previous release wrote the row and does not know a newer column; then all are set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import msgspec

from payments_core.field_views import viewed_fields
from payments_core.storage import documents
from payments_core.storage.records import Collection, Record, Value

Write = Callable[[str, Sequence[Value] | Mapping[str, Value]], int]
"""Runs a statement, and returns how many rows it has changed."""

_UNKNOWN = object()


def replace_rows(
    write: Write,
    partition: str,
    collection: Collection,
    records: Sequence[Record],
    read: Mapping[str, Record],
) -> bool:
    """Replace the rows of these records; whether all had the records' versions.

    `read` has the records as this transaction has read them, by id.
    """
    rows: list[tuple[Value, ...]] = []
    changed: set[str] = set()
    for record in records:
        stored = documents.stamp(record, record.version + 1)
        values = collection.values(stored)
        body = documents.encode(stored).decode()
        rows.append((record.id, record.version, stored.version, *values, body))
        changed.update(_find_changed_columns(collection, read.get(record.id), values))
    left = len(rows)
    every = tuple(collection.columns)
    for columns in dict.fromkeys((tuple(name for name in every if name in changed), every)):
        if left:
            left -= _update(write, partition, collection, columns, rows)
    return not left


def _update(
    write: Write,
    partition: str,
    collection: Collection,
    changed: tuple[str, ...],
    rows: Sequence[tuple[Value, ...]],
) -> int:
    """Set the changed columns of the rows that have the versions; return how many had."""
    columns = tuple(collection.columns)
    if len(rows) == 1:
        sql = replace_statement(collection.name, columns, changed)
        return write(sql, (partition, *rows[0]))
    sql = replace_many_statement(collection.name, columns, changed)
    return write(sql, {"partition": partition, "rows": msgspec.json.encode(rows).decode()})


def _find_changed_columns(
    collection: Collection, before: Record | None, values: Sequence[Value]
) -> Sequence[str]:
    """The columns of a record whose values are others before; all if nothing is known of it.

    The old values are not verified: the record may be replaced because they are wrong.
    """
    fields = viewed_fields(type(before))
    named = zip(collection.columns, values, strict=True)
    return [
        name for name, value in named if getattr(before, fields.get(name, name), _UNKNOWN) != value
    ]


@lru_cache(maxsize=2048)
def replace_statement(table: str, columns: tuple[str, ...], changed: tuple[str, ...]) -> str:
    """UPDATE a row: its partition, id and version, the new version, the columns, the body."""
    places = {name: f"?{number}" for number, name in enumerate((*columns, "body"), 5)}
    sets = "".join(f', "{name}" = {places[name]}' for name in (*changed, "body"))
    same = _compare(table, columns, changed, places)
    return (
        f'UPDATE "{table}" SET "version" = ?4{sets}'
        f" WHERE partition = ?1 AND id = ?2 AND version = ?3{same}"
    )


@lru_cache(maxsize=2048)
def replace_many_statement(table: str, columns: tuple[str, ...], changed: tuple[str, ...]) -> str:
    """UPDATE the rows of the JSON array `:rows`, each like those of `replace_statement`."""
    places = {name: f"value ->> {number}" for number, name in enumerate((*columns, "body"), 3)}
    set_columns = ("version", *changed, "body")
    sets = ", ".join(f'"{name}" = new."{name}"' for name in set_columns)
    values = ", ".join(f'{places.get(name, "value ->> 2")} AS "{name}"' for name in set_columns)
    same = _compare("stored", columns, changed, places)
    # The limit keeps SQLite from taking the table first, and the rows for each of its own.
    return (
        f'UPDATE "{table}" SET {sets} FROM (SELECT stored.rowid AS place, {values}'
        f' FROM json_each(:rows) CROSS JOIN "{table}" AS stored ON stored.partition = :partition'
        " AND stored.id = value ->> 0 AND stored.version = value ->> 1"
        f"{same} LIMIT -1) AS new"
        f' WHERE "{table}".rowid = new.place'
    )


def _compare(
    table: str, columns: Sequence[str], changed: Sequence[str], places: Mapping[str, str]
) -> str:
    """The condition that the columns which are not set have the record's values.

    SQLite takes the name of a column that is missing for a text, unless its table is named too.
    """
    return "".join(
        f' AND "{table}"."{name}" IS {places[name]}' for name in columns if name not in changed
    )
