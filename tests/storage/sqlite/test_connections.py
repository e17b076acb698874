"""Opening connections to a new file, which several processes may do at once."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from payments_core.conformance.storage.records import RECORD_TYPES
from payments_core.storage.port import StorageUnavailable
from payments_core.storage.sqlite.adapter import SqliteStorage


@pytest.fixture
def locked(tmp_path: Path) -> sqlite3.Connection:
    """Another process's first connection, in the middle of a change of the new file."""
    connection = sqlite3.connect(
        tmp_path / "data.db", isolation_level=None, check_same_thread=False
    )
    connection.execute("BEGIN IMMEDIATE")
    return connection


def test_a_new_file_that_another_process_changes_is_waited_for(
    tmp_path: Path, locked: sqlite3.Connection
) -> None:
    storage = SqliteStorage(tmp_path / "data.db", RECORD_TYPES)
    timer = threading.Timer(0.05, lambda: locked.execute("ROLLBACK"))
    timer.start()
    storage.migrate()
    timer.join()
    mode = locked.execute("PRAGMA journal_mode").fetchone()[0]
    assert mode == "wal"
    storage.close()
    locked.close()


def test_the_wait_for_a_new_file_ends_with_the_busy_timeout(
    tmp_path: Path, locked: sqlite3.Connection
) -> None:
    storage = SqliteStorage(tmp_path / "data.db", RECORD_TYPES, busy_timeout_s=0.03)
    with pytest.raises(StorageUnavailable, match="database is locked"):
        storage.migrate()
    storage.close()
    locked.close()
