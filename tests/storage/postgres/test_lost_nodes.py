"""What claims and leases do while a machine behind the server is away, or the server itself is.

`tests/storage/citus/test_nodes.py` kills such machines; what is here needs the failure at one call.
"""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.conformance.storage.jobs import NOW, QUEUE, job
from payments_core.storage.port import ClaimedJob, StorageUnavailable
from payments_core.storage.postgres.due_jobs import ClaimRequest
from payments_core.storage.postgres.due_partitions import DuePartitions
from payments_core.storage.postgres.errors import NodeLost
from payments_core.storage.postgres.leases import renew

REQUEST = ClaimRequest(QUEUE, NOW, 1_000, 10, 4, {}, "")
CLAIMED = [ClaimedJob(partition, job("j")) for partition in ("away", "here")]


def fail(cause: Exception | None) -> None:
    raise StorageUnavailable("it does not answer") from cause


def test_a_lease_on_a_machine_that_is_away_keeps_no_other_from_living() -> None:
    renewed = []

    def write_in(work: Any) -> Any:
        [[item]] = work.keywords["groups"]
        if item.partition == "away":
            fail(NodeLost("gone"))
        renewed.append(item.partition)
        return [item]

    with pytest.raises(StorageUnavailable):
        renew(write_in, CLAIMED, NOW + 1, each_partition_apart=True)
    assert renewed == ["here"]


def test_leases_are_not_tried_on_where_the_server_is_away() -> None:
    asked = []

    def write_in(work: Any) -> Any:
        asked.append(work)
        fail(None)

    with pytest.raises(StorageUnavailable):
        renew(write_in, CLAIMED, NOW + 1, each_partition_apart=True)
    assert len(asked) == 1


def test_a_claim_says_that_the_server_is_away() -> None:
    claims = DuePartitions(lambda look: (["here"], {"here"}, None), lambda work: fail(None))
    with pytest.raises(StorageUnavailable):
        claims.claim(REQUEST)


def test_a_handle_that_knows_no_partition_finds_nothing_while_a_machine_is_away() -> None:
    claims = DuePartitions(lambda look: fail(NodeLost("gone")), lambda work: fail(None))
    assert claims.claim(REQUEST) == []
