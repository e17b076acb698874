"""What a PostgreSQL is set to that would lose, or hide, what was answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg

from payments_core.storage.port import StorageError
from payments_core.storage.postgres.schema import SCHEMA_TABLE

Connection = psycopg.Connection[tuple[Any, ...]]

ENCODING = "UTF8"

_QUERY = b"""
    SELECT current_setting('server_encoding'), current_schema(), (
        SELECT nspname
        FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
        WHERE relkind IN ('r', 'p') AND relname = %s AND pg_table_is_visible(pg_class.oid)
        AND nspname <> current_schema()
    )
"""

_REQUIRED_ON: Mapping[str, str] = {
    "synchronous_commit": "committed transactions may be lost in a crash",
}
_RECOMMENDED_ON: Mapping[str, str] = {
    "fsync": "a crash of the machine can corrupt the database, unless the disk is durable",
    "full_page_writes": "a crash can leave torn pages, unless the disk writes whole pages",
}
"""What it does that a setting is off. Services that replace the disk set those below, and may."""


def require_usable_schema(connection: Connection) -> None:
    """Refuse to make tables where they would be of no use. Raises StorageError.

    A schema that came in front of the search path would get new, empty tables, and they would be
    found before those that hold everything.
    """
    faults = _find_misplaced(connection)
    if faults:
        raise StorageError(f"PostgreSQL: {faults[0]}")


def config_errors(connection: Connection) -> list[str]:
    """What is wrong, each in a sentence."""
    return [*_find_misplaced(connection), *_find_disabled(connection, _REQUIRED_ON)]


def config_warnings(connection: Connection) -> list[str]:
    """What is wrong unless somebody knows better."""
    return _find_disabled(connection, _RECOMMENDED_ON)


def _find_disabled(connection: Connection, settings: Mapping[str, str]) -> list[str]:
    found = []
    for name, what in settings.items():
        row = connection.execute("SELECT current_setting(%s, true)", (name,)).fetchone()
        if row is not None and row[0] == "off":
            found.append(f"{name} is off: {what}")
    return found


def _find_misplaced(connection: Connection) -> list[str]:
    row = connection.execute(_QUERY, (SCHEMA_TABLE,)).fetchone()
    assert row is not None
    encoding, schema, other = row
    found = []
    if encoding != ENCODING:
        found.append(f"the encoding of the database is {encoding}; it must be {ENCODING}")
    if schema is None:
        found.append("no schema in the search path exists")
    if other is not None:
        found.append(
            f"the tables are in the schema {other}, and new ones would be made in {schema}: "
            f"name the right one in the URL, as options=-csearch_path%3D{other}"
        )
    return found
