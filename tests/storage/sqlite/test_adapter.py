"""What is SQLite's own: the file, its errors, and its migrations."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from payments_core.conformance.storage.harness import PARTITION, fetch, run_concurrently
from payments_core.conformance.storage.jobs import QUEUE, claim, ids, job
from payments_core.conformance.storage.records import (
    RECORD_TYPES,
    RECORD_TYPES_AFTER_MIGRATION,
    RECORD_TYPES_BEFORE_MIGRATION,
    Counter,
    Mark,
    Note,
)
from payments_core.storage.port import (
    CommitUnknown,
    StorageError,
    StorageUnavailable,
    Transaction,
    UniqueConflict,
    Where,
)
from payments_core.storage.records import Collection, Index, Lookup, Record, Unique
from payments_core.storage.sqlite.adapter import SqliteStorage
from tests.storage.lossy import fail_next_sqlite_commit


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


@pytest.fixture
def storage(path: Path) -> Iterator[SqliteStorage]:
    storage = SqliteStorage(path, RECORD_TYPES, busy_timeout_s=0.05)
    storage.migrate()
    yield storage
    storage.close()


def writer_of(storage: SqliteStorage) -> sqlite3.Connection:
    with storage._open_write_transaction() as connection:
        return connection


def insert(storage: SqliteStorage, *records: Record) -> None:
    storage.transact(PARTITION, lambda tx: [tx.insert(record) for record in records])


# The file.


def test_only_its_owner_can_read_the_file(storage: SqliteStorage, path: Path) -> None:
    insert(storage, Mark(id="m"))
    for name in (path, path.with_name("data.db-wal")):
        assert name.stat().st_mode & 0o077 == 0


def test_a_place_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "nowhere" / "data.db", RECORD_TYPES)
    with pytest.raises(StorageUnavailable, match="nowhere"):
        storage.migrate()


def test_a_file_of_something_else_is_an_error(path: Path) -> None:
    path.write_bytes(b"this is not a database" * 100)
    storage = SqliteStorage(path, RECORD_TYPES)
    with pytest.raises(StorageError, match="not a database"):
        storage.migrate()


def test_a_file_that_was_never_migrated_says_so(path: Path) -> None:
    storage = SqliteStorage(path, RECORD_TYPES)
    for call in (
        lambda: insert(storage, Mark(id="m")),
        lambda: fetch(storage, Mark, "m"),
        lambda: storage.next_due("q"),
        lambda: storage.locate(Note, "named", [("n",)]),
    ):
        with pytest.raises(StorageError, match="has `migrate` been run"):
            call()
    storage.close()


def test_a_file_names_what_it_lacks_until_it_is_migrated(path: Path) -> None:
    before = SqliteStorage(path, RECORD_TYPES_BEFORE_MIGRATION)
    after = SqliteStorage(path, RECORD_TYPES_AFTER_MIGRATION)
    assert "suite_parcels" in before.missing_tables()
    before.migrate()
    assert before.missing_tables() == []
    assert after.missing_tables() == ["suite_parcels.weight", "suite_parcels.label"]
    after.migrate()
    assert (after.missing_tables(), before.missing_tables()) == ([], [])
    before.close()
    after.close()


def test_every_commit_is_synced(storage: SqliteStorage) -> None:
    writer = writer_of(storage)
    assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert writer.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_forked_process_must_open_its_own(storage: SqliteStorage) -> None:
    storage._process = os.getpid() + 1
    with pytest.raises(StorageUnavailable, match="fork"):
        insert(storage, Mark(id="m"))


# Errors.


def test_a_full_disk_undoes_the_work(storage: SqliteStorage) -> None:
    insert(storage, Mark(id="before"))
    writer = writer_of(storage)
    writer.execute(f"PRAGMA max_page_count = {writer.execute('PRAGMA page_count').fetchone()[0]}")

    def work(tx: Transaction) -> None:
        tx.insert(Mark(id="first"))
        for number in range(50):
            tx.insert(Note(id=f"n{number}", text="x" * 9_000))

    def swallow(tx: Transaction) -> None:
        try:
            work(tx)
        except StorageUnavailable:
            tx.insert(Mark(id="after the error"))

    for refused in (work, swallow):
        with pytest.raises(StorageUnavailable, match="full"):
            storage.transact(PARTITION, refused)
    writer.execute("PRAGMA max_page_count = 1000000")
    for id in ("first", "after the error"):
        assert fetch(storage, Mark, id) is None
    assert fetch(storage, Mark, "before") is not None
    insert(storage, Mark(id="life goes on"))


def test_an_interrupt_undoes_the_work_and_nothing_commits_by_itself(
    storage: SqliteStorage,
) -> None:
    writer = writer_of(storage)

    def work(tx: Transaction) -> None:
        tx.insert(Mark(id="first"))
        writer.set_progress_handler(lambda: 1, 1)
        try:
            tx.insert(Mark(id="interrupted"))
        except StorageUnavailable:
            writer.set_progress_handler(None, 0)
            assert not writer.in_transaction, "SQLite keeps the transaction now; adapt this test"
            tx.insert(Mark(id="alone"))

    with pytest.raises(StorageUnavailable, match="interrupted"):
        storage.transact(PARTITION, work)
    for id in ("first", "interrupted", "alone"):
        assert fetch(storage, Mark, id) is None


def test_a_writer_that_waits_too_long_is_unavailable(storage: SqliteStorage, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageUnavailable, match="locked"):
        insert(storage, Mark(id="m"))
    assert fetch(storage, Mark, "m") is None, "readers do not wait for writers"
    other.execute("ROLLBACK")
    insert(storage, Mark(id="m"))
    other.close()


@pytest.mark.parametrize("applied", [True, False])
def test_an_io_error_in_commit_leaves_it_unknown(storage: SqliteStorage, applied: bool) -> None:
    fail_next_sqlite_commit(storage, sqlite3.SQLITE_IOERR_FSYNC, applied=applied)
    with pytest.raises(CommitUnknown):
        insert(storage, Mark(id="m"))
    assert (fetch(storage, Mark, "m") is not None) == applied
    insert(storage, Mark(id="next"))


def test_a_commit_that_finds_the_disk_full_did_not_happen(storage: SqliteStorage) -> None:
    fail_next_sqlite_commit(storage, sqlite3.SQLITE_FULL, applied=False)
    with pytest.raises(StorageUnavailable):
        insert(storage, Mark(id="m"))
    assert fetch(storage, Mark, "m") is None
    insert(storage, Mark(id="m"))


def test_a_constraint_of_another_kind_is_an_error(storage: SqliteStorage) -> None:
    writer_of(storage).execute("ALTER TABLE suite_marks ADD COLUMN x TEXT CHECK (x IS NOT NULL)")
    with pytest.raises(StorageError, match="CHECK") as caught:
        insert(storage, Mark(id="m"))
    assert not isinstance(caught.value, UniqueConflict)


def test_a_work_may_not_start_another_transaction(storage: SqliteStorage) -> None:
    with pytest.raises(RuntimeError):
        storage.transact(PARTITION, lambda tx: insert(storage, Mark(id="m")))
    insert(storage, Mark(id="m"))


def test_a_storage_may_be_closed_amid_a_read(storage: SqliteStorage) -> None:
    storage.read(PARTITION, lambda snapshot: storage.close())
    assert storage._idle_readers == []


def test_a_claim_that_finds_its_jobs_taken_looks_again(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look without the lock and the lease with it, another claims."""
    insert(storage, job("j"))
    write = storage._claims._write
    others = iter([True])

    def after_another(run: Any, **how: bool) -> object:
        for _ in others:
            assert len(claim(storage)) == 1
        return write(run, **how)

    monkeypatch.setattr(storage._claims, "_write", after_another)
    assert claim(storage) == []


