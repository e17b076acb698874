"""Claims in PostgreSQL among many lanes and many rows."""

from __future__ import annotations

import psycopg
import pytest

from payments_core.clock import HOUR
from payments_core.conformance.storage.harness import (
    OTHER_PARTITION,
    PARTITION,
    fetch_existing,
    lock_existing,
)
from payments_core.conformance.storage.jobs import LEASE_MS, NOW, QUEUE, claim, ids, job
from payments_core.conformance.storage.records import RECORD_TYPES
from payments_core.storage import bulk, documents
from payments_core.storage.jobs import Job
from payments_core.storage.port import Transaction
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.postgres.claims import _FIND_LANES, _SELECT_DUE
from payments_core.storage.postgres.leases import _FIND_LEASED

pytestmark = pytest.mark.postgres


def insert(storage: PostgresStorage, *jobs: Job) -> None:
    storage.transact(PARTITION, lambda tx: bulk.write(tx, jobs))


def test_a_lane_behind_hundreds_without_room_is_found(storage: PostgresStorage) -> None:
    insert(storage, *(job(f"a{n:03d}", lane=f"lane {n:03d}") for n in range(300)))
    insert(storage, *(job(f"b{n:03d}", lane=f"lane {n:03d}", ordinal=1) for n in range(300)))
    assert len(claim(storage, limit=1000)) == 160  # as many lanes as are looked at together
    assert len(claim(storage, limit=1000)) == 140
    insert(storage, job("z", lane="lane z"), job("between", lane="lane 150x"))
    assert sorted(ids(claim(storage, limit=5)) + ids(claim(storage, limit=5))) == ["between", "z"]
    assert claim(storage, limit=5) == ()


def test_lanes_whose_first_jobs_are_being_changed_do_not_hold_up_the_others(
    storage: PostgresStorage,
) -> None:
    insert(storage, *(job(f"j{n:03d}", lane=f"lane {n:03d}") for n in range(80)))

    def work(tx: Transaction) -> list[str]:
        bulk.lock_many(tx, Job, [f"j{n:03d}" for n in range(70)])
        return ids(claim(storage, limit=4))

    found = storage.transact(PARTITION, work)
    assert len(found) == 4
    assert min(found) >= "j070"


def test_a_renewal_does_not_wait_for_jobs_that_are_being_changed(storage: PostgresStorage) -> None:
    """The commit of a handler that waits for a tenant's lock has its job locked meanwhile."""
    insert(storage, job("changed", lane="a"), job("free", lane="b"), job("lost", lane="c"))
    storage.transact(OTHER_PARTITION, lambda tx: tx.insert(job("elsewhere", lane="d")))
    claimed = claim(storage)
    storage.transact(PARTITION, lambda tx: tx.delete(lock_existing(tx, Job, "lost")))

    def work(tx: Transaction) -> list[str]:
        lock_existing(tx, Job, "changed")
        return ids(storage.renew(claimed, NOW + 3 * LEASE_MS))

    assert sorted(storage.transact(PARTITION, work)) == ["changed", "elsewhere", "free"]
    assert fetch_existing(storage, Job, "changed").lease_until == NOW + LEASE_MS
    assert fetch_existing(storage, Job, "free").lease_until == NOW + 3 * LEASE_MS
    assert ids(claim(storage, now=NOW + 3 * LEASE_MS - 1)) == ["changed"]


def test_a_claim_of_nothing_but_jobs_that_are_being_changed_ends(
    storage: PostgresStorage,
) -> None:
    insert(storage, *(job(f"j{n:03d}", lane=f"lane {n:03d}") for n in range(200)))

    def work(tx: Transaction) -> list[str]:
        bulk.lock_many(tx, Job, [f"j{n:03d}" for n in range(200)])
        return ids(claim(storage, limit=1))

    assert storage.transact(PARTITION, work) == []
    assert len(claim(storage, limit=1)) == 1


