"""A schema of its own for each test, and what leads to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from payments_core.conformance.storage.harness import PARTITION
from payments_core.conformance.storage.records import RECORD_TYPES, Counter
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.postgres.pipeline import PipelinedConnection
from tests.servers import drop_schema, fresh_schema
from tests.storage.postgres.proxy import Proxy

Trips = Callable[[Callable[[], Any]], int]


@pytest.fixture
def url(postgres_server: str) -> Iterator[str]:
    url = fresh_schema(postgres_server)
    yield url
    drop_schema(url)


@pytest.fixture
def storage(url: str) -> Iterator[PostgresStorage]:
    storage = PostgresStorage(url, RECORD_TYPES)
    storage.migrate()
    yield storage
    storage.close()


@pytest.fixture
def proxy(url: str, storage: PostgresStorage) -> Iterator[Proxy]:
    """Before the server; the schema is there."""
    proxy = Proxy(url)
    yield proxy
    proxy.close()


@pytest.fixture
def through(url: str, storage: PostgresStorage) -> Iterator[PostgresStorage]:
    """A storage of one connection, with some counters."""
    single = PostgresStorage(url, RECORD_TYPES, connections=1)
    single.transact(PARTITION, lambda tx: [tx.insert(Counter(id=f"c{n}")) for n in range(5)])
    yield single
    single.close()


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> Trips:
    """How often a call waits for the server."""
    waits: list[Any] = []
    run = PipelinedConnection.run

    def counted(pipeline: PipelinedConnection, statements: Any) -> Any:
        waits.append(statements)
        return run(pipeline, statements)

    monkeypatch.setattr(PipelinedConnection, "run", counted)

    def count(call: Callable[[], Any]) -> int:
        waits.clear()
        call()
        return len(waits)

    return count
