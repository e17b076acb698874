"""All partitions at once, in an SQLite file (`wholesale.py`).

A file that was retired refuses writes by triggers, so that also a process of an older release, and
one that runs on it already, cannot write to what nobody reads any more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from payments_core.storage.port import Located
from payments_core.storage.records import R, Record
from payments_core.storage.sqlite.gate import Gate
from payments_core.storage.sqlite.rows import storage_error, unique_conflict
from payments_core.storage.sqlite.schema import SCHEMA_TABLE
from payments_core.storage.wholesale import BATCH, Alone, Place, Row, records_of

RETIRED = "retired__"
"""How the triggers that refuse writes are named, before their tables' names."""

_BYTES = "CAST(body AS BLOB)"
"""A damaged body may be no text, and the driver would refuse the whole batch for it."""


def walk(
    connection: sqlite3.Connection, kind: type[R], after: Place | None, limit: int
) -> list[Located[R]]:
    """What `Wholesale.walk` promises, on a connection whose transaction the caller began."""

    def behind(after: Place | None) -> list[tuple[str, str, bytes]]:
        return connection.execute(
            f'SELECT partition, id, {_BYTES} FROM "{kind.collection.name}" {_behind(after)}',
            (*(after or ()), limit),
        ).fetchall()

    return records_of(kind, after, behind)


@contextmanager
def alone(
    connect: Callable[[], sqlite3.Connection],
    gate: Gate,
    commit: Callable[[sqlite3.Connection], None],
) -> Iterator[Alone]:
    """What `Wholesale.alone` promises, on a connection of its own."""
    connection = connect()
    try:
        # The gate is for getting the lock in turn. Who comes later waits for SQLite's own lock,
        # and gives up in time: at the gate each would leave a thread behind.
        with gate.held():
            connection.execute("BEGIN IMMEDIATE")
        everything = SqliteAlone(connection)
        yield everything
        everything.finish()
        commit(connection)
    except sqlite3.Error as error:
        raise storage_error(error) from error
    finally:
        connection.close()  # what was not committed is undone
        gate.close()


class SqliteAlone:
    """A file that nobody else writes to, on a connection that began with BEGIN IMMEDIATE."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._failure: BaseException | None = None

    def rows(
        self, kind: type[Record], *, after: Place | None = None, limit: int = BATCH
    ) -> Sequence[Row]:
        collection = kind.collection
        names = "".join(f'"{column}", ' for column in collection.columns)
        found = self._connection.execute(
            f'SELECT partition, id, version, {names}{_BYTES} FROM "{collection.name}" '
            f"{_behind(after)}",
            (*(after or ()), limit),
        ).fetchall()
        return [
            Row(partition, id, version, tuple(columns), body.decode(errors="surrogateescape"))
            for partition, id, version, *columns, body in found
        ]

    def load(self, kind: type[Record], rows: Sequence[Row]) -> None:
        collection = kind.collection
        names = "".join(f'"{column}", ' for column in collection.columns)
        marks = ", ".join("?" * (len(collection.columns) + 4))
        sql = f'INSERT INTO "{collection.name}" (partition, id, version, {names}body) '
        try:
            self._connection.executemany(
                f"{sql} VALUES ({marks})",
                [(row.partition, row.id, row.version, *row.columns, row.body) for row in rows],
            )
        except sqlite3.IntegrityError as error:
            self._failure = unique_conflict(collection, error)
            raise self._failure from error
        except BaseException as error:
            self._failure = error
            raise

    def is_retired(self) -> bool:
        return is_retired(self._connection)

    def retire(self, note: str) -> None:
        self.reinstate()
        # So that `migrate` has something to write, and a process does not start on the file.
        self._connection.execute(f"UPDATE {SCHEMA_TABLE} SET fingerprint = ''")
        told = note.replace("'", "''")
        for table in self._tables():
            for act in ("INSERT", "UPDATE", "DELETE"):
                self._connection.execute(
                    f'CREATE TRIGGER "{RETIRED}{table}_{act}" BEFORE {act} ON "{table}" '
                    f"BEGIN SELECT RAISE(ABORT, '{told}'); END"
                )

    def reinstate(self) -> bool:
        found = _retired_by(self._connection)
        for name in found:
            self._connection.execute(f'DROP TRIGGER "{name}"')
        return bool(found)

    def finish(self) -> None:
        """Raise what ended a load, should it have been swallowed: a part of it may be there."""
        if self._failure is not None:
            raise self._failure

    def _tables(self) -> list[str]:
        found = self._connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' "
            "ESCAPE '\\'"
        ).fetchall()
        return [name for (name,) in found]


def is_retired(connection: sqlite3.Connection) -> bool:
    """Whether the file refuses writes, since its records are elsewhere now."""
    return bool(_retired_by(connection))


def _retired_by(connection: sqlite3.Connection) -> list[str]:
    """The triggers that refuse writes."""
    found = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND substr(name, 1, ?) = ?",
        (len(RETIRED), RETIRED),
    ).fetchall()
    return [name for (name,) in found]


def _behind(after: Place | None) -> str:
    start = "WHERE (partition, id) > (?, ?) " if after else ""
    return f"{start}ORDER BY partition, id LIMIT ?"
