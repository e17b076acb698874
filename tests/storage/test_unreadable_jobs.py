"""A stored job that cannot be read does not stop its queue; columns that went stale."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import psycopg
import pytest

from payments_core.conformance.storage.harness import PARTITION, fetch_existing
from payments_core.conformance.storage.jobs import claim, ids, job
from payments_core.conformance.storage.records import (
    RECORD_TYPES,
    RECORD_TYPES_AFTER_MIGRATION,
    RECORD_TYPES_BEFORE_MIGRATION,
    IndexedParcel,
    Parcel,
)
from payments_core.storage.capabilities import FinishesMigrations
from payments_core.storage.jobs import NEVER
from payments_core.storage.port import Storage, StorageUnavailable
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.sqlite.adapter import SqliteStorage
from tests.servers import drop_schema, fresh_schema

BODIES = ("no JSON, but sesame", '{"id": "sesame"}', '["sesame"]', "")

Ask = Callable[[str], list[Any]]


@attrs.frozen
class Place:
    """A storage's data, and statements beside the storage."""

    open: Callable[[Any], Any]
    ask: Ask


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    path = tmp_path / "data.db"

    def ask(sql: str) -> list[Any]:
        with closing(sqlite3.connect(path)) as connection, connection:
            return connection.execute(sql).fetchall()

    return Place(lambda record_types: SqliteStorage(path, record_types), ask)


@pytest.fixture
def postgres_place(postgres_server: str) -> Iterator[Place]:
    url = fresh_schema(postgres_server)

    def ask(sql: str) -> list[Any]:
        with psycopg.connect(url, autocommit=True) as connection:
            done = connection.execute(sql.encode())
            return done.fetchall() if done.description else []

    yield Place(lambda record_types: PostgresStorage(url, record_types), ask)
    drop_schema(url)


def require_set_aside(place: Place, body: str, caplog: pytest.LogCaptureFixture) -> None:
    storage: Storage = place.open(RECORD_TYPES)
    storage.migrate()
    jobs = [job("bad", lane="a"), job("behind", lane="a", ordinal=1), job("good", lane="b")]
    storage.transact(PARTITION, lambda tx: [tx.insert(item) for item in jobs])
    place.ask(f"UPDATE jobs SET body = '{body}' WHERE id = 'bad'")
    with caplog.at_level(logging.CRITICAL):
        assert ids(claim(storage)) == ["good"]
        assert ids(claim(storage, lane_concurrency=2)) == ["behind"]
    (reported,) = caplog.records
    assert reported.levelno == logging.CRITICAL
    assert reported.getMessage() == f"ALARM: job bad of {PARTITION} cannot be read and is set aside"
    rows = place.ask("SELECT body, lease_until, version, claims FROM jobs WHERE id = 'bad'")
    assert rows == [(body, NEVER, 1, 0)]
    storage.close()


def require_going_on(place: Place) -> None:
    """Where nothing of a claim can be read, the next ones are looked for."""
    storage: Storage = place.open(RECORD_TYPES)
    storage.migrate()
    jobs = [job(f"j{n}", ordinal=n) for n in range(5)]
    storage.transact(PARTITION, lambda tx: [tx.insert(item) for item in jobs])
    place.ask("UPDATE jobs SET body = 'x' WHERE id < 'j3'")
    assert ids(claim(storage, limit=1, lane_concurrency=5)) == ["j3"]
    assert ids(claim(storage, limit=1, lane_concurrency=5)) == ["j4"]
    storage.close()


def require_finished(place: Place) -> None:
    before: Storage = place.open(RECORD_TYPES_BEFORE_MIGRATION)
    before.migrate()
    before.transact(
        PARTITION, lambda tx: [tx.insert(Parcel(id=f"p{n}", weight=n)) for n in range(5)]
    )
    after = place.open(RECORD_TYPES_AFTER_MIGRATION)
    after.migrate()
    changed = attrs.evolve(fetch_existing(before, Parcel, "p1"), weight=9)
    before.transact(PARTITION, lambda tx: [tx.insert(Parcel(id="new")), tx.replace(changed)])
    place.ask("UPDATE suite_parcels SET body = 'x', weight = 77 WHERE id = 'p2'")
    assert isinstance(after, FinishesMigrations)
    assert after.finish_migration() == 2
    assert after.finish_migration() == 0
    found = after.locate(IndexedParcel, "weighing", [("packed", 9), ("packed", 0)])
    assert [item.record.id for item in found] == ["new", "p0", "p1"]
    for storage in (before, after):
        storage.close()


@pytest.mark.parametrize("body", BODIES)
def test_sqlite_sets_an_unreadable_job_aside(
    sqlite_place: Place, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    require_set_aside(sqlite_place, body, caplog)


@pytest.mark.postgres
@pytest.mark.parametrize("body", BODIES)
def test_postgres_sets_an_unreadable_job_aside(
    postgres_place: Place, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    require_set_aside(postgres_place, body, caplog)


def test_sqlite_goes_on_behind_unreadable_jobs(sqlite_place: Place) -> None:
    require_going_on(sqlite_place)


@pytest.mark.postgres
def test_postgres_goes_on_behind_unreadable_jobs(postgres_place: Place) -> None:
    require_going_on(postgres_place)


def test_sqlite_finishes_a_migration(sqlite_place: Place) -> None:
    require_finished(sqlite_place)


@pytest.mark.postgres
def test_postgres_finishes_a_migration(postgres_place: Place) -> None:
    require_finished(postgres_place)


def test_a_claim_that_sqlite_refuses_for_another_reason_is_reported(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage: Storage = sqlite_place.open(RECORD_TYPES)
    storage.migrate()
    storage.transact(PARTITION, lambda tx: tx.insert(job("j")))
    monkeypatch.setattr("payments_core.storage.sqlite.claims._LEASE", "SELECT nothing FROM jobs")
    with pytest.raises(StorageUnavailable, match="could not be leased"):
        claim(storage)
    storage.close()


def test_a_full_disk_is_not_an_unreadable_job(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = sqlite_place.open(RECORD_TYPES)
    storage.migrate()
    storage.transact(PARTITION, lambda tx: tx.insert(job("j")))
    with storage._open_write_transaction() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    big = "UPDATE jobs SET body = zeroblob(100000000 + :until - :until + 0 * length(:rows))"
    monkeypatch.setattr(
        "payments_core.storage.sqlite.claims._LEASE", big + " RETURNING rowid, partition, body"
    )
    with pytest.raises(StorageUnavailable, match="full"):
        claim(storage)
    storage.close()
