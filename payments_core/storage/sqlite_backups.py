"""Backups of an SQLite file while the service runs, and putting one back.

A backup is one plain file: no log lies beside it, whoever copies it copies all. It is checked
before it gets its name, and so is what is put back.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import attrs

from payments_core.storage.records import Record
from payments_core.storage.sqlite_schema import SCHEMA_TABLE, is_current

UNFINISHED = ".unfinished"
"""What the name of a file ends with until it is checked."""

BUSY_TIMEOUT_S = 5.0
COMPANIONS = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a file. It would take an old log for the new file's own."""

_SHARED_LOCKS = (0x40000002, 510)
"""The bytes of a file, and how many, of which every process that has it open locks one."""

_IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@attrs.frozen
class Backup:
    """What was written, or put back. `current` is false where `migrate` has work to do."""

    path: Path
    bytes: int
    rows: int
    current: bool


class BackupFailed(Exception):
    """Why there is no backup, or it was not put back; what was there is there still."""


def backup(
    path: str | os.PathLike[str],
    to: str | os.PathLike[str],
    kinds: Sequence[type[Record]],
    *,
    overwrite: bool = False,
) -> Backup:
    """Write all that is committed at one moment into a file of mode 0600, and check it.

    The service may go on; its log grows meanwhile, since nothing of it can be given up. Raises
    BackupFailed for a file that is not one of ours or is damaged, for one in the way unless
    `overwrite`, and for a disk that is full.
    """
    source, target = Path(path), Path(to)
    if not source.is_file():
        raise BackupFailed(f"{source} is not there")
    if target.exists() and not overwrite:
        raise BackupFailed(f"{target} is there already")
    if target.exists() and target.samefile(source):
        raise BackupFailed("a file cannot be a backup of itself")
    with _told(), _checked_copy(source, target, kinds) as (unfinished, made):
        if overwrite:
            _clear_away_companions(target)
        _name(unfinished, target)
        return made


def restore(
    path: str | os.PathLike[str],
    to: str | os.PathLike[str],
    kinds: Sequence[type[Record]],
    *,
    overwrite: bool = False,
) -> Backup:
    """Put a backup in the place of a storage's file, or where there is none; check it first.

    Stop all processes that use the file before: one that has it open is noticed, and one that
    only is about to is not. Raises BackupFailed for a backup that is damaged or is not one of
    ours, for a file in use, and for one that is there unless `overwrite`.
    """
    source, target = Path(path), Path(to)
    if not source.is_file():
        raise BackupFailed(f"{source} is not there")
    if target.exists() and not overwrite:
        raise BackupFailed(f"{target} is there already")
    if target.exists() and target.samefile(source):
        raise BackupFailed("a file cannot be restored from itself")
    with _told(), _checked_copy(source, target, kinds) as (unfinished, made):
        if target.exists():
            with _nobody_uses(target):
                _clear_away_companions(target)
                _name(unfinished, target)
        else:
            _clear_away_companions(target)
            _name(unfinished, target)
        return made


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise BackupFailed(f"SQLite: {error}") from error
    except OSError as error:
        raise BackupFailed(f"{error.filename or 'the file'}: {error.strerror}") from error


@contextmanager
def _checked_copy(
    source: Path, target: Path, kinds: Sequence[type[Record]]
) -> Iterator[tuple[Path, Backup]]:
    """A checked copy beside the target, which is gone afterwards unless it was given its name."""
    unfinished = target.with_name(target.name + UNFINISHED)
    unfinished.unlink(missing_ok=True)  # of one that was killed
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        with closing(_open(source, "ro")) as old, closing(_open(unfinished, "rw")) as new:
            # In one step, so one read transaction: in several, it would begin again with each
            # commit that comes in between, and never end beside a busy service.
            old.backup(new, pages=-1)
            new.execute("PRAGMA journal_mode = DELETE")
            rows, current = _check(new, kinds)
        _sync(unfinished)
        yield unfinished, Backup(target, unfinished.stat().st_size, rows, current)
    finally:
        unfinished.unlink(missing_ok=True)
        _clear_away_companions(unfinished)


def _open(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
    )


def _check(connection: sqlite3.Connection, kinds: Sequence[type[Record]]) -> tuple[int, bool]:
    """How many rows there are, and whether its schema is ours as it is now."""
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        raise BackupFailed(f"the file is damaged: {found}")
    tables = {
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    if SCHEMA_TABLE not in tables:
        raise BackupFailed("the file is not a storage of ours, or was never migrated")
    rows = sum(
        connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
        for name in {kind.collection.name for kind in kinds} & tables
    )
    return rows, is_current(connection, kinds)


@contextmanager
def _nobody_uses(path: Path) -> Iterator[None]:
    """Keep others from the file; raise BackupFailed where one has it open.

    What is committed and lies in its log comes into the file first, so that a kill loses nothing.
    """
    with closing(_open(path, "rw")) as connection:
        try:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA journal_mode = DELETE")  # only who is alone can leave WAL
            connection.execute("BEGIN EXCLUSIVE")
            damaged = False
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _IN_USE:
                raise BackupFailed(f"a process uses {path}: stop it first") from error
            damaged = True
        if not damaged:
            yield
            return
    with path.open("r+b") as file:  # what is in its place is no database that SQLite could lock
        start, length = _SHARED_LOCKS
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
        except OSError as error:
            raise BackupFailed(f"a process uses {path}: stop it first") from error
        yield


def _clear_away_companions(path: Path) -> None:
    for ending in COMPANIONS:
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _name(unfinished: Path, target: Path) -> None:
    """Give a file its name, for good."""
    os.replace(unfinished, target)
    _sync(target.absolute().parent)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        with suppress(OSError):
            os.close(file)
