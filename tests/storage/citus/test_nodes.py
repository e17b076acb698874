"""Nodes of Citus that die, come back, and come new, while others write and claim."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise

import psycopg
import pytest

from tests.servers.citus import CitusCluster
from tests.storage.citus.conftest import placed
from tests.storage.citus.load import Load

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(300)]

PARTITIONS = [f"env_{n}" for n in range(12)]
KILLS = 2


@pytest.fixture
def load(migrated: str) -> Iterator[Load]:
    made = Load(migrated, PARTITIONS)
    yield made
    made.close()


def test_a_node_that_is_killed_loses_nothing_doubles_nothing_and_stops_no_other(
    citus: CitusCluster, migrated: str, load: Load, caplog: pytest.LogCaptureFixture
) -> None:
    where = placed(migrated, PARTITIONS)
    with load.running():
        for turn in range(KILLS):
            node = citus.nodes[turn % len(citus.nodes)]
            mine = where[str(node.folder)]
            others = [name for name in PARTITIONS if name not in mine]
            load.await_progress(mine)
            node.kill()
            while turn == 0 and "its jobs wait" not in caplog.text:
                time.sleep(0.02)  # a claim that began before would prove nothing
            load.await_progress(others)
            node.start()
            load.await_progress(mine)
    answered = sum(map(len, load.answered.values()))
    print(f"{answered} commits answered, {load.unknown} unknown, {KILLS} kills")
    assert load.wrong() == []


def test_a_node_is_added_and_gets_shards_while_requests_go_on(
    citus: CitusCluster, migrated: str, load: Load
) -> None:
    with load.running(), closing(psycopg.connect(migrated, autocommit=True)) as connection:
        load.await_progress(PARTITIONS)
        began = time.monotonic()
        node = citus.add_node()
        connection.execute("SELECT citus_rebalance_start()")
        connection.execute("SELECT citus_rebalance_wait()")
        ended = time.monotonic()
        load.await_progress(PARTITIONS)
    assert load.wrong() == []
    moved = placed(migrated, PARTITIONS)
    answered = sorted(
        at for reported in load.answered.values() for at, _ in reported if began < at < ended
    )
    longest = max((later - at for at, later in pairwise(answered)), default=0.0)
    print(f"{len(answered)} commits in {ended - began:.1f} s of moving; pause {longest:.2f} s")
    assert str(node.folder) in moved
    assert len(moved) == 3
    assert answered
