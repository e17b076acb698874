"""What is PostgreSQL's own: its locks, its errors, its connections."""

from __future__ import annotations

import threading
from typing import Any

import attrs
import psycopg
import pytest
from psycopg import errors

from payments_core.clock import HasServerTime, SystemClock
from payments_core.conformance.storage.harness import (
    PARTITION,
    Rendezvous,
    fetch,
    fetch_existing,
    find_errors,
    lock_existing,
    run_concurrently,
)
from payments_core.conformance.storage.jobs import claim, job
from payments_core.conformance.storage.records import (
    RECORD_TYPES,
    RECORD_TYPES_AFTER_MIGRATION,
    Counter,
    Mark,
    Note,
)
from payments_core.storage import documents
from payments_core.storage.jobs import Job
from payments_core.storage.port import (
    CommitUnknown,
    StorageError,
    StorageUnavailable,
    Transaction,
    VersionConflict,
)
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.postgres.queries import locate_statement
from payments_core.storage.records import Record
from tests.storage.lossy import fail_next_postgres_commit

pytestmark = pytest.mark.postgres


def insert(storage: PostgresStorage, *records: Record) -> None:
    storage.transact(PARTITION, lambda tx: [tx.insert(record) for record in records])


def test_a_lock_that_does_not_come_is_unavailable(
    storage: PostgresStorage, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(storage, Counter(id="c"))
    monkeypatch.setattr("payments_core.storage.postgres.adapter.LOCK_TIMEOUT_MS", 50)
    impatient = PostgresStorage(url, RECORD_TYPES)

    def work(tx: Transaction) -> None:
        lock_existing(tx, Counter, "c")
        with pytest.raises(StorageUnavailable, match="lock timeout"):
            impatient.transact(PARTITION, lambda other: lock_existing(other, Counter, "c"))

    storage.transact(PARTITION, work)
    impatient.close()


def test_a_deadlock_runs_again(storage: PostgresStorage) -> None:
    insert(storage, Counter(id="a"), Counter(id="b"))
    meeting = Rendezvous(timeout_s=0.3)
    runs: list[str] = []

    def move(first: str, second: str) -> None:
        def work(tx: Transaction) -> None:
            runs.append(first)
            one = lock_existing(tx, Counter, first)
            meeting.wait()
            two = lock_existing(tx, Counter, second)
            tx.replace(attrs.evolve(one, total=one.total + 1))
            tx.replace(attrs.evolve(two, total=two.total + 1))

        storage.transact(PARTITION, work)

    assert find_errors(run_concurrently(lambda: move("a", "b"), lambda: move("b", "a"))) == []
    assert len(runs) >= 3  # the one that runs again may meet the other again
    assert fetch_existing(storage, Counter, "a").total == 2


def test_a_deadlock_that_the_work_swallows_runs_again(storage: PostgresStorage) -> None:
    insert(storage, Counter(id="c"))
    runs = 0

    def work(tx: Transaction) -> None:
        nonlocal runs
        runs += 1
        if runs < 3:
            failure = StorageUnavailable("deadlock")
            failure.__cause__ = errors.DeadlockDetected()
            rows: Any = tx
            rows._transaction.fail(failure)
        else:
            tx.insert(Mark(id="m"))

    storage.transact(PARTITION, work)
    assert runs == 3
    assert fetch(storage, Mark, "m") is not None


def test_too_many_deadlocks_are_unavailable(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_core.storage.postgres.adapter.MAX_RERUNS", 2)

    def work(tx: Transaction) -> None:
        raise StorageUnavailable from errors.SerializationFailure()

    with pytest.raises(StorageUnavailable, match="lost too many conflicts"):
        storage.transact(PARTITION, work)


def test_a_row_that_comes_back_while_one_waits_for_it_is_found(storage: PostgresStorage) -> None:
    """Deleted and inserted again by the transaction that held the lock."""
    insert(storage, Counter(id="c", total=1))
    inside = threading.Event()

    def again() -> None:
        def work(tx: Transaction) -> None:
            tx.delete(lock_existing(tx, Counter, "c"))
            inside.set()
            Rendezvous(timeout_s=0.1).wait()
            tx.insert(Counter(id="c", total=2))

        storage.transact(PARTITION, work)

    def look() -> int:
        inside.wait(5)
        return storage.transact(PARTITION, lambda tx: lock_existing(tx, Counter, "c").total)

    assert run_concurrently(again, look) == [None, 2]


@pytest.mark.parametrize(
    "error", [errors.StatementCompletionUnknown, psycopg.OperationalError, psycopg.InterfaceError]
)
@pytest.mark.parametrize("applied", [True, False])
def test_an_answer_that_did_not_come_leaves_it_unknown(
    storage: PostgresStorage, error: type[psycopg.Error], applied: bool
) -> None:
    fail_next_postgres_commit(storage, error("lost"), applied=applied)
    with pytest.raises(CommitUnknown):
        insert(storage, Mark(id="m"))
    assert (fetch(storage, Mark, "m") is not None) == applied


def test_a_commit_that_the_server_refuses_did_not_happen(storage: PostgresStorage) -> None:
    fail_next_postgres_commit(storage, errors.DiskFull("full"), applied=False)
    with pytest.raises(StorageUnavailable):
        insert(storage, Mark(id="m"))
    fail_next_postgres_commit(storage, errors.SerializationFailure("again"), applied=False)
    insert(storage, Mark(id="m"))
    assert fetch(storage, Mark, "m") is not None


def test_a_database_that_was_never_migrated_says_so(url: str) -> None:
    storage = PostgresStorage(url, RECORD_TYPES)
    with pytest.raises(StorageError, match="has `migrate` been run"):
        insert(storage, Mark(id="m"))
    storage.close()


def test_a_lane_whose_first_job_is_being_changed_waits(storage: PostgresStorage) -> None:
    insert(storage, job("a"), job("b", ordinal=1), job("c", lane="other"))

    def work(tx: Transaction) -> list[str]:
        lock_existing(tx, Job, "a")
        return [item.job.id for item in claim(storage)]

    assert storage.transact(PARTITION, work) == ["c"]
    assert [item.job.id for item in claim(storage)] == ["a"]


def test_a_read_cannot_write(storage: PostgresStorage, url: str) -> None:
    def work(snapshot: Any) -> None:
        snapshot._transaction.query("DELETE FROM suite_marks", ())

    patient = PostgresStorage(f"{url}&failover_s=0", RECORD_TYPES)
    with pytest.raises(StorageError, match="read-only"):
        patient.read(PARTITION, work)
    patient.close()
    insert(storage, Mark(id="m"))


def test_texts_are_ordered_by_code_point_whatever_the_database_prefers(
    storage: PostgresStorage, url: str
) -> None:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = current_schema() AND data_type = 'text' "
            "AND column_name NOT IN ('body', 'fingerprint') AND collation_name <> 'C'"
        ).fetchall()
    assert rows == []


def test_a_body_is_kept_to_the_byte(storage: PostgresStorage, url: str) -> None:
    insert(storage, Note(id="n", text="\0"), Note(id="m", text="readable"))
    assert fetch_existing(storage, Note, "n").text == "\0"
    with psycopg.connect(url) as connection:
        bodies = dict(connection.execute("SELECT id, body FROM suite_notes").fetchall())
        sql = "SELECT body::jsonb ->> 'text' FROM suite_notes WHERE id = 'm'"
        assert connection.execute(sql).fetchone() == ("readable",)
    for id, body in bodies.items():
        assert body.encode() == documents.encode(fetch_existing(storage, Note, id))


def test_a_stale_replace_waits_and_is_refused(storage: PostgresStorage) -> None:
    insert(storage, Counter(id="c"))
    seen = fetch_existing(storage, Counter, "c")
    meeting = Rendezvous(timeout_s=0.1)

    def change() -> None:
        def work(tx: Transaction) -> None:
            meeting.wait()
            tx.replace(seen)
            meeting.wait()

        storage.transact(PARTITION, work)

    outcomes = run_concurrently(change, change)
    assert [type(error) for error in find_errors(outcomes)] == [VersionConflict]


@pytest.mark.parametrize("after", [(), ("env", "1000")])
def test_locating_searches_the_index_of_the_lookup(
    storage: PostgresStorage, url: str, after: tuple[str, ...]
) -> None:
    """Once the table is large; and the keys' texts are compared as the column's are."""
    sql = locate_statement(
        "suite_notes", Note.collection.lookup("tagged"), ("text[]", "bigint[]"), (), bool(after)
    )
    for place in range(len(after) + 3, 0, -1):  # the driver has placeholders of its own
        sql = sql.replace(f"${place}", "%s")
    values = (["t 1", "t 2"], [1, 2], *after, 10)
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO suite_notes (partition, id, version, tag, size, body) "
            "SELECT 'env', n, 1, 't ' || n, n, '' FROM generate_series(1, 20000) AS n"
        )
        connection.execute("ANALYZE suite_notes")
        rows = connection.execute(f"EXPLAIN {sql}".encode(), values).fetchall()
    plan = " ".join(text for (text,) in rows)
    assert "Index Scan using suite_notes__tagged" in plan
    assert "(size = keys.key_1)" in plan.partition("Index Cond: ")[2]


