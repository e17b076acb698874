"""Who has a storage alone keeps every other writer out, and a retired file keeps out all."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import ClassVar

import attrs
import pytest

from payments_core.record_types import RECORD_TYPES
from payments_core.storage import documents
from payments_core.storage.maintenance import (
    ExclusiveAccess,
    RecordRow,
    Retirable,
    scan_all,
    to_record_row,
)
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import (
    DIRECTORY,
    Storage,
    StorageError,
    StorageUnavailable,
    UniqueConflict,
)
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.records import Collection, Record
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.tenants.record import KeyUse, Operator

NOTE = "the records are in the new database of Bob's"


def write(storage: Storage, id: str = "key_a") -> None:
    storage.transact("env_a", lambda tx: tx.insert(KeyUse(id=id, last_used_at_ms=1)))


def ids(storage: Storage) -> list[str]:
    return [one.record.id for one in scan_all(storage, KeyUse)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    opened(tmp_path / "data.db").close()
    return tmp_path / "data.db"


def opened(path: Path) -> SqliteStorage:
    storage = SqliteStorage(path, RECORD_TYPES, busy_timeout_s=0.2)
    storage.migrate()
    return storage


def test_other_writers_of_an_sqlite_file_must_retry_and_readers_need_not(
    path: Path,
) -> None:
    mine, others = opened(path), opened(path)
    write(others, "before")
    with mine.lock_exclusively():
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
        with pytest.raises(StorageUnavailable), storage.lock_exclusively():
            pytest.fail("somebody else has it")
        other.execute("ROLLBACK")
    other.close()
    with storage.lock_exclusively():
        pass


@pytest.mark.postgres
def test_other_writers_of_a_postgresql_must_retry_and_readers_need_not(
    emptied_schema: str,
) -> None:
    mine, others = (PostgresStorage(emptied_schema, RECORD_TYPES) for _ in range(2))
    write(others, "before")
    with mine.lock_exclusively():
        with pytest.raises(StorageUnavailable):
            write(others)
        assert ids(others) == ["before"]
    write(others, "after")
    assert ids(mine) == ["after", "before"]
    mine.close()
    others.close()


@pytest.mark.postgres
def test_a_statement_that_failed_in_postgresql_is_not_a_success_and_shows_no_values(
    emptied_schema: str,
) -> None:
    storage = PostgresStorage(emptied_schema, RECORD_TYPES)
    write(storage, "sesame")

    def load(*rows: RecordRow, swallowed: bool = False) -> None:
        with storage.lock_exclusively() as alone, suppress(*[Exception] * swallowed):
            alone.load(KeyUse, rows)

    fresh, there = (
        to_record_row("env_a", documents.stamp(KeyUse(id=id, last_used_at_ms=1), 1))
        for id in ("fresh", "sesame")
    )
    for swallowed in (False, True):
        with pytest.raises(UniqueConflict) as refused:
            load(fresh, there, swallowed=swallowed)
        assert "sesame" not in f"{refused.value} {refused.value.__cause__}"
        with pytest.raises(StorageError) as failed:
            load(fresh, attrs.evolve(there, id="x", version=2**80), swallowed=swallowed)
        assert "CONTEXT" not in f"{failed.value} {failed.value.__cause__}"

    def look_amiss() -> None:
        with storage.lock_exclusively() as alone:
            alone.load(KeyUse, [fresh])
            with suppress(Exception):
                alone.read_rows(Unmigrated)

    with pytest.raises(StorageError, match="nothing was stored"):
        look_amiss()
    assert ids(storage) == ["sesame"]
    storage.close()


@attrs.frozen(kw_only=True)
class Unmigrated(Record):
    """It has no table."""

    collection: ClassVar[Collection] = Collection("unmigrated")


def test_a_body_that_is_not_text_is_passed_over(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage = opened(path)
    for id in ("a", "b"):
        write(storage, id)
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE key_uses SET body = CAST(x'7bff' AS TEXT) WHERE id = 'a'")
    with caplog.at_level(logging.CRITICAL):
        assert ids(storage) == ["b"]
    assert [record.getMessage() for record in caplog.records] == [
        "ALARM: a of env_a in key_uses cannot be read and is skipped"
    ]


@pytest.fixture
def retired(path: Path) -> Iterator[SqliteStorage]:
    """A storage that was open all the time while its file was retired."""
    storage, mover = opened(path), opened(path)
    write(storage, "before")
    with mover.lock_exclusively() as alone:
        retiring(alone).retire(NOTE)
    mover.close()
    yield storage
    storage.close()


def retiring(alone: ExclusiveAccess) -> Retirable:
    assert isinstance(alone, Retirable)
    return alone


def test_a_process_on_a_file_that_is_retired_can_no_longer_write(
    retired: SqliteStorage,
) -> None:
    with pytest.raises(StorageUnavailable, match="Bob's"):
        write(retired, "lost")
    with pytest.raises(StorageUnavailable, match="Bob's"):
        retired.transact("env_a", lambda tx: tx.replace(stored(retired)))
    with pytest.raises(StorageUnavailable, match="Bob's"):
        retired.transact("env_a", lambda tx: tx.delete(stored(retired)))
    assert ids(retired) == ["before"]
    assert retired.config_warnings() == ()
    assert retired.config_errors() == [
        "its records were moved to another storage; it accepts no writes"
    ]


def stored(storage: Storage) -> KeyUse:
    (found,) = scan_all(storage, KeyUse)
    return found.record


def test_no_process_starts_on_a_retired_file_not_even_one_of_another_release(
    retired: SqliteStorage, path: Path
) -> None:
    for kinds in (RECORD_TYPES, RECORD_TYPES[:20]):
        with pytest.raises(StorageError, match="Bob's"):
            SqliteStorage(path, kinds).migrate()


def test_a_retired_file_that_is_reinstated_takes_writes_again(
    retired: SqliteStorage, path: Path
) -> None:
    with retired.lock_exclusively() as alone:
        assert retiring(alone).is_retired()
        assert retiring(alone).reinstate()
        assert not retiring(alone).is_retired()
        assert not retiring(alone).reinstate()
    assert retired.config_errors() == []
    fresh = opened(path)
    write(fresh, "later")
    write(retired, "again")
    assert ids(retired) == ["again", "before", "later"]


def test_a_file_is_retired_with_the_end_and_not_before(path: Path) -> None:
    storage = opened(path)

    def interrupted() -> None:
        with storage.lock_exclusively() as alone:
            retiring(alone).retire(NOTE)
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    write(storage)
    assert ids(storage) == ["key_a"]


def test_what_memory_takes_back_leaves_its_unique_keys_free() -> None:
    storage = MemoryStorage()
    ada = Operator(
        id="sandbox:ada",
        username="ada",
        mode="sandbox",
        environment_id="env_a",
        password_hash="",
        password_set_at_ms=1,
        created_at_ms=1,
    )

    def load(twice: bool) -> None:
        row = to_record_row(DIRECTORY, documents.stamp(ada, 1))
        with storage.lock_exclusively() as alone:
            alone.load(Operator, [row, row] if twice else [row])

    with pytest.raises(UniqueConflict):
        load(twice=True)
    load(twice=False)
    assert [one.record.id for one in scan_all(storage, Operator)] == ["sandbox:ada"]
