"""Fixtures for every folder of tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from payments_core.kinds import KINDS
from payments_core.storage.memory import MemoryStorage, Weakness
from payments_core.storage.port import Storage
from payments_core.storage.postgres import open_url as open_postgres
from payments_core.storage.sqlite import SqliteStorage
from tests.servers import drop_schema, fresh_schema, postgres_or_skip

STORAGES = (
    "memory",
    "weak-1",
    "weak-2",
    "sqlite",
    pytest.param("postgresql", marks=pytest.mark.postgres),
)
LIGHT_STORAGES = ("memory", "weak-1", "weak-2", "sqlite")
"""Those of which a test may open one after another, hundreds of times."""

Opener = Callable[[], Storage]


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    """An empty storage of every kind, in turn."""
    url = fresh_schema(postgres_or_skip()) if request.param == "postgresql" else ""
    opened = open_postgres(url, KINDS) if url else light_storage(request.param, tmp_path)
    opened.migrate()
    yield opened
    opened.close()
    if url:
        drop_schema(url)


@pytest.fixture(params=LIGHT_STORAGES)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens an empty storage at each call, of every kind but a server's."""
    places = iter(range(1_000_000))

    def opened() -> Storage:
        folder = tmp_path / str(next(places))
        folder.mkdir()
        storage = light_storage(request.param, folder)
        storage.migrate()
        return storage

    return opened


def light_storage(name: str, folder: Path) -> Storage:
    """A storage that needs no server."""
    kind, _, seed = name.partition("-")
    if kind == "sqlite":
        return SqliteStorage(folder / "data.db", KINDS)
    return MemoryStorage(Weakness(seed=int(seed)) if seed else None)
