"""The storage suite on Citus, with every table distributed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from payments_core.conformance.storage import AdapterLocation, StorageConformance
from payments_core.storage.port import Storage
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.postgres.adapter import open_url as open_postgres
from payments_core.storage.records import Record
from tests.servers.citus import citus_or_skip
from tests.storage.lossy import cut_next_postgres_commit
from tests.storage.schemas import SuiteSchemas

pytestmark = pytest.mark.postgres


class TestCitus(StorageConformance):
    persistent = True
    multi_process = True
    can_lose_commits = True
    maintenance_access = True

    @pytest.fixture(autouse=True)
    def _schema(
        self, request: pytest.FixtureRequest, suite_schemas: SuiteSchemas
    ) -> Iterator[None]:
        server = citus_or_skip().url()
        with suite_schemas.schema_for(request.function.__name__, server) as self.url:
            yield

    def open(self, record_types: Sequence[type[Record]]) -> Storage:
        return open_postgres(self.url, record_types)

    def location(self) -> AdapterLocation:
        return AdapterLocation("payments_core.storage.postgres.adapter:open_url", self.url)

    def lose_next_commit(self, storage: Storage, *, applied: bool) -> None:
        assert isinstance(storage, PostgresStorage)
        cut_next_postgres_commit(storage, applied=applied)
