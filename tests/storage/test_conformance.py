"""The storage suite on every adapter that ships with the library."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from payments_core.conformance.storage import AdapterLocation, StorageConformance
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.storage.port import Storage
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.postgres.adapter import open_url as open_postgres
from payments_core.storage.records import Record
from payments_core.storage.sqlite.adapter import SqliteStorage
from tests.storage.lossy import cut_next_postgres_commit, fail_next_sqlite_commit
from tests.storage.schemas import SuiteSchemas


class TestMemory(StorageConformance):
    maintenance_access = True

    def open(self, record_types: Sequence[type[Record]]) -> Storage:
        return MemoryStorage()


class TestSqlite(StorageConformance):
    persistent = True
    multi_process = True
    can_lose_commits = True
    maintenance_access = True

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "data.db"

    def open(self, record_types: Sequence[type[Record]]) -> Storage:
        return SqliteStorage(self.path, record_types)

    def location(self) -> AdapterLocation:
        return AdapterLocation(
            "payments_core.storage.sqlite.adapter:open_url", f"sqlite:///{self.path}"
        )

    def lose_next_commit(self, storage: Storage, *, applied: bool) -> None:
        assert isinstance(storage, SqliteStorage)
        fail_next_sqlite_commit(storage, sqlite3.SQLITE_IOERR_FSYNC, applied=applied)


class TestMemoryWeak(StorageConformance):
    """As weak as the port allows, except that claims here are exact and of one clock."""

    maintenance_access = True

    @pytest.fixture(autouse=True, params=range(3))
    def _seed(self, request: pytest.FixtureRequest) -> None:
        self.weakness = Weakness(seed=request.param, clock_ahead=0, short_claim=0)

    def open(self, record_types: Sequence[type[Record]]) -> Storage:
        return MemoryStorage(self.weakness)


@pytest.mark.postgres
class TestPostgres(StorageConformance):
    persistent = True
    multi_process = True
    can_lose_commits = True
    maintenance_access = True

    @pytest.fixture(autouse=True)
    def _schema(
        self, request: pytest.FixtureRequest, postgres_server: str, suite_schemas: SuiteSchemas
    ) -> Iterator[None]:
        with suite_schemas.schema_for(request.function.__name__, postgres_server) as self.url:
            yield

    def open(self, record_types: Sequence[type[Record]]) -> Storage:
        return open_postgres(self.url, record_types)

    def location(self) -> AdapterLocation:
        return AdapterLocation("payments_core.storage.postgres.adapter:open_url", self.url)

    def lose_next_commit(self, storage: Storage, *, applied: bool) -> None:
        assert isinstance(storage, PostgresStorage)
        cut_next_postgres_commit(storage, applied=applied)
