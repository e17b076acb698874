"""Where the tables of the service lie on Citus, and that its statements go to one shard."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import attrs
import psycopg
import pytest

from payments_core.conformance.storage.jobs import job
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.jobs import Job
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.postgres.due_partitions import _FIND, _SWEEP
from payments_core.storage.postgres.leases import _FIND_LEASES
from payments_core.storage.postgres.pipeline import (
    EncodedParams,
    PipelinedConnection,
    ResultRow,
)
from payments_core.storage.postgres.schema import SCHEMA_TABLE
from tests.servers import drop_schema, fresh_schema
from tests.servers.citus import citus_or_skip
from tests.service.conftest import funded

pytestmark = pytest.mark.postgres

OF_ALL_PARTITIONS = (
    re.compile(re.escape(_FIND)),
    re.compile(re.escape(_SWEEP)),
    re.compile(re.escape(_FIND_LEASES)),
    re.compile(r"SELECT partition, id, body FROM unnest\(.*"),  # locate
    re.compile(r"SELECT GREATEST\(due_at, lease_until\) FROM jobs WHERE \(queue .*"),
)
"""What asks all machines: the look of a claim, its sweep, the look for leases that end too late,
a lookup, and `next_due`."""

Statement = tuple[str, EncodedParams]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    url = fresh_schema(citus_or_skip().url())
    storage = PostgresStorage(url, RECORD_TYPES)
    storage.migrate()
    storage.close()
    yield url
    drop_schema(url)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[str, Statement]:
    """Each statement that is sent from now on, with values of one time."""
    found: dict[str, Statement] = {}
    run = PipelinedConnection.run

    def record(wire: PipelinedConnection, batch: Sequence[Statement]) -> list[list[ResultRow]]:
        found.update({sql: (sql, values) for sql, values in batch if sql not in found})
        return run(wire, batch)

    monkeypatch.setattr(PipelinedConnection, "run", record)
    return found


def test_all_tables_but_one_are_distributed_by_partition_and_lie_together(url: str) -> None:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT relname, colocationid, column_to_column_name(logicalrelid, partkey) "
            "FROM pg_class LEFT JOIN pg_dist_partition ON logicalrelid = pg_class.oid "
            "WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')"
        ).fetchall()
    placed = {name: (group, column) for name, group, column in rows}
    assert placed.pop(SCHEMA_TABLE) == (None, None)
    assert {column for _, column in placed.values()} == {"partition"}
    assert len({group for group, _ in placed.values()}) == 1
    assert placed.keys() >= {kind.collection.name for kind in RECORD_TYPES}


def test_the_settings_of_each_node_are_read(url: str) -> None:
    """This cluster does not wait for the disk, and its nodes have one timeout."""
    storage = PostgresStorage(url, RECORD_TYPES)
    errors, warnings = storage.config_errors(), storage.config_warnings()
    storage.close()
    assert sum("synchronous_commit is off on the node" in text for text in errors) == 2
    assert sum("statement_timeout is 0 on the node" in text for text in warnings) == 2
    assert not [text for text in warnings if "lock_timeout" in text]


def test_each_statement_of_a_payment_goes_to_one_shard(
    url: str, sent: dict[str, Statement]
) -> None:
    """Create, authorize, read, claim and finish: from an account to the Payment's success."""
    storage = PostgresStorage(url, RECORD_TYPES)
    world = funded(storage)
    option = world.authorized()
    world.finish()
    write_many(storage)
    payment = world.resources.payments.read(option.payment.id).payment
    assert payment.status == "succeeded"
    queries = [statement for statement in sent.values() if is_query(statement[0])]
    shards = {statement[0]: tasks(storage, statement) for statement in queries}
    storage.close()
    several = [sql for sql, count in shards.items() if count != 1]
    assert several, "the look of claims asks all"
    for sql in several:
        assert any(allowed.fullmatch(sql) for allowed in OF_ALL_PARTITIONS), sql
    for what in ('INSERT INTO "payments"', 'UPDATE "payments"', "UPDATE jobs", 'DELETE FROM "jobs"',
                 "WITH due AS", "UPDATE storage_hints", 'UPDATE "jobs" AS stored',
                 'DELETE FROM "jobs" WHERE partition = $1 AND id = ANY',
                 'SELECT body FROM "payments"'):  # fmt: skip
        assert any(what in sql and count == 1 for sql, count in shards.items()), what


def write_many(storage: PostgresStorage) -> None:
    """Rows of one kind in one commit, as a batch of jobs writes them."""
    jobs = [job(f"many {number}") for number in range(19)]
    storage.transact("env_many", lambda tx: tx.write(jobs))
    for change in (
        lambda tx, found: tx.write([], [attrs.evolve(one, due_at=7) for one in found]),
        lambda tx, found: tx.write([], [], found),
    ):
        storage.transact(
            "env_many",
            lambda tx, change=change: change(  # type: ignore[misc]
                tx, list(tx.get_many(Job, [one.id for one in jobs], for_update=True).values())
            ),
        )


def is_query(sql: str) -> bool:
    return sql.split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


def tasks(storage: PostgresStorage, statement: Statement) -> int:
    """How many shards a statement is planned to ask."""
    sql, values = statement
    wire = storage._pool.connect()
    rows = wire.run([(f"EXPLAIN (COSTS OFF) {sql}", values)])[0]
    wire.connection.close()
    plan = "\n".join((text or b"").decode() for (text,) in rows)
    counts = [int(count) for count in re.findall(r"Task Count: (\d+)", plan)]
    assert counts, plan
    return sum(counts)
