"""A cluster of one's own, to be broken, and what lies where in it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from payments_core.conformance.storage.records import RECORD_TYPES
from payments_core.storage.postgres.adapter import PostgresStorage
from tests.servers import fresh_schema
from tests.servers.citus import CitusCluster, NoCitus

SAFE = {"fsync": "on", "synchronous_commit": "on", "citus.shard_count": "6"}


@pytest.fixture
def citus() -> Iterator[CitusCluster]:
    """Two nodes, whose commits survive a kill, and shards enough for a third."""
    try:
        made = CitusCluster(2, settings=SAFE)
    except NoCitus as reason:
        pytest.skip(str(reason))
    with made:
        yield made


@pytest.fixture
def migrated(citus: CitusCluster) -> str:
    """A schema with the suite's tables."""
    url = fresh_schema(citus.url())
    storage = PostgresStorage(url, RECORD_TYPES)
    storage.migrate()
    storage.close()
    return url


def placed(url: str, partitions: list[str]) -> dict[str, list[str]]:
    """The partitions on each node, which is named by the folder of its socket."""
    sql = """
        SELECT nodename FROM citus_shards
        WHERE shardid = get_shard_id_for_distribution_column('storage_hints', %s::text)
    """
    found: dict[str, list[str]] = {}
    with psycopg.connect(url) as connection:
        for partition in partitions:
            row = connection.execute(sql, (partition,)).fetchone()
            assert row is not None
            found.setdefault(str(row[0]), []).append(partition)
    return found
