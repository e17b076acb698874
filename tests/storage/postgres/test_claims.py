"""Claims in PostgreSQL among many lanes and many rows."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from payments_core.clock import HOUR
from payments_core.conformance.storage.harness import (
    OTHER_PARTITION,
    PARTITION,
    fetch_existing,
    lock_existing,
)
from payments_core.conformance.storage.job_partitions import FOUND_WITHIN_S
from payments_core.conformance.storage.jobs import LEASE_MS, NOW, QUEUE, claim, ids, job
from payments_core.conformance.storage.records import RECORD_TYPES
from payments_core.storage import documents
from payments_core.storage.jobs import Job
from payments_core.storage.port import Transaction
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.postgres.claims import _LEASE
from payments_core.storage.postgres.due_jobs import (
    _SELECT_DUE,
    _SELECT_OF_LANES,
    _STATE,
    _WALK,
    MAX_OVERRIDES,
)
from payments_core.storage.postgres.due_partitions import _FIND, _SWEEP, MAX_PARTITIONS
from payments_core.storage.postgres.leases import _FIND_LEASED, _FIND_LEASES, _RENEW
from payments_core.storage.postgres.pipeline import PipelinedConnection, ResultRow

pytestmark = pytest.mark.postgres

_FILL = (
    "INSERT INTO jobs (partition, id, version, queue, lane, due_at, ordinal, lease_until, claims, "
    "body) SELECT %s, 'j' || n, 1, %s, {lane}, {due_at}, 0, 0, 0, %s "
    "FROM generate_series(%s::int, %s) AS n"
)
"""Jobs of one partition and queue, many at once; `lane` and `due_at` are SQL of their number."""


def insert(storage: PostgresStorage, *jobs: Job) -> None:
    storage.transact(PARTITION, lambda tx: tx.write(jobs))


def test_a_lane_behind_hundreds_without_room_is_found(storage: PostgresStorage) -> None:
    insert(storage, *(job(f"a{n:03d}", lane=f"lane {n:03d}") for n in range(300)))
    insert(storage, *(job(f"b{n:03d}", lane=f"lane {n:03d}", ordinal=1) for n in range(300)))
    taken = 0
    while batch := claim(storage, limit=1000):
        taken += len(batch)
    assert taken == 300
    insert(storage, job("z", lane="lane z"), job("between", lane="lane 150x"))
    assert sorted(ids(claim(storage, limit=5)) + ids(claim(storage, limit=5))) == ["between", "z"]
    assert ids(claim(storage, limit=5)) == []


def test_lanes_whose_first_jobs_are_being_changed_do_not_hold_up_the_others(
    storage: PostgresStorage,
) -> None:
    insert(storage, *(job(f"j{n:03d}", lane=f"lane {n:03d}") for n in range(80)))

    def work(tx: Transaction) -> list[str]:
        tx.get_many(Job, [f"j{n:03d}" for n in range(70)], for_update=True)
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
        tx.get_many(Job, [f"j{n:03d}" for n in range(200)], for_update=True)
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
    lane = "CASE WHEN n > 1000 THEN 'big' ELSE 'lane ' || n END"
    fill = _FILL.format(lane=lane, due_at="%s - n")
    lanes = [f"lane {n}" for n in range(1, 73)]
    here = (OTHER_PARTITION, QUEUE, NOW)
    choice = (*here, 40, 1, [], [], [])
    statements = [
        _with_values(_STATE, here),
        _with_values(_SELECT_DUE, choice),
        _with_values(_SELECT_OF_LANES, (*choice, lanes)),
        _with_values(_WALK, (*here, 72)),
        _with_values(_FIND, (QUEUE, NOW, [OTHER_PARTITION], [], "")),
    ]
    sweep = _with_values(_SWEEP, (QUEUE, 0, "", NOW))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(fill, (OTHER_PARTITION, QUEUE, NOW, body, 1, 20_000))
        for _ in range(2):
            for sql in statements:
                rows = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}".encode()).fetchall()
                plan = "\n".join(line for (line,) in rows)
                assert "Seq Scan" not in plan
                assert "Bitmap" not in plan
                read = rows[0][0] + rows[1][0]
                pages = sum(int(part.split("=")[1]) for part in read.split() if part[:4] == "hit=")
                assert pages < 2_000, plan
            connection.execute("ANALYZE jobs")
            statements.append(sweep)  # every two seconds it may be slow until there are statistics


def test_plans_of_an_empty_table_are_good_for_a_full_one(
    storage: PostgresStorage, url: str
) -> None:
    """A prepared statement keeps its plan until PostgreSQL collects statistics."""
    body = documents.encode(documents.stamp(job("x"), 1)).decode()
    fill = _FILL.format(lane="'lane ' || n", due_at="%s")
    ids, ones = [f"j{n}" for n in range(1, 33)], [1] * 32
    here = (OTHER_PARTITION, QUEUE, NOW)
    choice = (*here, 32, 1, [], [], [])
    statements: dict[str, tuple[str, Sequence[_Value]]] = {
        "state": (_STATE, here),
        "select_due": (_SELECT_DUE, choice),
        "select_of_lanes": (_SELECT_OF_LANES, (*choice, [f"lane {n}" for n in range(1, 65)])),
        "walk": (_WALK, (*here, 64)),
        "find": (_FIND, (QUEUE, NOW, [OTHER_PARTITION], [], "")),
        "lease": (_LEASE, (OTHER_PARTITION, NOW, ids, ones, ones, ids, QUEUE, NOW, "")),
        "find_leases": (_FIND_LEASES, (QUEUE, NOW, 100)),
        "renew": (_RENEW, (OTHER_PARTITION, ids, ones, NOW, ids)),
    }
    for rows in (0, 100, 1_000):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("TRUNCATE jobs, storage_hints")
            hint = "INSERT INTO storage_hints VALUES (%s, %s, 0, '')"
            connection.execute(hint, (OTHER_PARTITION, QUEUE))
            connection.execute("SET plan_cache_mode = force_generic_plan")
            connection.execute(fill, (OTHER_PARTITION, QUEUE, NOW, body, 1, rows))
            for name, (sql, values) in statements.items():
                connection.execute(f"PREPARE {name} AS {sql}".encode())
                _explain(connection, name, values)
            connection.execute(fill, (OTHER_PARTITION, QUEUE, NOW, body, rows + 1, 5_000))
            for name, (_, values) in statements.items():
                plan, pages = _explain(connection, name, values)
                assert pages < 1_500, plan


def _explain(
    connection: psycopg.Connection[tuple[str, ...]], name: str, values: Sequence[_Value]
) -> tuple[str, int]:
    """The plan of a prepared statement that is run, and how many pages it read."""
    given = ", ".join(map(_written, values))
    with connection.transaction(force_rollback=True):
        sql = f"EXPLAIN (ANALYZE, BUFFERS) EXECUTE {name} ({given})"
        lines = [line for (line,) in connection.execute(sql.encode()).fetchall()]
    return "\n".join(lines), max(map(int, re.findall(r"hit=(\d+)", "".join(lines))), default=0)


_Value = str | int | Sequence[str] | Sequence[int]


def _with_values(sql: str, values: Sequence[_Value]) -> str:
    """A statement with its values written into it."""
    for place, value in reversed(list(enumerate(values, 1))):
        sql = sql.replace(f"${place}", _written(value))
    return sql


def _written(value: _Value) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return f"'{value}'"
    return "'{" + ", ".join(map(str, value)) + "}'"


@pytest.mark.parametrize("statement", [_FIND_LEASED, _FIND_LEASES])
def test_leases_are_found_among_many_jobs_of_later(
    storage: PostgresStorage, url: str, statement: str
) -> None:
    insert(storage, job("mine", lane="a"))
    claim(storage, holder="me")
    body = documents.encode(documents.stamp(job("x"), 1)).decode()
    fill = _FILL.format(lane="'lane ' || n", due_at="%s + n")
    find = _with_values(statement, (QUEUE, NOW, 100))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(fill, (OTHER_PARTITION, QUEUE, NOW + HOUR, body, 1, 20_000))
        connection.execute("ANALYZE jobs")
        rows = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {find}".encode()).fetchall()
        read = rows[0][0] + rows[1][0]
        pages = sum(int(part.split("=")[1]) for part in read.split() if part[:4] == "hit=")
        assert pages < 50, rows
    assert ids(storage.find_leases(QUEUE, NOW)) == ["mine"]
    assert storage.end_leases(QUEUE, "me", NOW) == 1


def test_what_the_release_before_left_is_claimed(storage: PostgresStorage, url: str) -> None:
    """It wrote no hints, and goes on writing none while this one runs beside it."""
    before = documents.encode(documents.stamp(job("x"), 1)).decode()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DELETE FROM storage_hints")
        connection.execute(
            "CREATE TABLE storage_rings (queue text PRIMARY KEY, lane text NOT NULL)"
        )
        connection.execute("CREATE INDEX jobs__claim_lanes ON jobs (queue, lane)")
        connection.execute("UPDATE storage_schema SET fingerprint = 'before'")

        def write(partition: str, id: str, due_at: int) -> None:
            columns = "partition, id, version, queue, lane, due_at, ordinal, lease_until, claims"
            values = "%s, %s, 1, %s, %s, %s, 0, 0, 0, %s"
            connection.execute(
                f"INSERT INTO jobs ({columns}, body) VALUES ({values})".encode(),
                (partition, id, QUEUE, id, due_at, before.replace('"x"', f'"{id}"')),
            )

        for number in range(3):
            write(f"env_{number}", f"j{number}", NOW - 1)
        write("env_later", "later", NOW + 5)
        storage.migrate()
        assert sorted(ids(claim(storage))) == ["j0", "j1", "j2"]
        write("env_new", "new", NOW - 1)
        assert await_claim(storage, NOW) == ["new"]
        assert await_claim(storage, NOW + 5) == ["later"]
        hints = connection.execute("SELECT partition FROM storage_hints ORDER BY 1").fetchall()
        assert [name for (name,) in hints] == ["env_0", "env_1", "env_2", "env_later", "env_new"]
        names = "('storage_rings', 'jobs__claim_lanes')"
        kept = f"SELECT count(*) FROM pg_class WHERE relname IN {names}"
        assert connection.execute(kept.encode()).fetchone() == (2,)
        storage.finish_migration()
        assert connection.execute(kept.encode()).fetchone() == (0,)


def test_a_commit_that_a_hint_crossed_is_found(storage: PostgresStorage, url: str) -> None:
    """A claim finds nothing and moves the hint later while a transaction finds it early enough."""
    insert(storage, job("first"))
    other = PostgresStorage(url, RECORD_TYPES)
    assert ids(claim(other)) == ["first"]
    storage.transact(PARTITION, lambda tx: tx.delete(lock_existing(tx, Job, "first")))
    insert(storage, job("second", lane="b"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE storage_hints SET due_at = 2 ^ 62")
    assert await_claim(other, NOW) == ["second"]
    other.close()


def await_claim(storage: PostgresStorage, now: int) -> list[str]:
    """What a claim finds within a few seconds."""
    until = time.monotonic() + FOUND_WITHIN_S
    while time.monotonic() < until:
        if claimed := claim(storage, now=now):
            return ids(claimed)
        time.sleep(0.05)
    return []


def test_a_claim_in_one_partition_does_not_wait_for_another(
    storage: PostgresStorage, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row is shared by all: who has a partition's hint locked holds up no other partition.

    A worker that has met another there asks first, and looks for due jobs only where it can have
    them.
    """
    insert(storage, job("here"))
    there = [job("there 1", lane="a"), job("there 2", lane="b"), job("there 3", lane="c")]
    storage.transact(OTHER_PARTITION, lambda tx: tx.write(there))
    looked: list[str] = []
    run = PipelinedConnection.run

    def record(wire: PipelinedConnection, batch: Sequence[Any]) -> list[list[ResultRow]]:
        looked.extend(values[0] for sql, values in batch if sql == _STATE)
        return run(wire, batch)

    monkeypatch.setattr(PipelinedConnection, "run", record)
    with psycopg.connect(url) as connection:
        lock = "SELECT 1 FROM storage_hints WHERE partition = %s FOR UPDATE"
        connection.execute(lock, (PARTITION,))
        found = [ids(claim(storage, limit=1)) for _ in range(3)]
        connection.rollback()
    assert found == [["there 1"], ["there 2"], ["there 3"]]
    here = [partition for partition in looked if partition == PARTITION.encode()]
    assert len(here) == 1
    assert ids(claim(storage)) == ["here"]


