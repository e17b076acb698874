"""Statements that the server prepares and plans once, on each connection."""

from __future__ import annotations

import psycopg
import pytest

from payments_core.conformance.storage.harness import PARTITION, fetch_existing
from payments_core.conformance.storage.records import (
    RECORD_TYPES,
    RECORD_TYPES_AFTER_MIGRATION,
    Counter,
    Mark,
    Note,
)
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.postgres.pipeline import StatementFailed
from tests.storage.postgres.conftest import Trips

pytestmark = pytest.mark.postgres


def test_the_statement_of_a_page_is_planned_once_whatever_its_limit(
    through: PostgresStorage,
) -> None:
    """To plan it takes longer than to run it."""
    for number in range(40):
        limit = 1 + number % 20
        through.read(PARTITION, lambda s, n=limit: s.find(Note, "by_name", ("n",), limit=n))  # type: ignore[misc]
    with through._borrow_connection() as connection:
        [(generic, custom)] = connection.execute(
            "SELECT generic_plans, custom_plans FROM pg_prepared_statements"
            " WHERE statement LIKE '%suite_notes%'"
        ).fetchall()
    assert custom <= 5
    assert generic + custom >= 35


def test_a_plan_of_a_small_table_uses_an_index_after_the_table_has_grown(
    through: PostgresStorage, url: str
) -> None:
    """Statistics come some time later."""
    through.transact(PARTITION, lambda tx: tx.insert(Note(id="a", name="n")))
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("ANALYZE")
    for _ in range(9):
        through.read(PARTITION, lambda s: [s.get(Note, "a"), s.find(Note, "by_name", ("n",))])
    with through._borrow_connection() as connection:
        prepared = connection.execute(
            "SELECT name, generic_plans, array_length(parameter_types, 1)"
            " FROM pg_prepared_statements WHERE statement LIKE '%suite_notes%'"
        ).fetchall()
        plans = [
            connection.execute(f"EXPLAIN EXECUTE {name}({', '.join(['1'] * count)})".encode())
            for name, _, count in prepared
        ]
        text = str([plan.fetchall() for plan in plans])
    assert len(prepared) == 2
    assert all(generic for _, generic, _ in prepared)
    assert "Seq Scan" not in text
    assert "Bitmap" not in text
    assert text.count("Index Scan using suite_notes") == 2


def test_statements_outlive_a_migration(through: PostgresStorage, url: str) -> None:
    def look() -> int:
        return fetch_existing(through, Counter, "c1").version

    assert [look() for _ in range(4)] == [1] * 4
    later = PostgresStorage(url, RECORD_TYPES_AFTER_MIGRATION)
    later.migrate()
    later.close()
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("ALTER TABLE suite_counters ALTER body TYPE varchar")
    assert [look() for _ in range(4)] == [1] * 4


def test_a_prepared_statement_that_is_gone_costs_another_connection(
    trips: Trips, through: PostgresStorage
) -> None:
    """As behind a pooler that hands out another server's connection."""

    def look() -> int:
        return fetch_existing(through, Counter, "c1").version

    assert [look() for _ in range(4)] == [1] * 4
    with through._borrow_connection() as connection:
        connection.execute("DEALLOCATE ALL")
    assert trips(look) == 2  # the second over another connection
    assert trips(look) == 1


def test_statements_can_go_unprepared(url: str, storage: PostgresStorage) -> None:
    bare = PostgresStorage(f"{url}&prepare=off&settings=off&pool=1", RECORD_TYPES)
    bare.transact(PARTITION, lambda tx: [tx.insert(Mark(id=f"m{n}")) for n in range(9)])
    with bare._borrow_connection() as connection:
        names = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
        timeout = connection.execute("SHOW lock_timeout").fetchone()
    assert (names, timeout) == ((0,), ("0",))
    bare.close()


def test_no_more_statements_are_prepared_than_allowed(
    url: str, storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_core.storage.postgres.pipeline.MAX_PREPARED", 6)
    few = PostgresStorage(f"{url}&pool=1", RECORD_TYPES)
    for kind in (Mark, Counter, Note):
        for _ in range(5):
            few.read(PARTITION, lambda s, kind=kind: [s.get(kind, "x"), s.get(kind, "y")])
            few.transact(PARTITION, lambda tx, kind=kind: tx.get(kind, "x", for_update=True))
    with few._borrow_connection() as connection:
        names = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
    assert names == (6,)
    few.close()


def test_what_comes_once_is_forgotten(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_core.storage.postgres.pipeline.MAX_PREPARED", 2)
    pipeline = storage._pool.acquire()
    for number in range(50):
        assert pipeline.run([(f"SELECT {number}", ())]) == [[(b"%d" % number,)]]
    assert len(pipeline._uses) < 6
    storage._pool.release(pipeline)


def test_a_prepared_statement_is_named_by_what_it_says(storage: PostgresStorage) -> None:
    """So that a pooler that mixes connections up never has another statement run."""
    names: list[dict[bytes, bytes]] = []
    for statements in (["SELECT 1", "SELECT 2"], ["SELECT 2", "SELECT 3", "SELECT 1"]):
        pipeline = storage._pool.connect()
        pipeline.run([(sql, ()) for sql in statements] * 3)
        [found] = pipeline.run([("SELECT name, statement FROM pg_prepared_statements", ())])
        names.append({text or b"": name or b"" for name, text in found})
        pipeline.connection.close()
    first, second = names
    assert second == {**first, b"SELECT 3": second[b"SELECT 3"]}
    assert len(set(second.values())) == 3


def test_a_statement_whose_preparation_failed_gets_another_name(storage: PostgresStorage) -> None:
    """A pooler that tracks names keeps one that the server never ran, and refuses it: 08P01."""
    pipeline = storage._pool.connect()
    pipeline.run([("SELECT 1", ())] * 2)
    with pytest.raises(StatementFailed):
        pipeline.run([("SELECT 1 / 0", ()), ("SELECT 1", ())])
    pipeline.run([("SELECT 1", ())] * 3)
    sql = "SELECT name FROM pg_prepared_statements WHERE statement = 'SELECT 1'"
    [[(name,)]] = pipeline.run([(sql, ())])
    assert name is not None
    assert name.endswith(b"_1")
    pipeline.connection.close()
