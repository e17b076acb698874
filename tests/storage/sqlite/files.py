"""What the tests of SQLite's files do to them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from payments_core.record_types import RECORD_TYPES
from payments_core.storage.maintenance import Retirable, scan_all
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.storage.sqlite.backups import Backup
from payments_core.tenants.record import KeyUse

Act = Callable[..., Backup]


def opened(path: Path) -> SqliteStorage:
    storage = SqliteStorage(path, RECORD_TYPES)
    storage.migrate()
    return storage


def write(storage: SqliteStorage, id: str) -> None:
    storage.transact("env_a", lambda tx: tx.insert(KeyUse(id=id, last_used_at_ms=1)))


def ids(path: Path) -> list[str]:
    storage = opened(path)
    found = [one.record.id for one in scan_all(storage, KeyUse)]
    storage.close()
    return found


def rows(path: Path) -> int:
    """How many there are, with nothing left beside the file by looking."""
    with closing(sqlite3.connect(path)) as connection:
        found: int = connection.execute("SELECT count(*) FROM key_uses").fetchone()[0]
    return found


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def damage(path: Path) -> None:
    """Exchange the entries of an index, as a disk might."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = "
            "'jobs__by_queue_lane') WHERE name = 'operators__environment'"
        )
        connection.commit()


def retire(path: Path) -> None:
    storage = opened(path)
    with storage.lock_exclusively() as alone:
        assert isinstance(alone, Retirable)
        alone.retire("moved")
    storage.close()
