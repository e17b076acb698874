"""Who has a storage alone keeps every other writer out, and a retired file keeps out all."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from payments_core.kinds import KINDS
from payments_core.storage.port import Storage, StorageError, StorageUnavailable
from payments_core.storage.postgres import PostgresStorage
from payments_core.storage.sqlite import SqliteStorage
from payments_core.storage.wholesale import Alone, Retires, every
from payments_core.tenants.record import KeyUse

NOTE = "the records are in the new database of Bob's"


def write(storage: Storage, id: str = "key_a") -> None:
    storage.transact("env_a", lambda tx: tx.insert(KeyUse(id=id, last_used_at=1)))


def ids(storage: Storage) -> list[str]:
    return [one.record.id for one in every(storage, KeyUse)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    opened(tmp_path / "data.db").close()
    return tmp_path / "data.db"


def opened(path: Path) -> SqliteStorage:
    storage = SqliteStorage(path, KINDS, busy_timeout_s=0.2)
    storage.migrate()
    return storage


def test_other_writers_of_an_sqlite_file_are_told_to_come_back_and_readers_are_not(
    path: Path,
) -> None:
    mine, others = opened(path), opened(path)
    write(others, "before")
    with mine.alone():
        for storage in (mine, others):  # in this process, and as if in another
            with pytest.raises(StorageUnavailable):
                write(storage)
            assert ids(storage) == ["before"]
    write(others, "after")
    write(mine, "later")
    assert ids(mine) == ["after", "before", "later"]


def test_a_file_that_others_do_not_stop_writing_to_cannot_be_had(path: Path) -> None:
    storage = opened(path)
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageUnavailable), storage.alone():
            pytest.fail("somebody else has it")
        other.execute("ROLLBACK")
    other.close()
    with storage.alone():
        pass


@pytest.mark.postgres
def test_other_writers_of_a_postgresql_are_told_to_come_back_and_readers_are_not(
    emptied_schema: str,
) -> None:
    mine, others = (PostgresStorage(emptied_schema, KINDS) for _ in range(2))
    write(others, "before")
    with mine.alone():
        with pytest.raises(StorageUnavailable):
            write(others)
        assert ids(others) == ["before"]
    write(others, "after")
    assert ids(mine) == ["after", "before"]
    mine.close()
    others.close()


@pytest.fixture
def retired(path: Path) -> Iterator[SqliteStorage]:
    """A storage that was open all the time while its file was retired."""
    storage, mover = opened(path), opened(path)
    write(storage, "before")
    with mover.alone() as alone:
        retiring(alone).retire(NOTE)
    mover.close()
    yield storage
    storage.close()


def retiring(alone: Alone) -> Retires:
    assert isinstance(alone, Retires)
    return alone


def test_whoever_runs_on_a_file_when_it_is_retired_can_write_no_more(
    retired: SqliteStorage,
) -> None:
    with pytest.raises(StorageError, match="Bob's"):
        write(retired, "lost")
    with pytest.raises(StorageError, match="Bob's"):
        retired.transact("env_a", lambda tx: tx.replace(stored(retired)))
    with pytest.raises(StorageError, match="Bob's"):
        retired.transact("env_a", lambda tx: tx.delete(stored(retired)))
    assert ids(retired) == ["before"]


def stored(storage: Storage) -> KeyUse:
    (found,) = every(storage, KeyUse)
    return found.record


def test_no_process_starts_on_a_retired_file_not_even_one_of_another_release(
    retired: SqliteStorage, path: Path
) -> None:
    for kinds in (KINDS, KINDS[:20]):
        with pytest.raises(StorageError, match="Bob's"):
            SqliteStorage(path, kinds).migrate()


def test_a_retired_file_that_is_reinstated_takes_writes_again(
    retired: SqliteStorage, path: Path
) -> None:
    with retired.alone() as alone:
        assert retiring(alone).reinstate()
        assert not retiring(alone).reinstate()
    fresh = opened(path)
    write(fresh, "later")
    write(retired, "again")
    assert ids(retired) == ["again", "before", "later"]


def test_a_file_is_retired_with_the_end_and_not_before(path: Path) -> None:
    storage = opened(path)

    def interrupted() -> None:
        with storage.alone() as alone:
            retiring(alone).retire(NOTE)
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    write(storage)
    assert ids(storage) == ["key_a"]
