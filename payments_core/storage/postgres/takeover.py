"""Moves the rows of an earlier collection into the one that takes it over.

All of them move in one transaction, which also puts a view in the place of the earlier table: a
killed process has moved none. A process of the earlier release fails afterwards.
"""

from __future__ import annotations

from typing import Any

import psycopg

from payments_core.storage.records import Record
from payments_core.storage.takeover import convert_row, make_tombstone

Connection = psycopg.Connection[tuple[Any, ...]]

_PAGE = 500


def take_over_rows(connection: Connection, kind: type[Record], earlier: str) -> None:
    """Move all rows of an earlier collection into that of `kind`, and replace its table."""
    collection = kind.collection
    convert = collection.takes_over[earlier]
    names = "".join(f', "{column}"' for column in collection.columns)
    places = ", ".join(["%s"] * (4 + len(collection.columns)))
    insert = (
        f'INSERT INTO "{collection.name}" (partition, id, version{names}, body) VALUES ({places})'
    ).encode()
    page = (
        f'SELECT partition, id, version, body FROM "{earlier}" '
        f"WHERE (partition, id) > (%s, %s) ORDER BY partition, id LIMIT {_PAGE}"
    ).encode()
    last = ("", "")
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(f'LOCK TABLE "{earlier}" IN ACCESS EXCLUSIVE MODE'.encode())
        while rows := cursor.execute(page, last).fetchall():
            last = rows[-1][:2]
            moved = []
            for partition, id, version, body in rows:
                values, converted = convert_row(kind, convert, body)
                moved.append((partition, id, version, *values, converted))
            cursor.executemany(insert, moved)
        cursor.execute(f'DROP TABLE "{earlier}"'.encode())
        leave_tombstone(connection, kind, earlier)


def leave_tombstone(connection: Connection, kind: type[Record], earlier: str) -> None:
    """Make the view that has the place of an earlier collection's table."""
    connection.execute(f"CREATE OR REPLACE VIEW {make_tombstone(kind, earlier)}".encode())
