"""Settings of a PostgreSQL that would lose or hide committed data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg

from payments_core.storage.port import StorageError
from payments_core.storage.postgres.distribution import is_distributed
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

_ON_NODES = b"SELECT nodename, nodeport, result FROM run_command_on_workers(%s)"

_REQUIRED_ON: Mapping[str, str] = {
    "synchronous_commit": "committed transactions may be lost in a crash",
}
_RECOMMENDED_ON: Mapping[str, str] = {
    "fsync": "a crash of the machine can corrupt the database, unless the disk is durable",
    "full_page_writes": "a crash can leave torn pages, unless the disk writes whole pages",
}
"""The effect if a setting is off. Services that replace the disk may turn off those below."""

_TIMEOUTS: Mapping[str, str] = {
    "lock_timeout": "a call may wait for a locked row without end",
    "statement_timeout": "the server continues a statement that its caller has given up",
    "idle_in_transaction_session_timeout": "a process that hangs may hold its locks without end",
}
"""The effect of a timeout of 0, as with settings=off in the URL and none set for the role."""


def require_usable_schema(connection: Connection) -> None:
    """Refuse to create tables where they would be useless. Raises StorageError.

    A schema in front of the search path would get new, empty tables, and they would be
    found before the tables with the data.
    """
    faults = _find_misplaced(connection)
    if faults:
        raise StorageError(f"PostgreSQL: {faults[0]}")


def require_own_session(connection: Connection) -> None:
    """Refuse to change settings of a session that others will use. Raises StorageError.

    A pooler is detected by the process that it names, which is not the one that answers. In
    transaction mode the next statement may go to another server, and the settings stay behind.
    """
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    if row != (connection.info.backend_pid,):
        raise StorageError(
            "PostgreSQL: this connection goes through a pooler, and a migration changes settings "
            "of its session: run `payments admin migrate` with the URL of the server itself"
        )


def config_errors(connection: Connection) -> list[str]:
    """The errors, each in a sentence."""
    return [*_find_misplaced(connection), *_find_disabled(connection, _REQUIRED_ON)]


def config_warnings(connection: Connection) -> list[str]:
    """The warnings, which depend on the deployment."""
    return [*_find_disabled(connection, _RECOMMENDED_ON), *_find_endless(connection)]


def _find_endless(connection: Connection) -> list[str]:
    """Timeouts that are not set."""
    return [
        f"{name} is 0{where}: {what}"
        for name, what in _TIMEOUTS.items()
        for where, value in _read_setting(connection, name)
        if value == "0"
    ]


def _find_disabled(connection: Connection, settings: Mapping[str, str]) -> list[str]:
    return [
        f"{name} is off{where}: {what}"
        for name, what in settings.items()
        for where, value in _read_setting(connection, name)
        if value == "off"
    ]


def _read_setting(connection: Connection, name: str) -> list[tuple[str, str | None]]:
    """A setting of the server, or of a machine that it asks for rows, and a text for the place."""
    row = connection.execute("SELECT current_setting(%s, true)", (name,)).fetchone()
    assert row is not None
    found: list[tuple[str, str | None]] = [("", row[0])]
    if is_distributed(connection):
        for node, port, value in connection.execute(_ON_NODES, (f"SHOW {name}",)).fetchall():
            found.append((f" on the node {node}:{port}", value))
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
