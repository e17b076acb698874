"""Backups of an SQLite file: consistent, checked, whole or not there; and put back."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from payments_core.kinds import KINDS
from payments_core.storage.port import StorageError
from payments_core.storage.sqlite import SqliteStorage
from payments_core.storage.sqlite_backups import (
    COMPANIONS,
    UNFINISHED,
    Backup,
    BackupFailed,
    backup,
    restore,
)
from payments_core.storage.wholesale import Retires, every
from payments_core.tenants.record import KeyUse

Act = Callable[..., Backup]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with one record, closed."""
    path = tmp_path / "live" / "data.db"
    path.parent.mkdir()
    storage = opened(path)
    write(storage, "first")
    storage.close()
    return path


@pytest.fixture
def live(path: Path) -> Iterator[SqliteStorage]:
    """A service's storage, open all the time."""
    storage = opened(path)
    write(storage, "second")
    yield storage
    storage.close()


def opened(path: Path) -> SqliteStorage:
    storage = SqliteStorage(path, KINDS)
    storage.migrate()
    return storage


def write(storage: SqliteStorage, id: str) -> None:
    storage.transact("env_a", lambda tx: tx.insert(KeyUse(id=id, last_used_at=1)))


def ids(path: Path) -> list[str]:
    storage = opened(path)
    found = [one.record.id for one in every(storage, KeyUse)]
    storage.close()
    return found


def rows(path: Path) -> int:
    """How many there are, with nothing left beside the file by looking."""
    with closing(sqlite3.connect(path)) as connection:
        found: int = connection.execute("SELECT count(*) FROM key_uses").fetchone()[0]
    return found


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_backup_holds_what_is_committed_and_lies_alone(live: SqliteStorage, path: Path) -> None:
    to = path.parent.parent / "backup.db"
    made = backup(path, to, KINDS)
    assert (made.path, made.rows, made.current) == (to, 2, True)
    assert made.bytes == to.stat().st_size
    assert stat.S_IMODE(to.stat().st_mode) == 0o600
    assert names(to.parent) == ["backup.db", "live"]
    write(live, "third")
    assert ids(to) == ["first", "second"]
    assert ids(path) == ["first", "second", "third"]


