"""SQLite's own checks of a file: its pages and indexes, and rows that name missing rows."""

from __future__ import annotations

import sqlite3
import time
from itertools import islice

from payments_core.storage.capabilities import Integrity

MAX_FAULTS = 20
_STEPS_PER_LOOK = 1_000
"""Instructions of SQLite's machine between two looks at the clock: well below a millisecond."""


def check_integrity(connection: sqlite3.Connection, limit_s: float) -> Integrity:
    """The faults found within `limit_s` seconds, up to MAX_FAULTS of each check."""
    until = time.monotonic() + limit_s
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS_PER_LOOK)
    faults: list[str] = []
    try:
        for (text,) in connection.execute(f"PRAGMA quick_check({MAX_FAULTS})"):
            if text != "ok":
                faults.append(text)
        orphans = islice(connection.execute("PRAGMA foreign_key_check"), MAX_FAULTS)
        for table, row, parent, _ in orphans:
            faults.append(f"row {row} of {table} names a row of {parent} that is missing")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return Integrity(tuple(faults), is_complete=False)
        faults.append(str(error))
    finally:
        connection.set_progress_handler(None, 0)
    return Integrity(tuple(faults), is_complete=True)