def test_partitions_beyond_those_found_together_are_reached(storage: PostgresStorage) -> None:
    claim(storage)  # and no sweep comes for two seconds
    for number in range(MAX_PARTITIONS + 6):
        jobs = [job("j"), job("behind", ordinal=1)]
        storage.transact(f"env_{number:03d}", lambda tx, jobs=jobs: tx.write(jobs))  # type: ignore[misc]
    assert len(claim(storage, limit=1_000)) == MAX_PARTITIONS
    assert len(claim(storage, limit=1_000)) == 6
    assert ids(claim(storage)) == []


def test_partitions_without_room_are_passed_over_and_those_behind_them_looked_at(
    storage: PostgresStorage, url: str
) -> None:
    for number in range(MAX_PARTITIONS + 6):
        jobs = [job("j"), job("behind", ordinal=1)]
        storage.transact(f"env_{number:03d}", lambda tx, jobs=jobs: tx.write(jobs))  # type: ignore[misc]
    while claim(storage, limit=1_000):
        pass
    other = PostgresStorage(url, RECORD_TYPES)
    assert ids(claim(other)) == []
    other.close()


def test_a_claim_with_many_overrides_finds_jobs(storage: PostgresStorage) -> None:
    insert(storage, job("j"))
    overrides = {f"lane {number}": 2 for number in range(MAX_OVERRIDES + 1)}
    claimed = storage.claim(
        QUEUE, NOW, lease_ms=LEASE_MS, limit=1, lane_concurrency=1, lane_overrides=overrides
    )
    assert ids(claimed) == ["j"]


def test_a_partition_that_waits_for_room_is_looked_at_again(
    storage: PostgresStorage, url: str
) -> None:
    """Its room comes from another handle, which this one does not see commit."""
    insert(storage, job("a"), job("b", ordinal=1))
    assert ids(claim(storage)) == ["a"]
    assert ids(claim(storage)) == []
    other = PostgresStorage(url, RECORD_TYPES)
    other.transact(PARTITION, lambda tx: tx.delete(lock_existing(tx, Job, "a")))
    assert await_claim(storage, NOW) == ["b"]
    other.close()


def test_next_due_of_a_queue(storage: PostgresStorage) -> None:
    assert storage.next_due(QUEUE) is None
    insert(storage, job("j", due_at=NOW, lease_until=NOW + LEASE_MS))
    assert storage.next_due(QUEUE) == NOW + LEASE_MS
    assert storage.next_due(QUEUE, NOW + LEASE_MS) is None
