"""Schemas of PostgreSQL for the storage suite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg

from payments_core.conformance.storage.crashes import MigrationChecks
from payments_core.conformance.storage.records import RECORD_TYPES
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.postgres.schema import HINTS
from tests.servers import drop_schema, fresh_schema

TABLES = (*(kind.collection.name for kind in RECORD_TYPES), HINTS)


class SuiteSchemas:
    """A new schema for each check of migrations, and for all others one of each server.

    To make the tables takes longer than most checks do, on Citus by far.
    """

    def __init__(self) -> None:
        self._open = ExitStack()
        self._shared: dict[str, tuple[str, psycopg.Connection]] = {}

    @contextmanager
    def schema_for(self, check: str, server: str) -> Iterator[str]:
        """The URL of an empty schema for a check of that name."""
        if hasattr(MigrationChecks, check):
            with _fresh(server) as url:
                yield url
            return
        if server not in self._shared:
            self._shared[server] = self._share(server)
        url, connection = self._shared[server]
        yield url
        emptied = "; ".join(f'DELETE FROM "{name}"' for name in TABLES)
        connection.execute(emptied.encode(), prepare=False)

    def close(self) -> None:
        """Drop what is shared."""
        self._open.close()

    def _share(self, server: str) -> tuple[str, psycopg.Connection]:
        url = self._open.enter_context(_fresh(server))
        storage = PostgresStorage(url, RECORD_TYPES)
        storage.migrate()
        storage.close()
        connection = psycopg.connect(url, autocommit=True)
        return url, self._open.enter_context(connection)


@contextmanager
def _fresh(server: str) -> Iterator[str]:
    url = fresh_schema(server)
    try:
        yield url
    finally:
        drop_schema(url)
