"""A connection to an SQLite file as the storage needs it: private, in WAL mode, durable."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from payments_core.storage.port import StorageUnavailable

CHECKPOINT_PAGES = 4_000
"""SQLite's own 1,000 makes a commit in every few hundred wait for a checkpoint."""
LOG_BYTES = 64 * 2**20
"""A checkpoint cuts a longer log back to this."""
_MODE_RETRY_S = 0.01


def open_connection(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    """Open the file at `path`; make it if it does not exist.

    Raises sqlite3.Error, and StorageUnavailable if the file cannot be made.
    """
    _make_private(path)
    connection = sqlite3.connect(
        path,
        timeout=busy_timeout_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
    )
    try:
        _turn_on_wal(connection, busy_timeout_s)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
        connection.execute("PRAGMA cache_size = -16000")
        # Statements keep what they may have to undo in memory, and not in files.
        connection.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        connection.close()
        raise
    return connection


def _turn_on_wal(connection: sqlite3.Connection, busy_timeout_s: float) -> None:
    """Set the journal mode of a new file, which several processes may open at once.

    The change needs the file's lock and, unlike a write, does not wait for it. Reading the mode
    takes no lock.
    """
    until = time.monotonic() + busy_timeout_s
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(_MODE_RETRY_S)


def _make_private(path: Path) -> None:
    """Make a new file that only its owner can read; its companion files get the same mode.

    An existing file is not opened: closing it again would drop the locks that SQLite's other
    connections in this process hold on it.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise StorageUnavailable(f"{path}: {error.strerror}") from error
