"""What whole Payments cost SQLite alone: their statements again, through nothing but `sqlite3`.

    python -m benchmarks.replayed_payments [--runs 60] [--rounds 3]

The statements of whole Payments (`payment_costs.py`) are recorded with their values, and run again
on a copy of the file as it was before, over as many connections, as durably. No code of ours runs
in between, so this is what is left of a Payment's processor time if Python took none.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest import mock

import attrs

from benchmarks import payment_costs, pipeline

PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "cache_size = -16000")


@attrs.frozen
class Statement:
    """One statement, and the connection that it went over."""

    connection: int
    sql: str
    values: Any
    is_many: bool


@attrs.define
class Recorder:
    """Takes note of the statements of every connection, while it is on."""

    statements: list[Statement] = attrs.field(factory=list)
    is_on: bool = False

    def make_class(self) -> type[sqlite3.Connection]:
        """The class of the connections."""
        recorder = self

        class RecordedConnection(sqlite3.Connection):
            def execute(self, sql: str, values: Any = (), /) -> sqlite3.Cursor:
                recorder.note(Statement(id(self), sql, values, False))
                return super().execute(sql, values)

            def executemany(self, sql: str, rows: Iterable[Any], /) -> sqlite3.Cursor:
                values = list(rows)
                recorder.note(Statement(id(self), sql, values, True))
                return super().executemany(sql, values)

        return RecordedConnection

    def note(self, statement: Statement) -> None:
        if self.is_on:
            self.statements.append(statement)


def record(folder: Path, runs: int) -> tuple[list[Statement], Path, float]:
    """The statements of so many Payments, the file as it was before, and their milliseconds."""
    recorder, before = Recorder(), folder / "before.db"
    play, connect = payment_costs.whole_payments, sqlite3.connect

    def played(bench: pipeline.Bench, counts: payment_costs.StatementCounts, runs: int) -> None:
        with connect(bench.path) as source, connect(before) as copy:
            source.backup(copy)
        recorder.is_on = True
        play(bench, counts, runs)
        recorder.is_on = False

    connected: Callable[..., sqlite3.Connection] = lambda *given, **more: connect(  # noqa: E731
        *given, **{"factory": recorder.make_class(), **more}
    )
    with (
        mock.patch("sqlite3.connect", connected),
        mock.patch.object(payment_costs, "whole_payments", played),
    ):
        spent = payment_costs.measure(None, runs, postgres_s=lambda: 0.0)
    return recorder.statements, before, spent["ms"]


def replay(statements: list[Statement], path: Path) -> float:
    """Run them on that file; the seconds of processor time that it took."""
    connections = {
        one: sqlite3.connect(path, isolation_level=None, cached_statements=500)
        for one in dict.fromkeys(statement.connection for statement in statements)
    }
    for connection in connections.values():
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
    began = time.process_time()
    for statement in statements:
        connection = connections[statement.connection]
        if statement.is_many:
            connection.executemany(statement.sql, statement.values)
        else:
            connection.execute(statement.sql, statement.values).fetchall()
    spent = time.process_time() - began
    for connection in connections.values():
        connection.close()
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        statements, before, measured_ms = record(folder, options.runs)
        found = []
        for round in range(options.rounds):
            path = folder / f"{round}.db"
            shutil.copy(before, path)
            found.append(replay(statements, path) / options.runs * 1000)
    print(f"a whole Payment: {len(statements) / options.runs:.0f} statements of SQLite")
    print(f"with the service: {measured_ms:.1f} ms of processor time")
    print(f"the statements alone: {statistics.median(found):.1f} ms")


if __name__ == "__main__":
    main()
