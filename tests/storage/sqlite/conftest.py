"""SQLite storages: an empty one, and a service's file, closed and in use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from payments_core.conformance.storage.records import RECORD_TYPES
from payments_core.storage.sqlite.adapter import SqliteStorage
from tests.storage.sqlite.files import opened, write


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[SqliteStorage]:
    """The storage suite's tables, empty."""
    storage = SqliteStorage(tmp_path / "data.db", RECORD_TYPES)
    storage.migrate()
    yield storage
    storage.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with one record, closed."""
    path = tmp_path / "live" / "data.db"
    path.parent.mkdir()
    storage = opened(path)
    write(storage, "first")
    storage.close()
    return path


@pytest.fixture
def live(path: Path) -> Iterator[SqliteStorage]:
    """A service's storage, open all the time."""
    storage = opened(path)
    write(storage, "second")
    yield storage
    storage.close()
