"""Backups of an SQLite file: consistent, checked, whole or not there."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from payments_core.record_types import RECORD_TYPES
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.storage.sqlite.backups import UNFINISHED, BackupFailed, backup, restore
from payments_core.tenants.record import KeyUse
from tests.storage.sqlite.files import Act, damage, ids, names, opened, rows, write


def test_a_backup_holds_what_is_committed_and_lies_alone(live: SqliteStorage, path: Path) -> None:
    to = path.parent.parent / "backup.db"
    made = backup(path, to, RECORD_TYPES)
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
                    tx.insert(KeyUse(id=f"{number}-{half}", last_used_at_ms=1)) for half in "ab"
                ],
            )
            number += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for turn in range(5):
            backup(path, tmp_path / f"{turn}.db", RECORD_TYPES)
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


def test_what_is_in_the_way_is_replaced_only_when_asked(path: Path, tmp_path: Path) -> None:
    to = tmp_path / "backup.db"
    backup(path, to, RECORD_TYPES)
    storage = opened(path)
    write(storage, "later")
    storage.close()
    with pytest.raises(BackupFailed, match="already exists"):
        backup(path, to, RECORD_TYPES)
    assert rows(to) == 1
    backup(path, to, RECORD_TYPES, overwrite=True)
    assert ids(to) == ["first", "later"]


@pytest.mark.parametrize("what", ["text", "database"])
def test_what_is_not_a_backup_is_not_replaced_even_when_asked(
    path: Path, tmp_path: Path, what: str
) -> None:
    to = tmp_path / "mine"
    if what == "text":
        to.write_text("my notes")
    else:
        with closing(sqlite3.connect(to)) as connection:
            connection.execute("CREATE TABLE mine (a)")
    before = to.read_bytes()
    with pytest.raises(BackupFailed, match="not a payments-core backup"):
        backup(path, to, RECORD_TYPES, overwrite=True)
    assert to.read_bytes() == before
    assert names(tmp_path) == ["live", "mine"]


def test_an_empty_file_is_replaced_when_asked(path: Path, tmp_path: Path) -> None:
    (tmp_path / "backup.db").touch()
    backup(path, tmp_path / "backup.db", RECORD_TYPES, overwrite=True)
    assert ids(tmp_path / "backup.db") == ["first"]


def test_a_backup_does_not_replace_a_database_that_a_process_uses(
    path: Path, live: SqliteStorage, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    storage = opened(other)
    write(storage, "other")
    storage.close()
    with pytest.raises(BackupFailed, match="a process uses"):
        backup(other, path, RECORD_TYPES, overwrite=True)
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
        with pytest.raises(BackupFailed, match="in progress") as failure:
            act(path, to, RECORD_TYPES, overwrite=True)
        refused.append(str(failure.value))
        rename(old, new)

    monkeypatch.setattr(os, "replace", late)
    act(path, to, RECORD_TYPES, overwrite=True)
    monkeypatch.undo()
    assert len(refused) == 1
    assert ids(to) == ["first"]
    assert [name for name in names(tmp_path) if UNFINISHED in name] == []
    act(path, to, RECORD_TYPES, overwrite=True)  # and the next has its turn


def test_what_was_put_in_the_place_of_the_checked_file_does_not_get_its_name(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = tmp_path / "copy.db"
    restore(path, to, RECORD_TYPES)
    sync = os.fsync

    def exchanged(file: int) -> None:
        sync(file)
        (unfinished,) = tmp_path.glob(f"copy.db{UNFINISHED}-*[0-9a-f]")
        unfinished.unlink()
        unfinished.write_text("half of another")

    opened_before = ids(to)
    monkeypatch.setattr(os, "fsync", exchanged)
    with pytest.raises(BackupFailed, match="was replaced after it was checked"):
        restore(path, to, RECORD_TYPES, overwrite=True)
    monkeypatch.undo()
    assert ids(to) == opened_before == ["first"]


@pytest.mark.parametrize("act", [backup, restore])
def test_a_file_is_not_copied_over_itself(path: Path, act: Act) -> None:
    with pytest.raises(BackupFailed, match="itself"):
        act(path, path, RECORD_TYPES, overwrite=True)
    assert ids(path) == ["first"]


@pytest.mark.parametrize("act", [backup, restore])
def test_what_is_not_there_or_not_ours_is_refused(tmp_path: Path, act: Act) -> None:
    to = tmp_path / "to.db"
    with pytest.raises(BackupFailed, match="does not exist"):
        act(tmp_path / "none.db", to, RECORD_TYPES)
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE mine (a)")
    with pytest.raises(BackupFailed, match="not a payments-core storage"):
        act(foreign, to, RECORD_TYPES)
    (tmp_path / "text.db").write_text("no database at all, but text that is long enough" * 20)
    with pytest.raises(BackupFailed, match="not a database"):
        act(tmp_path / "text.db", to, RECORD_TYPES)
    assert names(tmp_path) == ["foreign.db", "text.db"]


def test_a_damaged_file_makes_no_backup_and_is_not_put_back(path: Path, tmp_path: Path) -> None:
    good = tmp_path / "good.db"
    backup(path, good, RECORD_TYPES)
    bad = tmp_path / "bad.db"
    bad.write_bytes(good.read_bytes())
    damage(bad)
    with pytest.raises(BackupFailed):
        backup(bad, tmp_path / "worse.db", RECORD_TYPES)
    with pytest.raises(BackupFailed):
        restore(bad, path, RECORD_TYPES, overwrite=True)
    assert ids(path) == ["first"]
    assert names(tmp_path) == ["bad.db", "good.db", "live"]


def test_a_backup_that_was_killed_leaves_no_file_of_that_name(path: Path, tmp_path: Path) -> None:
    to = tmp_path / "backup.db"
    for ending in ("", f"-{7:016x}", f"-{8:016x}-journal", "-lock"):
        (tmp_path / f"backup.db{UNFINISHED}{ending}").write_text("half of it")
    (tmp_path / f"backup.db{UNFINISHED}-notes").write_text("mine")
    backup(path, to, RECORD_TYPES)
    assert names(tmp_path) == ["backup.db", f"backup.db{UNFINISHED}-notes", "live"]
    assert ids(to) == ["first"]


def test_a_backup_of_an_older_release_is_restored_and_reported(path: Path, tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "old.db", [*RECORD_TYPES[:5], KeyUse])
    storage.migrate()
    write(storage, "old")
    storage.close()
    made = restore(tmp_path / "old.db", tmp_path / "new.db", RECORD_TYPES)
    assert made.current is False
    assert ids(tmp_path / "new.db") == ["old"]
