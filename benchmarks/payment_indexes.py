"""What an index of Payments costs when one is created and when its status changes.

    python -m benchmarks.payment_indexes [--rows 10000 50000] [--changed 400]

The table of Payments with its indexes, in SQLite and on a private PostgreSQL, without the service:
rows as large as a Payment's, the processor time of the statement, the WAL, and how many changes
wrote no index (HOT). It is measured without the index on `reference`, with it, and with another on
`status`, which nobody has.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg

from payments_core.payments.record import Payment
from payments_core.storage.postgres.indexes import indexes_of as postgres_indexes_of
from payments_core.storage.sqlite.schema import indexes_of as sqlite_indexes_of
from tests.servers.cluster import Cluster

COLLECTION = Payment.collection
COLUMNS = ("partition", "id", "version", *COLLECTION.columns, "body")
STATUSES = ("processing", "accepted", "executing", "succeeded")
ADDED = {"neither": (), "reference": ("reference",), "and status": ("reference", "status")}
BODY_BYTES = 2_200

Row = tuple[str | int | None, ...]
Execute = Callable[[str, Row], object]


def main() -> None:
    """Print a line for each storage, number of rows and set of indexes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--changed", type=int, default=400)
    given = parser.parse_args()
    for rows in given.rows:
        _measure_sqlite(rows, given.changed)
        _measure_postgres(rows, given.changed)


def _measure_sqlite(rows: int, changed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "payments.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        kinds = {str: "TEXT", int: "INTEGER"}
        own = ", ".join(f'"{name}" {kinds[kind]}' for name, kind in COLLECTION.columns.items())
        connection.execute(
            "CREATE TABLE payments (partition TEXT, id TEXT, version INTEGER, "
            f"{own}, body TEXT, PRIMARY KEY (partition, id))"
        )
        for name, (_, columns) in sqlite_indexes_of(COLLECTION).items():
            if name != "payments__by_reference":
                connection.execute(f"CREATE INDEX {name} ON payments ({', '.join(columns)})")
        connection.execute("BEGIN")
        connection.executemany(_insert_statement("?"), _rows(0, rows, "succeeded"))
        connection.execute("COMMIT")
        for name in _add_indexes(lambda sql: connection.execute(sql)):
            inserting, changing = _change(connection.execute, "?", time.process_time, rows, changed)
            print(
                f"SQLite     {rows:7,} rows, {name:10}  insert {inserting:4.0f} µs,"
                f"  change of status {changing:4.0f} µs"
            )
            connection.execute("DELETE FROM payments WHERE created_at >= ?", (_time_of(rows),))
        connection.close()


def _measure_postgres(rows: int, changed: int) -> None:
    with Cluster() as cluster, psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        kinds = {str: 'text COLLATE "C"', int: "bigint"}
        own = ", ".join(f'"{name}" {kinds[kind]}' for name, kind in COLLECTION.columns.items())
        connection.execute(
            f"CREATE TABLE payments (partition {kinds[str]}, id {kinds[str]}, version bigint, "
            f"{own}, body {kinds[str]}, PRIMARY KEY (partition, id))".encode()
        )
        for index in postgres_indexes_of(COLLECTION):
            if index.name != "payments__by_reference":
                connection.execute(index.create_statement(index.name, concurrently=False))
        with connection.cursor() as cursor, cursor.copy("COPY payments FROM STDIN") as copy:
            for row in _rows(0, rows, "succeeded"):
                copy.write_row(row)
        pid = connection.info.backend_pid

        def execute(sql: str, values: Row) -> object:
            return connection.execute(sql.encode(), values)

        for name in _add_indexes(lambda sql: connection.execute(sql.encode())):
            connection.execute("VACUUM ANALYZE payments")
            before = _count_changes(connection)
            inserting, changing = _change(execute, "%s", lambda: _processor_s(pid), rows, changed)
            after = _count_changes(connection)
            wal, changes, hot = (end - begin for begin, end in zip(before, after, strict=True))
            print(
                f"PostgreSQL {rows:7,} rows, {name:10}  insert {inserting:4.0f} µs,"
                f"  change of status {changing:4.0f} µs, {wal / changed:6,.0f} bytes of WAL a "
                f"Payment, {hot / changes:4.0%} HOT"
            )
            execute("DELETE FROM payments WHERE created_at >= %s", (_time_of(rows),))


def _add_indexes(execute: Callable[[str], object]) -> Iterator[str]:
    """Yield each name in ADDED while there are its indexes."""
    for name, columns in ADDED.items():
        for column in columns:
            key = f"partition, {column}, created_at, id"
            execute(f"CREATE INDEX added_{column} ON payments ({key})")
        yield name
        for column in columns:
            execute(f"DROP INDEX added_{column}")


def _change(
    execute: Execute, mark: str, processor_s: Callable[[], float], first: int, count: int
) -> tuple[float, float]:
    """Insert rows and change their status four times: the µs of an insert, and of a change."""
    new = list(_rows(first, first + count, "awaiting_payment"))
    began = processor_s()
    for row in new:
        execute(_insert_statement(mark), row)
    inserted = processor_s()
    sets = ", ".join(f'"{name}" = {mark}' for name in COLUMNS[2:])
    sql = f"UPDATE payments SET {sets} WHERE partition = {mark} AND id = {mark}"
    place = COLUMNS.index("status")
    for row in new:
        for version, status in enumerate(STATUSES, start=2):
            values = (version, *row[3:place], status, *row[place + 1 :])
            execute(sql, (*values, row[0], row[1]))
    changed = processor_s()
    each_us = 1_000_000 / count
    return (inserted - began) * each_us, (changed - inserted) * each_us / len(STATUSES)


def _insert_statement(mark: str) -> str:
    names = ", ".join(f'"{name}"' for name in COLUMNS)
    return f"INSERT INTO payments ({names}) VALUES ({', '.join([mark] * len(COLUMNS))})"


def _rows(first: int, end: int, status: str) -> Iterator[Row]:
    """Rows that differ as Payments do; their ids come in no order."""
    for number in range(first, end):
        digest = hashlib.sha256(str(number).encode()).hexdigest()
        values: dict[str, str | int | None] = {
            "status": status,
            "intent": "receive",
            "account_id": f"acct_{number % 50}",
            "reference": f"order-{number}",
            "session_id": f"ses_{digest[:24]}",
            "escrow_address": f"0x{digest[:40]}",
            "sent_to": None,
            "chain_id": 8453,
            "created_at": _time_of(number),
        }
        own = (values[name] for name in COLLECTION.columns)
        body = random.Random(number).randbytes(BODY_BYTES // 2).hex()  # compresses little
        yield ("env_1", f"payment_{digest[24:48]}", 1, *own, body)


def _time_of(number: int) -> int:
    return number * 60_000


def _processor_s(pid: int) -> float:
    """The processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _count_changes(connection: psycopg.Connection) -> tuple[int, int, int]:
    """Bytes of WAL, updates, and HOT updates of Payments so far."""
    connection.execute("SELECT pg_stat_force_next_flush()")
    connection.execute("SELECT 1")  # the statement before this one has already reported
    found = connection.execute(
        "SELECT (pg_current_wal_lsn() - '0/0')::bigint, n_tup_upd, n_tup_hot_upd "
        "FROM pg_stat_user_tables WHERE relname = 'payments'"
    ).fetchone()
    assert found is not None
    return found


if __name__ == "__main__":
    main()
