"""A schema of its own for each test, and what leads to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from payments_core.conformance.storage.records import RECORD_TYPES
from payments_core.storage.postgres.adapter import PostgresStorage
from tests.servers import drop_schema, fresh_schema
from tests.storage.postgres.proxy import Proxy


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
