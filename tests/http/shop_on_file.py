"""A shop whose database is a file, so that a test can see whether a request left a trace."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from payments_core.record_types import RECORD_TYPES
from payments_core.storage.sqlite.adapter import SqliteStorage
from tests.http.checkout import Checkout


class ShopOnFile(Checkout):
    """The partner's backend and the payer's browser, on SQLite."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "data.db"
        storage = SqliteStorage(self._file, RECORD_TYPES)
        storage.migrate()
        super().__init__(storage)

    def rows(self) -> list[str]:
        """Everything that is stored, of every tenant and of the simulated chains."""
        connection = sqlite3.connect(self._file)
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table'"
        try:
            return [
                f"{name}: {row}"
                for (name,) in connection.execute(tables).fetchall()
                for row in connection.execute(f'SELECT * FROM "{name}"')
            ]
        finally:
            connection.close()

    def close(self) -> None:
        """Give the file back."""
        self.door.service.close()
