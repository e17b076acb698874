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
        self._reader = sqlite3.connect(self._file)
        self._seen: tuple[int, list[str]] | None = None
        super().__init__(storage)

    def rows(self) -> list[str]:
        """Everything that is stored, of every tenant and of the simulated chains."""
        # It changes whenever another connection commits, and most requests of a test are refused.
        (version,) = self._reader.execute("PRAGMA data_version").fetchone()
        if self._seen is None or self._seen[0] != version:
            tables = "SELECT name FROM sqlite_schema WHERE type = 'table'"
            found = [
                f"{name}: {row}"
                for (name,) in self._reader.execute(tables).fetchall()
                for row in self._reader.execute(f'SELECT * FROM "{name}"')
            ]
            self._seen = (version, found)
        return list(self._seen[1])

    def close(self) -> None:
        """Give the file back."""
        self._reader.close()
        self.api.service.close()
