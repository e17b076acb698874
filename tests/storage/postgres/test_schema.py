"""The tables in PostgreSQL, and how they come up to date while others work."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import attrs
import psycopg
import pytest
from psycopg import errors

from payments_core.conformance.storage.harness import (
    PARTITION,
    fetch_all_pages,
    fetch_existing,
    lock_existing,
    run_concurrently,
)
from payments_core.conformance.storage.records import (
    RECORD_TYPES,
    RECORD_TYPES_AFTER_MIGRATION,
    RECORD_TYPES_BEFORE_MIGRATION,
    Counter,
    IndexedParcel,
    Mark,
    Parcel,
)
from payments_core.record_types import RECORD_TYPES as ALL_KINDS
from payments_core.storage.capabilities import FinishesMigrations
from payments_core.storage.port import CommitUnknown, StorageError, StorageUnavailable, Transaction
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.postgres.indexes import CLAIM_INDEXES
from payments_core.storage.postgres.lock_retry import retry_on_lock
from payments_core.storage.records import Collection, Index, Record

pytestmark = pytest.mark.postgres

OWN_TABLES = ("storage_schema", "storage_hints")
"""Those without a partition: what a migration locks, and where each queue's ring stands."""


def ask(url: str, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        done = connection.execute(sql.encode(), values or None)
        return done.fetchall() if done.description else []


def opened(url: str, kinds: Any) -> PostgresStorage:
    storage = PostgresStorage(url, kinds)
    storage.migrate()
    return storage


def test_a_schema_holds_tables_indexes_and_views_of_what_was_taken_over_and_nothing_else(
    url: str,
) -> None:
    opened(url, ALL_KINDS).close()
    schema = "current_schema()::regnamespace"
    kinds = f"SELECT DISTINCT relkind::text FROM pg_class WHERE relnamespace = {schema}"
    assert {kind for (kind,) in ask(url, kinds)} == {"r", "i", "v"}
    views = f"SELECT relname FROM pg_class WHERE relkind = 'v' AND relnamespace = {schema}"
    taken_over = {(name,) for kind in ALL_KINDS for name in kind.collection.takes_over}
    assert set(ask(url, views)) == taken_over
    tables = f"(SELECT oid FROM pg_class WHERE relkind <> 'v' AND relnamespace = {schema})"
    for sql in (
        f"SELECT 1 FROM pg_proc WHERE pronamespace = {schema}",
        f"SELECT 1 FROM pg_trigger WHERE tgrelid IN {tables}",
        f"SELECT 1 FROM pg_rewrite WHERE ev_class IN {tables}",
        f"SELECT 1 FROM pg_attrdef WHERE adrelid IN {tables}",
        f"SELECT 1 FROM pg_constraint WHERE contype NOT IN ('p', 'n') AND conrelid IN {tables}",
    ):
        assert ask(url, sql) == [], sql


def test_a_schema_names_what_it_lacks_until_it_is_migrated(url: str) -> None:
    before = PostgresStorage(url, RECORD_TYPES_BEFORE_MIGRATION)
    after = PostgresStorage(url, RECORD_TYPES_AFTER_MIGRATION)
    assert {"suite_parcels", "storage_hints"} <= set(before.missing_tables())
    before.migrate()
    assert before.missing_tables() == []
    assert after.missing_tables() == ["suite_parcels.weight", "suite_parcels.label"]
    ask(url, "ALTER TABLE suite_parcels ADD weight bigint")
    ask(url, "COMMENT ON COLUMN suite_parcels.weight IS 'not filled yet'")
    assert "suite_parcels.weight" in after.missing_tables()
    after.migrate()
    assert (after.missing_tables(), before.missing_tables()) == ([], [])
    before.close()
    after.close()


def test_every_index_begins_with_the_partition_but_for_lookups_and_claims(url: str) -> None:
    opened(url, ALL_KINDS).close()
    lookups = {
        f"{kind.collection.name}__{lookup.name}"
        for kind in ALL_KINDS
        for lookup in kind.collection.lookups
    }
    rows = ask(
        url,
        "SELECT tables.relname, indexes.relname, indisunique, indisvalid, attname "
        "FROM pg_index JOIN pg_class AS indexes ON indexes.oid = indexrelid "
        "JOIN pg_class AS tables ON tables.oid = indrelid "
        "LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0] "
        "WHERE tables.relnamespace = current_schema()::regnamespace",
    )
    assert len(rows) > 2 * len(ALL_KINDS)
    for table, index, unique, valid, first in rows:
        assert valid
        if table not in OWN_TABLES and index not in lookups and index not in CLAIM_INDEXES:
            assert first == "partition", index
        if index in lookups or index in CLAIM_INDEXES:
            assert not unique, index


def test_every_text_is_ordered_by_code_point(url: str) -> None:
    opened(url, ALL_KINDS).close()
    rows = ask(
        url,
        "SELECT table_name, column_name, data_type, collation_name "
        "FROM information_schema.columns WHERE table_schema = current_schema()",
    )
    assert {kind for _, _, kind, _ in rows} <= {"text", "bigint", "integer"}
    assert [row for row in rows if row[2] == "text" and row[3] != "C"] == []


def test_no_name_is_longer_than_postgresql_keeps(url: str) -> None:
    names = [
        f"{kind.collection.name}__{item.name}__next"
        for kind in ALL_KINDS
        for item in (
            *kind.collection.indexes,
            *kind.collection.uniques,
            *kind.collection.lookups,
        )
    ]
    assert max(map(len, names)) <= 63


@pytest.fixture
def parcels(url: str) -> PostgresStorage:
    """The release before, with rows."""
    before = opened(url, RECORD_TYPES_BEFORE_MIGRATION)
    rows = [Parcel(id=f"p{n:04d}", weight=n, label=f"label {n}") for n in range(450)]
    before.transact(PARTITION, lambda tx: [tx.insert(row) for row in rows])
    return before


def test_requests_go_on_while_a_migration_runs(parcels: PostgresStorage, url: str) -> None:
    """Each change of the release before that was answered is there afterwards."""
    done = threading.Event()

    def keep_writing() -> int:
        number = 0
        while not done.is_set():

            def work(tx: Transaction, number: int = number) -> None:
                row = lock_existing(tx, Parcel, f"p{number % 450:04d}")
                tx.replace(attrs.evolve(row, weight=row.weight + 1_000))

            parcels.transact(PARTITION, work)
            number += 1
        return number

    def migrate() -> int:
        try:
            opened(url, RECORD_TYPES_AFTER_MIGRATION).close()
        finally:
            done.set()
        return 0

    written, _ = run_concurrently(keep_writing, migrate)
    assert isinstance(written, int), written
    after = opened(url, RECORD_TYPES_AFTER_MIGRATION)
    after.finish_migration()
    found = fetch_all_pages(after, IndexedParcel, "by_state", ("packed",))
    assert sum(parcel.weight for parcel in found) == sum(range(450)) + 1_000 * written
    for storage in (parcels, after):
        storage.close()


def test_what_the_release_before_writes_during_the_roll_over_is_put_right(
    parcels: PostgresStorage, url: str
) -> None:
    after = opened(url, RECORD_TYPES_AFTER_MIGRATION)
    assert isinstance(after, FinishesMigrations)
    parcels.transact(PARTITION, lambda tx: tx.insert(Parcel(id="new", weight=7, label="of old")))
    changed = attrs.evolve(fetch_existing(parcels, Parcel, "p0001"), weight=5_000)
    parcels.transact(PARTITION, lambda tx: tx.replace(changed))
    weights = "SELECT weight FROM suite_parcels WHERE id IN ('new', 'p0001') ORDER BY id"
    assert ask(url, weights) == [(None,), (1,)]
    assert after.finish_migration() == 2
    assert ask(url, weights) == [(7,), (5_000,)]
    assert after.finish_migration() == 0
    located = after.locate(IndexedParcel, "weighing", [("packed", 5_000)])
    assert [item.record.id for item in located] == ["p0001"]
    for storage in (parcels, after):
        storage.close()


def test_a_row_that_cannot_be_read_is_left_by_a_migration(
    parcels: PostgresStorage, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    ask(url, "UPDATE suite_parcels SET body = '[sesame' WHERE id = 'p0001'")
    with caplog.at_level(logging.ERROR):
        after = opened(url, RECORD_TYPES_AFTER_MIGRATION)
    assert "1 rows of suite_parcels cannot be read and were not changed" in caplog.text
    assert "sesame" not in caplog.text
    assert ask(url, "SELECT count(*) FROM suite_parcels WHERE weight IS NOT NULL") == [(449,)]
    for storage in (parcels, after):
        storage.close()


def test_a_change_during_the_filling_is_not_lost(
    parcels: PostgresStorage, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes after the row was read and before its column is written."""
    changed = attrs.evolve(fetch_existing(parcels, Parcel, "p0001"), weight=9_999)
    once: list[Callable[[], Any]] = [
        lambda: parcels.transact(PARTITION, lambda tx: tx.replace(changed))
    ]

    def slowly(change: Callable[[], Any]) -> Any:
        if once:
            once.pop()()
        return retry_on_lock(change)

    monkeypatch.setattr("payments_core.storage.postgres.backfill.retry_on_lock", slowly)
    after = opened(url, RECORD_TYPES_AFTER_MIGRATION)
    assert fetch_existing(after, IndexedParcel, "p0001").weight == 9_999
    assert ask(url, "SELECT weight FROM suite_parcels WHERE id = 'p0001'") == [(None,)]
    assert after.finish_migration() == 1
    for storage in (parcels, after):
        storage.close()


STEPS = ("backfill_columns", "create_indexes", "record_fingerprint")


@pytest.mark.parametrize("step", STEPS)
def test_a_migration_killed_in_the_middle_is_ended_by_the_next(
    parcels: PostgresStorage, url: str, step: str
) -> None:
    """kill -9, right before a step; and within the building of an index."""
    program = (
        "import os, signal, sys\n"
        "from payments_core.conformance.storage.records import RECORD_TYPES_AFTER_MIGRATION\n"
        "from payments_core.storage.postgres import schema\n"
        "from payments_core.storage.postgres.adapter import open_url\n"
        f"schema.{step} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "open_url(sys.argv[1], RECORD_TYPES_AFTER_MIGRATION).migrate()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, url],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    after = opened(url, RECORD_TYPES_AFTER_MIGRATION)
    assert len(fetch_all_pages(after, IndexedParcel, "by_state", ("packed",))) == 450
    assert ask(url, "SELECT count(*) FROM suite_parcels WHERE weight IS NULL") == [(0,)]
    for storage in (parcels, after):
        storage.close()


def test_an_index_whose_building_was_interrupted_is_built_again(
    parcels: PostgresStorage, url: str
) -> None:
    ask(url, "INSERT INTO suite_parcels (partition, id, version, state, body) "
             "SELECT 'twice', id, 1, 'packed', body FROM suite_parcels")  # fmt: skip
    with pytest.raises(errors.UniqueViolation):
        ask(url, "CREATE UNIQUE INDEX CONCURRENTLY suite_parcels__by_state "
                 "ON suite_parcels (partition, state)")  # fmt: skip
    assert ask(url, "SELECT count(*) FROM pg_index WHERE NOT indisvalid AND indexrelid = "
                    "'suite_parcels__by_state'::regclass") == [(1,)]  # fmt: skip
    after = opened(url, RECORD_TYPES_AFTER_MIGRATION)
    valid = "SELECT indisvalid, indisunique FROM pg_index WHERE indexrelid = "
    assert ask(url, valid + "'suite_parcels__by_state'::regclass") == [(True, False)]
    for storage in (parcels, after):
        storage.close()


@attrs.frozen(kw_only=True)
class TurnedParcel(Record):
    """The same row, whose index is in another order, under the same name."""

    collection = Collection(
        "suite_parcels",
        columns={"state": str, "weight": int, "label": str},
        indexes=(Index("by_state", ("label",), ("weight",)),),
    )

    state: str = "packed"
    weight: int = 0
    label: str | None = None


def test_an_index_that_changes_is_replaced_and_one_undeclared_is_dropped(
    parcels: PostgresStorage, url: str
) -> None:
    opened(url, RECORD_TYPES_AFTER_MIGRATION).close()
    turned = opened(url, (*RECORD_TYPES, TurnedParcel))
    turned.finish_migration()
    page = turned.read(PARTITION, lambda s: s.find(TurnedParcel, "by_state", ("label 7",)))
    assert [parcel.weight for parcel in page.records] == [7]
    names = ask(url, "SELECT indexname FROM pg_indexes WHERE tablename = 'suite_parcels' "
                     "AND schemaname = current_schema()")  # fmt: skip
    assert {name for (name,) in names} == {"suite_parcels_pkey", "suite_parcels__by_state"}
    for storage in (parcels, turned):
        storage.close()


def test_rows_that_break_a_unique_key_while_it_is_built_are_reported(
    parcels: PostgresStorage, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(url, "UPDATE suite_parcels SET body = replace(body, 'label 2', 'label 1')")
    monkeypatch.setattr(
        "payments_core.storage.postgres.indexes._require_unique_rows", lambda *_: None
    )
    after = PostgresStorage(url, RECORD_TYPES_AFTER_MIGRATION)
    with pytest.raises(StorageError, match="suite_parcels: rows break the unique key label"):
        after.migrate()
    assert ask(url, "SELECT 1 FROM pg_indexes WHERE indexname = 'suite_parcels__label' "
                    "AND schemaname = current_schema()") == []  # fmt: skip
    parcels.transact(PARTITION, lambda tx: tx.insert(Parcel(id="same", label="label 1")))
    for storage in (parcels, after):
        storage.close()


def test_a_change_that_does_not_get_its_lock_is_tried_again(
    parcels: PostgresStorage, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And those who came behind it have waited for half a second at the most."""
    monkeypatch.setattr("payments_core.storage.postgres.schema.DDL_LOCK_MS", 30)
    waited: list[float] = []

    def release(seconds: float) -> None:
        waited.append(seconds)
        holder.rollback()

    monkeypatch.setattr("payments_core.storage.postgres.lock_retry.time.sleep", release)
    with psycopg.connect(url) as holder:
        holder.execute("SELECT 1 FROM suite_parcels")
        after = opened(url, RECORD_TYPES_AFTER_MIGRATION)
    assert len(waited) == 1
    for storage in (parcels, after):
        storage.close()


def test_what_never_gets_its_lock_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("payments_core.storage.postgres.lock_retry.RETRY_PAUSE_S", 0)
    tries: list[int] = []

    def locked_out() -> None:
        tries.append(1)
        raise errors.LockNotAvailable

    with pytest.raises(errors.LockNotAvailable):
        retry_on_lock(locked_out)
    assert len(tries) == 120

    def wrong() -> None:
        raise errors.SyntaxError

    with pytest.raises(errors.SyntaxError):
        retry_on_lock(wrong)


def test_a_migration_that_another_process_does_not_end_is_not_waited_for_for_ever(
    storage: PostgresStorage, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_core.storage.postgres.schema.MIGRATION_TIMEOUT_S", 0.2)
    later = PostgresStorage(url, RECORD_TYPES_AFTER_MIGRATION)
    with psycopg.connect(url) as other:
        other.execute("SELECT 1 FROM storage_schema FOR UPDATE")
        with pytest.raises(StorageUnavailable, match="another process"):
            later.migrate()
    later.migrate()
    later.close()


def test_a_migration_needs_no_more_of_the_pool_than_one(url: str) -> None:
    single = PostgresStorage(f"{url}&pool=1&pool_timeout_s=0", RECORD_TYPES)
    single.migrate()
    single.transact(PARTITION, lambda tx: [tx.insert(Mark(id="m")), tx.insert(Counter(id="c"))])
    assert single.finish_migration() == 0
    single.close()


def test_a_null_in_an_order_column_that_is_not_filled_yet_does_not_break_a_page(
    parcels: PostgresStorage, url: str
) -> None:
    after = opened(url, RECORD_TYPES_AFTER_MIGRATION)
    parcels.transact(PARTITION, lambda tx: [tx.insert(Parcel(id=f"new {n}")) for n in range(3)])
    page = after.read(
        PARTITION, lambda s: s.find(IndexedParcel, "by_state", ("packed",), limit=451)
    )
    assert len(page.records) == 451
    assert page.next is not None
    for storage in (parcels, after):
        storage.close()


def test_the_commit_of_a_migration_can_be_lost(storage: PostgresStorage) -> None:
    def insert_and_lose() -> None:
        with storage._open_write_transaction() as connection:
            connection.execute(
                "INSERT INTO suite_marks (partition, id, version, body) VALUES ('p', 'i', 1, '')"
            )
            connection.pgconn.finish()

    with pytest.raises(CommitUnknown):
        insert_and_lose()
    with storage._open_snapshot() as connection:
        assert connection.execute("SELECT count(*) FROM suite_marks").fetchone() == (0,)


def test_a_role_that_may_create_no_tables_gets_a_clear_error(url: str) -> None:
    schema = url.rpartition("search_path%3D")[2]
    ask(url, "CREATE ROLE visitor LOGIN")
    try:
        ask(url, f'GRANT USAGE ON SCHEMA "{schema}" TO visitor')
        visitor = PostgresStorage(url.replace("//tests@", "//visitor@"), RECORD_TYPES)
        with pytest.raises(StorageError, match="permission denied"):
            visitor.migrate()
        visitor.close()
    finally:
        ask(url, "DROP OWNED BY visitor")
        ask(url, "DROP ROLE visitor")
