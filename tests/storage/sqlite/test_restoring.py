"""Backups of an SQLite file put back."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from payments_core.record_types import RECORD_TYPES
from payments_core.storage.port import StorageError
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.storage.sqlite.backups import (
    SIDECAR_SUFFIXES,
    UNFINISHED,
    BackupFailed,
    backup,
    restore,
)
from tests.storage.sqlite.files import Act, damage, ids, names, opened, retire, write

ROOT = Path(__file__).resolve().parents[3]


def test_a_backup_is_put_where_there_is_nothing(path: Path, tmp_path: Path) -> None:
    backup(path, tmp_path / "backup.db", RECORD_TYPES)
    to = tmp_path / "elsewhere.db"
    made = restore(tmp_path / "backup.db", to, RECORD_TYPES)
    assert (made.path, made.rows, made.current) == (to, 1, True)
    assert ids(to) == ["first"]
    assert ids(tmp_path / "backup.db") == ["first"]


def test_a_database_that_is_there_is_replaced_only_when_asked(path: Path, tmp_path: Path) -> None:
    backup(path, tmp_path / "backup.db", RECORD_TYPES)
    storage = opened(path)
    write(storage, "later")
    storage.close()
    with pytest.raises(BackupFailed, match="already exists"):
        restore(tmp_path / "backup.db", path, RECORD_TYPES)
    assert ids(path) == ["first", "later"]
    restore(tmp_path / "backup.db", path, RECORD_TYPES, overwrite=True)
    assert ids(path) == ["first"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_old_log_cannot_come_over_what_was_put_back(path: Path, tmp_path: Path) -> None:
    backup(path, tmp_path / "backup.db", RECORD_TYPES)
    killed = (
        "import os, signal\n"
        "from tests.storage.sqlite.files import *\n"
        f"write(opened(Path({str(path)!r})), 'killed')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", killed], cwd=ROOT, check=False)
    assert (path.parent / "data.db-wal").stat().st_size > 0
    restore(tmp_path / "backup.db", path, RECORD_TYPES, overwrite=True)
    assert not {f"data.db{ending}" for ending in SIDECAR_SUFFIXES} & set(names(path.parent))
    assert ids(path) == ["first"]


def test_a_log_without_its_file_cannot_come_over_what_is_put_there(
    path: Path, tmp_path: Path
) -> None:
    backup(path, tmp_path / "backup.db", RECORD_TYPES)
    storage = opened(path)
    write(storage, "logged")
    log = (path.parent / "data.db-wal").read_bytes()
    storage.close()
    path.unlink()
    (path.parent / "data.db-wal").write_bytes(log)
    restore(tmp_path / "backup.db", path, RECORD_TYPES)
    assert ids(path) == ["first"]


def test_a_file_in_use_is_not_replaced(live: SqliteStorage, path: Path, tmp_path: Path) -> None:
    backup(path, tmp_path / "backup.db", RECORD_TYPES)
    write(live, "third")
    with pytest.raises(BackupFailed, match="a process uses"):
        restore(tmp_path / "backup.db", path, RECORD_TYPES, overwrite=True)
    write(live, "fourth")  # and goes on as if nothing had been
    assert ids(path) == ["first", "fourth", "second", "third"]


@contextmanager
def idle_process(path: Path, what: str) -> Iterator[None]:
    """Another process that has done something with the file, and keeps it open."""
    code = (
        "import sys\n"
        "from tests.storage.sqlite.files import *\n"
        f"storage = opened(Path({str(path)!r}))\n"
        f"{what}\n"
        "print(flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield


@pytest.mark.parametrize("what", ["write(storage, 'idle')", "list(scan_all(storage, KeyUse))"])
def test_a_file_in_use_by_an_idle_process_is_not_replaced(
    path: Path, tmp_path: Path, what: str
) -> None:
    backup(path, tmp_path / "backup.db", RECORD_TYPES)
    with idle_process(path, what), pytest.raises(BackupFailed, match="a process uses"):
        restore(tmp_path / "backup.db", path, RECORD_TYPES, overwrite=True)
    assert ids(path) == (["first", "idle"] if "write" in what else ["first"])
    restore(tmp_path / "backup.db", path, RECORD_TYPES, overwrite=True)
    assert ids(path) == ["first"]


def test_a_ruined_file_in_use_is_not_replaced_either(path: Path, tmp_path: Path) -> None:
    backup(path, tmp_path / "backup.db", RECORD_TYPES)
    with idle_process(path, "list(scan_all(storage, KeyUse))"):
        with path.open("r+b") as file:
            file.write(b"\x17" * 4_096)
        with pytest.raises(BackupFailed, match="a process uses"):
            restore(tmp_path / "backup.db", path, RECORD_TYPES, overwrite=True)
    restore(tmp_path / "backup.db", path, RECORD_TYPES, overwrite=True)
    assert ids(path) == ["first"]


@pytest.mark.parametrize("ruin", ["noise", "empty", "index"])
def test_a_ruined_database_is_replaced(path: Path, tmp_path: Path, ruin: str) -> None:
    backup(path, tmp_path / "backup.db", RECORD_TYPES)
    if ruin == "index":
        damage(path)
    else:
        path.write_bytes(b"\x17" * 8_192 if ruin == "noise" else b"")
    (path.parent / "data.db-wal").write_bytes(b"\x18" * 4_096)
    restore(tmp_path / "backup.db", path, RECORD_TYPES, overwrite=True)
    assert ids(path) == ["first"]


@pytest.mark.parametrize("act", [backup, restore])
def test_a_retired_file_is_not_replaced_by_one_that_takes_writes(
    path: Path, tmp_path: Path, act: Act
) -> None:
    backup(path, tmp_path / "before.db", RECORD_TYPES)
    retire(path)
    with pytest.raises(BackupFailed, match="is retired"):
        act(tmp_path / "before.db", path, RECORD_TYPES, overwrite=True)
    with pytest.raises(StorageError, match="moved"):
        opened(path)


def test_what_takes_no_writes_either_may_replace_a_retired_file(path: Path, tmp_path: Path) -> None:
    retire(path)
    after = tmp_path / "after.db"
    backup(path, after, RECORD_TYPES)
    backup(after, path, RECORD_TYPES, overwrite=True)
    with pytest.raises(BackupFailed, match="is a backup of a retired file"):
        restore(after, tmp_path / "fresh.db", RECORD_TYPES)
    restore(after, tmp_path / "fresh.db", RECORD_TYPES, retired_too=True)
    for file in (path, tmp_path / "fresh.db"):
        with pytest.raises(StorageError, match="moved"):
            opened(file)


def test_a_retired_file_is_replaced_when_that_is_asked(path: Path, tmp_path: Path) -> None:
    backup(path, tmp_path / "before.db", RECORD_TYPES)
    retire(path)
    restore(tmp_path / "before.db", path, RECORD_TYPES, overwrite=True, retired_too=True)
    write(opened(path), "again")
    assert ids(path) == ["again", "first"]


def test_a_retired_file_that_is_damaged_is_known_as_far_as_it_can_be_read(
    path: Path, tmp_path: Path
) -> None:
    backup(path, tmp_path / "before.db", RECORD_TYPES)
    retire(path)
    damage(path)
    with pytest.raises(BackupFailed, match="is retired"):
        restore(tmp_path / "before.db", path, RECORD_TYPES, overwrite=True)


def test_what_a_link_names_is_replaced_and_the_link_stays(path: Path, tmp_path: Path) -> None:
    backup(path, tmp_path / "backup.db", RECORD_TYPES)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    storage = opened(link)
    write(storage, "later")
    storage.close()
    restore(tmp_path / "backup.db", link, RECORD_TYPES, overwrite=True)
    assert link.is_symlink()
    assert ids(path) == ids(link) == ["first"]


def test_a_file_that_a_link_to_nothing_makes_is_private(tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "there.db")
    opened(link).close()
    assert stat.S_IMODE((tmp_path / "there.db").stat().st_mode) == 0o600


def test_an_unfinished_backup_that_is_whole_may_be_put_back(path: Path, tmp_path: Path) -> None:
    unfinished = path.with_name(f"{path.name}{UNFINISHED}-{7:016x}")
    backup(path, unfinished, RECORD_TYPES)
    restore(unfinished, path, RECORD_TYPES, overwrite=True)
    assert ids(path) == ids(unfinished) == ["first"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root puts a file back for somebody else")
def test_root_puts_a_file_back_for_its_owner(path: Path, tmp_path: Path) -> None:
    backup(path, tmp_path / "backup.db", RECORD_TYPES)
    os.chown(path, 65_534, 65_533)
    os.chown(path.parent, 65_532, 65_531)
    restore(tmp_path / "backup.db", path, RECORD_TYPES, overwrite=True)
    assert (path.stat().st_uid, path.stat().st_gid) == (65_534, 65_533)
    path.unlink()
    restore(tmp_path / "backup.db", path, RECORD_TYPES)
    assert (path.stat().st_uid, path.stat().st_gid) == (65_532, 65_531)


def test_only_a_file_is_replaced(path: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for act in (backup, restore):
        with pytest.raises(BackupFailed, match="is not a file"):
            act(path, tmp_path / "pipe", RECORD_TYPES, overwrite=True)
