"""Whether the files that are open still have their names, and room to grow.

A job that cleans up may delete the log and its index beside a database in use, or put another file
in its place. SQLite goes on writing to the files without names: a crash would lose all of it.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from payments_core.storage.port import StorageUnavailable

_SUFFIXES = ("", "-wal", "-shm")


class OpenFiles:
    """The files of a database that a connection has open, and keeps open."""

    def __init__(self, path: Path) -> None:
        self._paths = tuple(path.with_name(path.name + suffix) for suffix in _SUFFIXES)
        self._known: dict[Path, tuple[int, int]] = {}

    def remember(self, connection: sqlite3.Connection) -> None:
        """To be called with the connection that stays open until the storage is closed."""
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # opens the log
        self._known = {path: found for path in self._paths if (found := _identity(path))}

    def forget(self) -> None:
        """To be called before that connection is closed: SQLite then deletes the log."""
        self._known = {}

    def require_named(self) -> None:
        """Raises StorageUnavailable if a file was deleted or replaced."""
        for path, known in self._known.items():
            if (found := _identity(path)) != known:
                what = "deleted" if found is None else "replaced by another file"
                raise StorageUnavailable(
                    f"{path} was {what} while it was open: its newest data will be lost, "
                    "see docs/how-to/back-up-and-restore.md before this process ends"
                )


def require_room(folder: Path, min_free_bytes: int) -> None:
    """Raises StorageUnavailable if the file system is full, or not writable."""
    try:
        disk = os.statvfs(folder)
    except OSError as error:
        raise StorageUnavailable(f"{folder}: {error.strerror}") from error
    if disk.f_flag & os.ST_RDONLY:
        raise StorageUnavailable(f"{folder} is mounted read-only")
    free_bytes = disk.f_bavail * disk.f_frsize
    if free_bytes < min_free_bytes:
        raise StorageUnavailable(
            f"the disk of {folder} is full: {free_bytes} bytes are free, and "
            f"{min_free_bytes} are needed"
        )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageUnavailable(f"{path}: {error.strerror}") from error
    return found.st_dev, found.st_ino