# Migrations.


def test_a_start_on_a_current_file_imports_no_heavy_module(
    storage: SqliteStorage, path: Path
) -> None:
    code = (
        "import sys\n"
        "from payments_core.conformance.storage.records import RECORD_TYPES\n"
        "from payments_core.storage_loader import open_storage\n"
        "storage = open_storage(sys.argv[1], RECORD_TYPES)\n"
        "storage.migrate()\n"
        "print('sqlite_utils' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, f"sqlite:///{path}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"


def kind_of(
    *,
    indexes: tuple[Index, ...] = (),
    uniques: tuple[Unique, ...] = (),
    lookups: tuple[Lookup, ...] = (),
) -> type[Record]:
    """One collection, declared in one of many ways."""

    @attrs.frozen(kw_only=True)
    class Thing(Record):
        collection: ClassVar[Collection] = Collection(
            "things",
            columns={"a": str, "b": int},
            indexes=indexes,
            uniques=uniques,
            lookups=lookups,
        )
        a: str = ""
        b: int = 0

    return Thing


def indexes_of(path: Path) -> dict[str, str]:
    connection = sqlite3.connect(path)
    sql = "SELECT name, sql FROM sqlite_master WHERE tbl_name = 'things' AND sql LIKE '%INDEX%'"
    found = {name: " ".join(sql.split()) for name, sql in connection.execute(sql)}
    connection.close()
    return found


def migrated(path: Path, kind: type[Record]) -> None:
    storage = SqliteStorage(path, [kind])
    storage.migrate()
    storage.finish_migration()
    storage.close()


def test_indexes_follow_their_declaration(path: Path) -> None:
    migrated(path, kind_of(indexes=(Index("one", ("a",)), Index("two", ("b",)))))
    assert indexes_of(path)["things__one"].endswith('("partition", "a", "id")')
    migrated(
        path, kind_of(indexes=(Index("one", ("a",), ("b",)),), uniques=(Unique("three", ("a",)),))
    )
    found = indexes_of(path)
    assert set(found) == {"things__one", "things__three"}
    assert found["things__one"].endswith('("partition", "a", "b", "id")')
    assert found["things__three"].startswith("CREATE UNIQUE INDEX")


def test_a_file_that_is_there_gets_the_index_of_a_lookup(path: Path) -> None:
    migrated(path, kind_of())
    assert indexes_of(path) == {}
    migrated(path, kind_of(lookups=(Lookup("place", ("b", "a")),)))
    found = indexes_of(path)["things__place"]
    assert found.endswith('("b", "a", "partition", "id")')
    assert "UNIQUE" not in found
    migrated(path, kind_of(lookups=(Lookup("place", ("a",)),)))
    assert indexes_of(path)["things__place"].endswith('("a", "partition", "id")')
    migrated(path, kind_of())
    assert indexes_of(path) == {}


@pytest.mark.parametrize("after", [None, ("env", "n")])
def test_locating_searches_the_index_by_every_column_of_a_key(
    storage: SqliteStorage, path: Path, after: tuple[str, str] | None
) -> None:
    asked: list[str] = []
    reader = storage._connect()
    reader.set_trace_callback(asked.append)
    storage._idle_readers.append(reader)
    storage.locate(Note, "tagged", [("t", 1)], where=[Where("rank", ">", 1)], after=after)
    (sql,) = (sql for sql in asked if sql.startswith("SELECT"))
    connection = sqlite3.connect(path)
    plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}"))
    connection.close()
    assert "SEARCH stored USING INDEX suite_notes__tagged (tag=? AND size=?" in plan
    assert "SCAN stored" not in plan


