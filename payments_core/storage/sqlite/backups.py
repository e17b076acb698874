"""Backups of an SQLite file while the service runs, and their restore.

A backup is one plain file: it has no log beside it, so a copy of it is complete. It is checked
before it gets its name, and so is a restored file. Until then it has a unique temporary name.
"""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import attrs

from payments_core.entropy import system_entropy
from payments_core.storage.records import Record
from payments_core.storage.sqlite.maintenance import is_retired
from payments_core.storage.sqlite.schema import SCHEMA_TABLE, is_current

UNFINISHED = ".unfinished"
"""The suffix of the target's name until the file is checked; a random part follows."""

LOCK = f"{UNFINISHED}-lock"
"""The suffix of the lock file that a backup or a restore holds while it runs."""

BUSY_TIMEOUT_S = 5.0
SIDECAR_SUFFIXES = ("-wal", "-shm", "-journal")
"""SQLite's companion files. It would take an old log for the new file's own."""

_SHARED_LOCKS = (0x40000002, 510)
"""The bytes of a file, and how many, of which every process that has it open locks one."""

_IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@attrs.frozen
class Backup:
    """The written or restored file. `current` is false if `migrate` has work to do."""

    path: Path
    bytes: int
    rows: int
    current: bool


class BackupFailed(Exception):
    """The backup or restore failed; existing files are unchanged."""


def backup(
    path: str | os.PathLike[str],
    to: str | os.PathLike[str],
    record_types: Sequence[type[Record]],
    *,
    overwrite: bool = False,
) -> Backup:
    """Write all data committed at one moment into a file of mode 0600, and check it.

    The service may go on; its log grows meanwhile, since no part of it can be dropped. Raises
    BackupFailed for a file that is not one of ours or is damaged, for an existing one unless
    `overwrite`, and for a disk that is full; for an existing file, always if it is in use,
    is neither empty nor ours, or is retired while its replacement is not.
    """
    source, target = Path(path).resolve(), Path(to).resolve()
    with _translate_errors(), _lock_target(source, target, overwrite):
        if target.exists():
            _require_storage_file(target)
        with _copy_and_check(source, target, record_types) as unfinished:
            _install(unfinished, target, overwrite=overwrite)
            return unfinished.backup


def restore(
    path: str | os.PathLike[str],
    to: str | os.PathLike[str],
    record_types: Sequence[type[Record]],
    *,
    overwrite: bool = False,
    retired_too: bool = False,
) -> Backup:
    """Restore a backup to a storage's file, which may be missing; check it first.

    It gets the owner of the old file, or of its folder. Stop all processes that use the file
    before: one that has it open is noticed, but not one that is about to open it. Raises
    BackupFailed for a backup that is damaged or is not one of ours, for a file in use, for an
    existing one unless `overwrite`, and, unless `retired_too`, if either is retired, so that its
    records are in use elsewhere.
    """
    source, target = Path(path).resolve(), Path(to).resolve()
    with (
        _translate_errors(),
        _lock_target(source, target, overwrite),
        _copy_and_check(source, target, record_types) as unfinished,
    ):
        if unfinished.retired and not retired_too:
            raise BackupFailed(
                f"{source} is a backup of a retired file: its records were moved to another "
                "storage and are in use there"
            )
        _restore_owner(unfinished, target)
        _install(unfinished, target, overwrite=overwrite, retired_too=retired_too)
        return unfinished.backup


def require_unused(path: str | os.PathLike[str]) -> None:
    """Raise BackupFailed for a storage's file that any process has open, this one included."""
    file = Path(path).resolve()
    with _translate_errors():
        if file.exists():
            with _lock_unused(file):
                pass


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise BackupFailed(f"SQLite: {error}") from error
    except OSError as error:
        raise BackupFailed(f"{error.filename or 'the file'}: {error.strerror}") from error


@contextmanager
def _lock_target(source: Path, target: Path, overwrite: bool) -> Iterator[None]:
    """One backup or restore to a target at a time, of one file to another."""
    if not source.is_file():
        raise BackupFailed(f"{source} does not exist")
    lock = target.with_name(target.name + LOCK)
    file = _acquire_lock(lock, target)
    try:
        if target.exists() and not target.is_file():
            raise BackupFailed(f"{target} is not a file")
        if target.exists() and not overwrite:
            raise BackupFailed(f"{target} already exists")
        if target.exists() and target.samefile(source):
            raise BackupFailed("a file cannot be copied over itself")
        _remove_unfinished(target, but=source)
        yield
    finally:
        with suppress(OSError):  # a remaining file is unlocked, and the next run takes it
            lock.unlink()
        os.close(file)


def _acquire_lock(lock: Path, target: Path) -> int:
    """The lock's file, held; the system releases it when a process dies."""
    while True:
        file = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_same_file(lock, os.fstat(file)):
                return file
        except BlockingIOError as error:
            os.close(file)
            raise BackupFailed(f"another backup or restore to {target} is in progress") from error
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # left by a run that ended between these two steps and removed its name


def _is_same_file(path: Path, known: os.stat_result) -> bool:
    """Whether a name still refers to a certain file."""
    try:
        return os.path.samestat(path.lstat(), known)
    except FileNotFoundError:
        return False


def _remove_unfinished(target: Path, *, but: Path) -> None:
    """Remove the remains of killed runs; nobody else uses this target."""
    ours = re.compile(
        f"{re.escape(target.name + UNFINISHED)}(-[0-9a-f]{{16}})?({'|'.join(SIDECAR_SUFFIXES)})?"
    )
    for path in target.absolute().parent.iterdir():
        if ours.fullmatch(path.name) and path != but:
            path.unlink(missing_ok=True)