def test_the_indexes_of_lookups_do_not_begin_with_the_partition(
    storage: PostgresStorage, url: str
) -> None:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE indexname = 'suite_notes__tagged' "
            "AND schemaname = current_schema()"
        ).fetchone()
    assert row is not None
    assert row[0].endswith("(tag, size, partition, id)")
    assert "UNIQUE" not in row[0]


def test_looking_commits_nothing_so_no_answer_to_a_commit_is_lost(
    storage: PostgresStorage,
) -> None:
    fail_next_postgres_commit(storage, psycopg.OperationalError("lost"), applied=True)
    assert storage.next_due("q") is None
    assert storage.locate(Note, "named", [("n",)]) == []
    with pytest.raises(CommitUnknown):
        insert(storage, Mark(id="m"))


def test_indexes_follow_their_declaration(storage: PostgresStorage, url: str) -> None:
    later = PostgresStorage(url, RECORD_TYPES_AFTER_MIGRATION)
    later.migrate()
    later.close()
    storage.migrate()
    with psycopg.connect(url) as connection:
        connection.execute("COMMENT ON INDEX suite_notes__code IS 'another declaration'")
        connection.execute("UPDATE storage_schema SET fingerprint = ''")
    storage.migrate()
    with psycopg.connect(url) as connection:
        made_of = connection.execute(
            "SELECT obj_description('suite_notes__code'::regclass)"
        ).fetchone()
    assert made_of == ('UNIQUE "partition", "code"',)


def test_the_servers_clock_can_be_asked(storage: PostgresStorage) -> None:
    assert isinstance(storage, HasServerTime)
    assert abs(storage.server_time() - SystemClock().now()) < 60_000