def test_an_index_that_an_operator_made_stays(path: Path) -> None:
    migrated(path, kind_of())
    connection = sqlite3.connect(path)
    connection.execute("CREATE INDEX mine ON things (b)")
    connection.close()
    migrated(path, kind_of(indexes=(Index("one", ("a",)),)))
    assert set(indexes_of(path)) == {"mine", "things__one"}


def test_a_migration_that_another_has_just_made_is_not_made_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, other = SqliteStorage(path, RECORD_TYPES), SqliteStorage(path, RECORD_TYPES)
    write = storage._claims._write

    def after_another(run: Any, **how: bool) -> object:
        other.migrate()
        return write(run, **how)

    monkeypatch.setattr(storage._claims, "_write", after_another)
    storage.migrate()
    insert(other, Mark(id="m"))
    storage.close()
    other.close()


def test_many_handles_open_a_new_file_at_once(path: Path) -> None:
    def begin() -> None:
        storage = SqliteStorage(path, RECORD_TYPES)
        storage.migrate()
        storage.close()

    outcomes = run_concurrently(*[begin] * 6)
    assert outcomes == [None] * 6


# Claims.


def test_a_claim_passes_over_lanes_whose_jobs_come_later(storage: SqliteStorage) -> None:
    now = 2**40
    insert(
        storage,
        *(job(f"later {n}", lane=f"a{n:03d}", due_at=now + 1) for n in range(100)),
        *(job(f"much later {n}", lane=f"b{n:03d}", due_at=now + 2**30) for n in range(100)),
        job("due", lane="c", due_at=now),
    )
    assert [item.job.id for item in claim(storage, now=now)] == ["due"]
    assert claim(storage, now=now) == []