def test_a_backup_beside_a_busy_service_is_one_moment_of_it(
    live: SqliteStorage, path: Path, tmp_path: Path
) -> None:
    over = threading.Event()

    def work() -> None:
        number = 0
        while not over.is_set():  # always two at once, or none
            live.transact(
                "env_a",
                lambda tx, number=number: [  # type: ignore[misc]
                    tx.insert(KeyUse(id=f"{number}-{half}", last_used_at=1)) for half in "ab"
                ],
            )
            number += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for turn in range(5):
            backup(path, tmp_path / f"{turn}.db", KINDS)
    finally:
        over.set()
        thread.join()
    counts = []
    for turn in range(5):
        found = [id for id in ids(tmp_path / f"{turn}.db") if "-" in id]
        assert len(found) % 2 == 0
        assert found == sorted(f"{n}-{half}" for n in range(len(found) // 2) for half in "ab")
        counts.append(len(found))
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_what_is_in_the_way_is_replaced_only_when_told(path: Path, tmp_path: Path) -> None:
    to = tmp_path / "backup.db"
    backup(path, to, KINDS)
    storage = opened(path)
    write(storage, "later")
    storage.close()
    with pytest.raises(BackupFailed, match="is there already"):
        backup(path, to, KINDS)
    assert rows(to) == 1
    backup(path, to, KINDS, overwrite=True)
    assert ids(to) == ["first", "later"]


@pytest.mark.parametrize("what", ["text", "database"])
def test_what_is_no_backup_is_not_replaced_even_when_told(
    path: Path, tmp_path: Path, what: str
) -> None:
    to = tmp_path / "mine"
    if what == "text":
        to.write_text("my notes")
    else:
        with closing(sqlite3.connect(to)) as connection:
            connection.execute("CREATE TABLE mine (a)")
    before = to.read_bytes()
    with pytest.raises(BackupFailed, match="no backup of ours"):
        backup(path, to, KINDS, overwrite=True)
    assert to.read_bytes() == before
    assert names(tmp_path) == ["live", "mine"]


def test_an_empty_file_is_replaced_when_told(path: Path, tmp_path: Path) -> None:
    (tmp_path / "backup.db").touch()
    backup(path, tmp_path / "backup.db", KINDS, overwrite=True)
    assert ids(tmp_path / "backup.db") == ["first"]


def test_a_backup_does_not_replace_a_database_that_a_process_uses(
    path: Path, live: SqliteStorage, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    storage = opened(other)
    write(storage, "other")
    storage.close()
    with pytest.raises(BackupFailed, match="a process uses"):
        backup(other, path, KINDS, overwrite=True)
    write(live, "third")
    assert ids(path) == ["first", "second", "third"]


@pytest.mark.parametrize("act", [backup, restore])
def test_of_two_to_one_file_the_second_is_refused_and_the_first_is_whole(
    path: Path, tmp_path: Path, act: Act, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = tmp_path / "copy.db"
    refused: list[str] = []
    rename = os.replace

    def late(old: Path, new: Path) -> None:
        """What another does between the check of the first and its rename."""
        with pytest.raises(BackupFailed, match="under way") as failure:
            act(path, to, KINDS, overwrite=True)
        refused.append(str(failure.value))
        rename(old, new)

    monkeypatch.setattr(os, "replace", late)
    act(path, to, KINDS, overwrite=True)
    monkeypatch.undo()
    assert len(refused) == 1
    assert ids(to) == ["first"]
    assert [name for name in names(tmp_path) if UNFINISHED in name] == []
    act(path, to, KINDS, overwrite=True)  # and the next has its turn


def test_what_was_put_in_the_place_of_the_checked_file_does_not_get_its_name(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = tmp_path / "copy.db"
    restore(path, to, KINDS)
    sync = os.fsync

    def exchanged(file: int) -> None:
        sync(file)
        (unfinished,) = tmp_path.glob(f"copy.db{UNFINISHED}-*[0-9a-f]")
        unfinished.unlink()
        unfinished.write_text("half of another")

    opened_before = ids(to)
    monkeypatch.setattr(os, "fsync", exchanged)
    with pytest.raises(BackupFailed, match="not the file any more that was checked"):
        restore(path, to, KINDS, overwrite=True)
    monkeypatch.undo()
    assert ids(to) == opened_before == ["first"]


@pytest.mark.parametrize("act", [backup, restore])
def test_a_file_is_not_copied_over_itself(path: Path, act: Act) -> None:
    with pytest.raises(BackupFailed, match="itself"):
        act(path, path, KINDS, overwrite=True)
    assert ids(path) == ["first"]


@pytest.mark.parametrize("act", [backup, restore])
def test_what_is_not_there_or_not_ours_is_refused(tmp_path: Path, act: Act) -> None:
    to = tmp_path / "to.db"
    with pytest.raises(BackupFailed, match="is not there"):
        act(tmp_path / "none.db", to, KINDS)
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE mine (a)")
    with pytest.raises(BackupFailed, match="not a storage of ours"):
        act(foreign, to, KINDS)
    (tmp_path / "text.db").write_text("no database at all, but text that is long enough" * 20)
    with pytest.raises(BackupFailed, match="not a database"):
        act(tmp_path / "text.db", to, KINDS)
    assert names(tmp_path) == ["foreign.db", "text.db"]


def damage(path: Path) -> None:
    """Exchange the entries of an index, as a disk might."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = "
            "'jobs__claim_order') WHERE name = 'operators__environment'"
        )
        connection.commit()


def test_a_damaged_file_makes_no_backup_and_is_not_put_back(path: Path, tmp_path: Path) -> None:
    good = tmp_path / "good.db"
    backup(path, good, KINDS)
    bad = tmp_path / "bad.db"
    bad.write_bytes(good.read_bytes())
    damage(bad)
    with pytest.raises(BackupFailed):
        backup(bad, tmp_path / "worse.db", KINDS)
    with pytest.raises(BackupFailed):
        restore(bad, path, KINDS, overwrite=True)
    assert ids(path) == ["first"]
    assert names(tmp_path) == ["bad.db", "good.db", "live"]


def test_a_backup_that_was_killed_leaves_no_file_of_that_name(path: Path, tmp_path: Path) -> None:
    to = tmp_path / "backup.db"
    for ending in ("", f"-{7:016x}", f"-{8:016x}-journal", "-lock"):
        (tmp_path / f"backup.db{UNFINISHED}{ending}").write_text("half of it")
    (tmp_path / f"backup.db{UNFINISHED}-notes").write_text("mine")
    backup(path, to, KINDS)
    assert names(tmp_path) == ["backup.db", f"backup.db{UNFINISHED}-notes", "live"]
    assert ids(to) == ["first"]


def test_a_backup_of_an_older_release_is_put_back_and_told(path: Path, tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "old.db", [*KINDS[:5], KeyUse])
    storage.migrate()
    write(storage, "old")
    storage.close()
    made = restore(tmp_path / "old.db", tmp_path / "new.db", KINDS)
    assert made.current is False
    assert ids(tmp_path / "new.db") == ["old"]


# Restoring.


def test_a_backup_is_put_where_there_is_nothing(path: Path, tmp_path: Path) -> None:
    backup(path, tmp_path / "backup.db", KINDS)
    to = tmp_path / "elsewhere.db"
    made = restore(tmp_path / "backup.db", to, KINDS)
    assert (made.path, made.rows, made.current) == (to, 1, True)
    assert ids(to) == ["first"]
    assert ids(tmp_path / "backup.db") == ["first"]


def test_a_database_that_is_there_is_replaced_only_when_told(path: Path, tmp_path: Path) -> None:
    backup(path, tmp_path / "backup.db", KINDS)
    storage = opened(path)
    write(storage, "later")
    storage.close()
    with pytest.raises(BackupFailed, match="is there already"):
        restore(tmp_path / "backup.db", path, KINDS)
    assert ids(path) == ["first", "later"]
    restore(tmp_path / "backup.db", path, KINDS, overwrite=True)
    assert ids(path) == ["first"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_old_log_cannot_come_over_what_was_put_back(path: Path, tmp_path: Path) -> None:
    backup(path, tmp_path / "backup.db", KINDS)
    killed = (
        "import os, signal\n"
        "from tests.storage.test_sqlite_backups import *\n"
        f"write(opened(Path({str(path)!r})), 'killed')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", killed], cwd=ROOT, check=False)
    assert (path.parent / "data.db-wal").stat().st_size > 0
    restore(tmp_path / "backup.db", path, KINDS, overwrite=True)
    assert not {f"data.db{ending}" for ending in COMPANIONS} & set(names(path.parent))
    assert ids(path) == ["first"]


def test_a_log_without_its_file_cannot_come_over_what_is_put_there(
    path: Path, tmp_path: Path
) -> None:
    backup(path, tmp_path / "backup.db", KINDS)
    storage = opened(path)
    write(storage, "logged")
    log = (path.parent / "data.db-wal").read_bytes()
    storage.close()
    path.unlink()
    (path.parent / "data.db-wal").write_bytes(log)
    restore(tmp_path / "backup.db", path, KINDS)
    assert ids(path) == ["first"]


def test_a_file_in_use_is_not_replaced(live: SqliteStorage, path: Path, tmp_path: Path) -> None:
    backup(path, tmp_path / "backup.db", KINDS)
    write(live, "third")
    with pytest.raises(BackupFailed, match="a process uses"):
        restore(tmp_path / "backup.db", path, KINDS, overwrite=True)
    write(live, "fourth")  # and goes on as if nothing had been
    assert ids(path) == ["first", "fourth", "second", "third"]


@contextmanager
def idle_process(path: Path, what: str) -> Iterator[None]:
    """Another process that has done something with the file, and keeps it open."""
    code = (
        "import sys\n"
        "from tests.storage.test_sqlite_backups import *\n"
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


@pytest.mark.parametrize("what", ["write(storage, 'idle')", "list(every(storage, KeyUse))"])
def test_a_file_in_use_by_an_idle_process_is_not_replaced(
    path: Path, tmp_path: Path, what: str
) -> None:
    backup(path, tmp_path / "backup.db", KINDS)
    with idle_process(path, what), pytest.raises(BackupFailed, match="a process uses"):
        restore(tmp_path / "backup.db", path, KINDS, overwrite=True)
    assert ids(path) == (["first", "idle"] if "write" in what else ["first"])
    restore(tmp_path / "backup.db", path, KINDS, overwrite=True)
    assert ids(path) == ["first"]


def test_a_ruined_file_in_use_is_not_replaced_either(path: Path, tmp_path: Path) -> None:
    backup(path, tmp_path / "backup.db", KINDS)
    with idle_process(path, "list(every(storage, KeyUse))"):
        with path.open("r+b") as file:
            file.write(b"\x17" * 4_096)
        with pytest.raises(BackupFailed, match="a process uses"):
            restore(tmp_path / "backup.db", path, KINDS, overwrite=True)
    restore(tmp_path / "backup.db", path, KINDS, overwrite=True)
    assert ids(path) == ["first"]


@pytest.mark.parametrize("ruin", ["noise", "empty", "index"])
def test_a_ruined_database_is_replaced(path: Path, tmp_path: Path, ruin: str) -> None:
    backup(path, tmp_path / "backup.db", KINDS)
    if ruin == "index":
        damage(path)
    else:
        path.write_bytes(b"\x17" * 8_192 if ruin == "noise" else b"")
    (path.parent / "data.db-wal").write_bytes(b"\x18" * 4_096)
    restore(tmp_path / "backup.db", path, KINDS, overwrite=True)
    assert ids(path) == ["first"]


@pytest.mark.parametrize("act", [backup, restore])
def test_a_retired_file_is_not_replaced_by_one_that_takes_writes(
    path: Path, tmp_path: Path, act: Act
) -> None:
    backup(path, tmp_path / "before.db", KINDS)
    retire(path)
    with pytest.raises(BackupFailed, match="is retired"):
        act(tmp_path / "before.db", path, KINDS, overwrite=True)
    with pytest.raises(StorageError, match="moved"):
        opened(path)
    backup(path, tmp_path / "after.db", KINDS)
    act(tmp_path / "after.db", path, KINDS, overwrite=True)  # it takes no writes either
    with pytest.raises(StorageError, match="moved"):
        opened(path)


def test_a_retired_file_is_replaced_when_that_is_told(path: Path, tmp_path: Path) -> None:
    backup(path, tmp_path / "before.db", KINDS)
    retire(path)
    restore(tmp_path / "before.db", path, KINDS, overwrite=True, retired_too=True)
    write(opened(path), "again")
    assert ids(path) == ["again", "first"]


def test_a_retired_file_that_is_damaged_is_known_as_far_as_it_can_be_read(
    path: Path, tmp_path: Path
) -> None:
    backup(path, tmp_path / "before.db", KINDS)
    retire(path)
    damage(path)
    with pytest.raises(BackupFailed, match="is retired"):
        restore(tmp_path / "before.db", path, KINDS, overwrite=True)


def retire(path: Path) -> None:
    storage = opened(path)
    with storage.alone() as alone:
        assert isinstance(alone, Retires)
        alone.retire("moved")
    storage.close()