def test_jobs_behind_one_that_is_being_changed_wait_for_it(storage: PostgresStorage) -> None:
    insert(storage, *(job(f"j{n}", ordinal=n) for n in range(4)))

    def work(tx: Transaction) -> list[str]:
        lock_existing(tx, Job, "j2")
        return ids(claim(storage, lane_concurrency=4))

    assert storage.transact(PARTITION, work) == ["j0", "j1"]
    assert ids(claim(storage, lane_concurrency=4)) == ["j2", "j3"]


def test_the_ring_goes_on_in_another_process(storage: PostgresStorage, url: str) -> None:
    insert(storage, *(job(f"{lane}{n}", lane=lane) for lane in "abc" for n in range(3)))
    other = PostgresStorage(url, RECORD_TYPES)
    turns = [ids(claim(one, limit=1, lane_concurrency=9))[0] for one in (storage, other) * 3]
    assert turns == ["a0", "b0", "c0", "a1", "b1", "c1"]
    other.close()


def test_a_long_queue_behind_one_lane_is_not_read_through(
    storage: PostgresStorage, url: str
) -> None:
    """The plans walk the indexes from lane to lane, whatever the planner knows of the table."""
    body = documents.encode(documents.stamp(job("x"), 1)).decode()
    fill = (
        "INSERT INTO jobs (partition, id, version, queue, lane, due_at, ordinal, lease_until, "
        "claims, body) SELECT %s, 'j' || n, 1, %s, CASE WHEN n > 1000 THEN 'big' ELSE 'lane ' || n "
        "END, %s - n, 0, 0, 0, %s FROM generate_series(1, 20000) AS n"
    )
    look, take = _FIND_LANES, _SELECT_DUE
    lanes = [f"lane {n}" for n in range(1, 73)]
    for place, text in ((5, "40"), (4, str(NOW)), (3, f"ARRAY[{','.join(['1'] * 72)}]")):
        take = take.replace(f"${place}", text)
    take = take.replace("$2", f"ARRAY{lanes}").replace("$1", f"'{QUEUE}'")
    for place, text in ((4, "72"), (3, "NULL"), (2, str(NOW)), (1, f"'{QUEUE}'")):
        look = look.replace(f"${place}", text)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(fill, (OTHER_PARTITION, QUEUE, NOW, body))
        for _ in range(2):
            for sql in (look, take):
                rows = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}".encode()).fetchall()
                plan = "\n".join(line for (line,) in rows)
                assert "Seq Scan" not in plan
                assert "Bitmap" not in plan
                read = rows[0][0] + rows[1][0]
                pages = sum(int(part.split("=")[1]) for part in read.split() if part[:4] == "hit=")
                assert pages < 2_000, plan
            connection.execute("ANALYZE jobs")


def test_the_leases_of_the_dead_are_found_among_many_jobs_of_later(
    storage: PostgresStorage, url: str
) -> None:
    insert(storage, job("mine", lane="a"))
    claim(storage, holder="me")
    body = documents.encode(documents.stamp(job("x"), 1)).decode()
    fill = (
        "INSERT INTO jobs (partition, id, version, queue, lane, due_at, ordinal, lease_until, "
        "claims, body) SELECT %s, 'j' || n, 1, %s, 'lane ' || n, %s + n, 0, 0, 0, %s "
        "FROM generate_series(1, 20000) AS n"
    )
    find = _FIND_LEASED.replace("$2", str(NOW)).replace("$1", f"'{QUEUE}'")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(fill, (OTHER_PARTITION, QUEUE, NOW + HOUR, body))
        connection.execute("ANALYZE jobs")
        rows = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {find}".encode()).fetchall()
        read = rows[0][0] + rows[1][0]
        pages = sum(int(part.split("=")[1]) for part in read.split() if part[:4] == "hit=")
        assert pages < 50, rows
    assert storage.end_leases(QUEUE, "me", NOW) == 1


def test_next_due_of_a_queue(storage: PostgresStorage) -> None:
    assert storage.next_due(QUEUE) is None
    insert(storage, job("j", due_at=NOW, lease_until=NOW + LEASE_MS))
    assert storage.next_due(QUEUE) == NOW + LEASE_MS
    assert storage.next_due(QUEUE, NOW + LEASE_MS) is None