Call = Callable[[], object]


def test_counters_of_many_threads_add_up(storage: SqliteStorage, path: Path) -> None:
    """Two handles on one file, as two processes have them, and more threads than cores."""
    patient = [SqliteStorage(path, RECORD_TYPES) for _ in range(2)]
    insert(storage, Counter(id="c"))

    def add(storage: SqliteStorage) -> None:
        def work(tx: Transaction) -> None:
            counter = tx.get(Counter, "c", for_update=True)
            assert counter is not None
            tx.replace(attrs.evolve(counter, total=counter.total + 1))

        for _ in range(25):
            storage.transact(PARTITION, work)

    calls: list[Call] = [lambda s=s: add(s) for s in patient * 3]  # type: ignore[misc]
    assert run_concurrently(*calls) == [None] * 6
    counter = fetch(storage, Counter, "c")
    assert counter is not None
    assert counter.total == 150
    for handle in patient:
        handle.close()


def test_a_machine_without_room_for_another_file_is_an_outage_that_passes(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage._file_lock.close()

    def no_more(*_: object, **__: object) -> int:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as without:
        without.setattr("payments_core.storage.sqlite.writer_lock.os.open", no_more)
        with pytest.raises(StorageUnavailable, match="write lock"):
            insert(storage, job("j"))
    insert(storage, job("j"))


def test_a_migration_leaves_the_claim_indexes_of_the_release_before(
    storage: SqliteStorage, path: Path
) -> None:
    """Its claims name them, and it continues while the next one starts."""
    insert(storage, job("j"))
    connection = sqlite3.connect(path, isolation_level=None)
    columns = "(queue, partition, lane, due_at, ordinal, id)"
    connection.execute(f"CREATE INDEX jobs__lane_order ON jobs {columns}")
    connection.execute("UPDATE storage_schema SET fingerprint = 'before'")
    storage.migrate()
    assert ids(claim(storage)) == ["j"]
    by_it = f"SELECT id FROM jobs INDEXED BY jobs__lane_order WHERE queue = '{QUEUE}'"
    assert connection.execute(by_it).fetchall() == [("j",)]
    storage.finish_migration()
    with pytest.raises(sqlite3.OperationalError, match="no such index"):
        connection.execute(by_it)
    connection.close()


def test_a_commit_waits_for_the_disk_also_after_the_setting_of_it_failed(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(storage, job("a"))
    claim(storage)
    writer = storage._writer
    assert writer is not None

    class Interrupted:
        def __getattr__(self, name: str) -> Any:
            return getattr(writer, name)

        def execute(self, sql: str, *given: Any) -> Any:
            if sql.startswith("PRAGMA"):
                raise sqlite3.OperationalError("interrupted")
            return writer.execute(sql, *given)

    storage._writer = Interrupted()  # type: ignore[assignment]
    with pytest.raises(StorageError):
        insert(storage, job("b"))
    storage._writer = writer
    insert(storage, job("b"))
    assert writer.execute("PRAGMA synchronous").fetchone() == (2,)
