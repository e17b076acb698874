"""How often a request asks the storage: round trips on PostgreSQL, statements on SQLite.

The targets are those of docs/performance.md. What the simulated chains and the sandbox's clock ask
counts on SQLite alone: on PostgreSQL real chains ask their nodes instead.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from payments_core.record_types import RECORD_TYPES
from payments_core.storage.port import Storage
from payments_core.storage.postgres.adapter import open_url as open_postgres
from payments_core.storage.postgres.pipeline import PipelinedConnection
from payments_core.storage.sqlite.adapter import SqliteStorage
from tests.http.checkout import Checkout

SIMULATION = b"simulated"


def count_requests(storage: Storage, asked: Sequence[Any]) -> Mapping[str, int]:
    """How much each request adds to `asked`; requests of its kind came before it."""
    checkout = Checkout(storage)
    found: dict[str, int] = {}

    def count(name: str, call: Callable[[], Any]) -> Any:
        before = len(asked)
        seen = call()
        found[name] = len(asked) - before
        return seen

    for n in range(2):
        payment = count("create", lambda n=n: checkout.create(key=f"create {n}")).json
        count("create again", lambda n=n: checkout.create(key=f"create {n}"))
        count("read", lambda payment=payment: checkout.read(payment["id"]))
        option = checkout.option(payment)
        seen = count(
            "authorize", lambda n=n, p=payment, o=option: checkout.authorize(p, o, key=f"pay {n}")
        )
        assert seen.status == 200, seen.body
        seen = count("list", lambda: checkout.api.call("GET", "/v2/payments"))
        assert len(seen.json["data"]) == n + 1
    return found


@pytest.mark.postgres
def test_a_request_waits_for_postgresql_a_few_times(
    emptied_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    simulating: dict[PipelinedConnection, bool] = {}
    run = PipelinedConnection.run

    def counted(pipeline: PipelinedConnection, statements: Any) -> Any:
        if pipeline.is_free:  # otherwise it goes on with a transaction
            values = [value for _, values in statements for value in values]
            simulating[pipeline] = SIMULATION in values
        if not simulating.get(pipeline):
            asked.append(statements)
        return run(pipeline, statements)

    monkeypatch.setattr(PipelinedConnection, "run", counted)
    storage = open_postgres(emptied_schema, RECORD_TYPES)
    try:
        found = count_requests(storage, asked)
    finally:
        storage.close()
    assert found == {"create": 4, "create again": 2, "read": 2, "authorize": 6, "list": 4}


def test_a_request_asks_sqlite_a_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    connect = SqliteStorage._connect

    def traced(storage: SqliteStorage) -> sqlite3.Connection:
        connection = connect(storage)
        connection.set_trace_callback(asked.append)
        return connection

    monkeypatch.setattr(SqliteStorage, "_connect", traced)
    storage = SqliteStorage(tmp_path / "payments.db", RECORD_TYPES)
    storage.migrate()
    try:
        found = count_requests(storage, asked)
    finally:
        storage.close()
    assert found == {"create": 12, "create again": 3, "read": 7, "authorize": 26, "list": 11}