@attrs.frozen
class _UnfinishedFile:
    """A complete, checked file without its final name."""

    path: Path
    stat: os.stat_result
    retired: bool
    backup: Backup


@contextmanager
def _copy_and_check(
    source: Path, target: Path, record_types: Sequence[type[Record]]
) -> Iterator[_UnfinishedFile]:
    """A checked copy beside the target, removed afterwards unless it got its name."""
    path = target.with_name(f"{target.name}{UNFINISHED}-{system_entropy(8).hex()}")
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        try:
            with closing(_open(source, "ro")) as old, closing(_open(path, "rw")) as new:
                # In one step, so one read transaction: in several, it would restart with each
                # commit that comes in between, and never end beside a busy service.
                old.backup(new, pages=-1)
                new.execute("PRAGMA journal_mode = DELETE")
                rows, current = _check(new, record_types)
                retired = is_retired(new)
            os.fsync(file)
            known = os.fstat(file)
        finally:
            os.close(file)
        yield _UnfinishedFile(path, known, retired, Backup(target, known.st_size, rows, current))
    finally:
        path.unlink(missing_ok=True)
        _remove_sidecars(path)


def _install(
    unfinished: _UnfinishedFile, target: Path, *, overwrite: bool, retired_too: bool = False
) -> None:
    """Give a checked file its name, replacing one that nobody uses."""
    if not target.exists():
        _remove_sidecars(target)
        _rename_into_place(unfinished, target)
        return
    if not overwrite:
        raise BackupFailed(f"{target} was written in the meantime")
    with _lock_unused(target) as retired:
        if retired and not unfinished.retired and not retired_too:
            raise BackupFailed(
                f"{target} is retired: its records were moved and are in use elsewhere; a restored "
                "file would accept writes too"
            )
        _remove_sidecars(target)
        _rename_into_place(unfinished, target)


def _open(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
    )


def _check(
    connection: sqlite3.Connection, record_types: Sequence[type[Record]]
) -> tuple[int, bool]:
    """The number of rows, and whether its schema is the present one."""
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        raise BackupFailed(f"the file is damaged: {found}")
    if missing := connection.execute("PRAGMA foreign_key_check").fetchone():
        raise BackupFailed(f"the file is damaged: a row of {missing[0]} names a missing row")
    tables = _table_names(connection)
    if SCHEMA_TABLE not in tables:
        raise BackupFailed("the file is not a payments-core storage, or was never migrated")
    rows = sum(
        connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
        for name in {kind.collection.name for kind in record_types} & tables
    )
    return rows, is_current(connection, record_types)


def _table_names(connection: sqlite3.Connection) -> set[str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {name for (name,) in found}


def _require_storage_file(path: Path) -> None:
    """Raise BackupFailed for a file that no backup has written, unless it is empty."""
    if path.is_file() and path.stat().st_size == 0:
        return
    try:
        with closing(_open(path, "ro")) as connection:
            ours = SCHEMA_TABLE in _table_names(connection)
    except sqlite3.DatabaseError as error:
        if _is_in_use(error):
            raise BackupFailed(f"a process uses {path}: stop it first") from error
        ours = False
    if not ours:
        raise BackupFailed(
            f"{path} is not a payments-core backup, or is damaged; it is not replaced"
        )


@contextmanager
def _lock_unused(path: Path) -> Iterator[bool]:
    """Lock the file; return whether it is retired. Raises BackupFailed if it is open.

    Committed data in its log is moved into the file first, so that a kill loses nothing.
    """
    with closing(_open(path, "rw")) as connection:
        try:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA journal_mode = DELETE")  # needs exclusive use
            connection.execute("BEGIN EXCLUSIVE")
            damaged = False
        except sqlite3.Error as error:
            if _is_in_use(error):
                raise BackupFailed(f"a process uses {path}: stop it first") from error
            damaged = True
        retired = _was_retired(connection)
        if not damaged:
            yield retired
            return
    with path.open("r+b") as file:  # the file there is not a database that SQLite could lock
        start, length = _SHARED_LOCKS
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
        except OSError as error:
            raise BackupFailed(f"a process uses {path}: stop it first") from error
        yield retired


def _was_retired(connection: sqlite3.Connection) -> bool:
    """Whether a file is retired, as far as it is readable."""
    try:
        connection.execute("PRAGMA writable_schema = ON")  # continues after malformed parts
        return is_retired(connection)
    except sqlite3.Error:
        return False


def _is_in_use(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _IN_USE


def _remove_sidecars(path: Path) -> None:
    for ending in SIDECAR_SUFFIXES:
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _restore_owner(unfinished: _UnfinishedFile, target: Path) -> None:
    """Let root restore a file for another user: the service could not open root's own."""
    if os.geteuid() == 0:
        owner = (target if target.exists() else target.parent).stat()
        os.chown(unfinished.path, owner.st_uid, owner.st_gid)


def _rename_into_place(unfinished: _UnfinishedFile, target: Path) -> None:
    """Give a file its name durably, if its temporary name still refers to the checked file."""
    if not _is_same_file(unfinished.path, unfinished.stat):
        raise BackupFailed(f"{unfinished.path} was replaced after it was checked")
    os.replace(unfinished.path, target)
    _sync_folder(target.absolute().parent)


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        with suppress(OSError):
            os.close(file)
