"""Parked jobs are found wherever they lie, and one that is put back to work is done."""

from __future__ import annotations

import logging

import attrs
import pytest

from payments_core.engine.jobs.parking import ParkingPolicy, Queue
from payments_core.errors import NotFound, ResourceConflict
from payments_core.maintenance.parked_jobs import ParkedJob, list_parked_jobs, retry
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import DIRECTORY, ClaimedJob, CommitUnknown, Storage, Transaction
from tests.maintenance.shop import Shop

STOPPING, PASSING = (
    Queue("chain", failure_blocks_lane=True),
    Queue("webhooks", failure_blocks_lane=False),
)


def job(id: str, queue: str = "sandbox.chain", **more: int) -> Job:
    known = {"due_at": 5, **more}
    return Job(id=id, queue=queue, lane=f"lane-{id}", kind="none", subject="x", **known)


def put(storage: Storage, partition: str, *jobs: Job) -> None:
    def work(tx: Transaction) -> None:
        for one in jobs:
            if tx.get(Job, one.id, for_update=True) is None:
                tx.insert(one)

    for _ in range(100):
        try:
            storage.transact(partition, work)
        except CommitUnknown:
            continue
        return


def names(found: tuple[ParkedJob, ...]) -> list[tuple[str, str]]:
    return [(one.partition, one.job.id) for one in found]


def test_parked_jobs_of_a_mode_are_found_in_every_partition(storage: Storage) -> None:
    put(storage, DIRECTORY, job("scan", lease_until=NEVER), job("fine"))
    put(storage, "env_a", job("late", due_at=NEVER), job("leased", lease_until=NEVER - 1))
    put(storage, "env_b", job("other", "production.chain", due_at=NEVER))
    assert names(list_parked_jobs(storage, "sandbox")) == [(DIRECTORY, "scan"), ("env_a", "late")]
    assert names(list_parked_jobs(storage, "production")) == [("env_b", "other")]
    assert list_parked_jobs(storage, "sand") == ()


@pytest.mark.parametrize("queue", [STOPPING, PASSING])
def test_what_the_worker_parks_is_found_and_retried(
    shop: Shop, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    name = queue.full_name("sandbox")
    tired = job("tired", name, claims=20, due_at=shop.clock.now())
    put(shop.storage, shop.environment_id, tired)
    (claimed,) = claim(shop, name)
    with caplog.at_level(logging.CRITICAL):
        while not list_parked_jobs(shop.storage, "sandbox"):  # a weak storage may lose it
            parking = ParkingPolicy(shop.storage, shop.clock, ["none"])
            parking.should_run(queue, claimed)
    assert names(list_parked_jobs(shop.storage, "sandbox")) == [(shop.environment_id, "tired")]
    assert not claim(shop, name)
    freed = retry(shop.service.parts.ports, shop.environment_id, "tired")
    assert (freed.claims, freed.due_at, freed.lease_until) == (0, shop.clock.now(), 0)
    assert list_parked_jobs(shop.storage, "sandbox") == ()
    (again,) = claim(shop, name)
    assert (again.job.id, again.job.claims) == ("tired", 1)
    [entry] = shop.service.environment(shop.environment_id).audit.list(object_id="tired").records
    host = shop.service.parts.ports.host
    assert (entry.operation, entry.actor, entry.related_ids) == ("jobs.retry", host, ())


def claim(shop: Shop, queue: str) -> list[ClaimedJob]:
    """The job of these tests, if it can be claimed: a weak storage gives less at times."""
    for _ in range(30):
        claims = shop.storage.claim(
            queue, shop.clock.now(), lease_ms=60_000, limit=50, lane_concurrency=1
        )
        found = [one for one in claims if one.job.id == "tired"]
        if found:
            return found
    return []


def test_a_job_that_is_not_parked_is_left_to_its_worker(shop: Shop) -> None:
    leased = job("busy", lease_until=shop.clock.now() + 1_000, claims=3)
    put(shop.storage, "env_a", leased)
    with pytest.raises(ResourceConflict, match="not parked"):
        retry(shop.service.parts.ports, "env_a", "busy")
    stored = shop.storage.read("env_a", lambda snapshot: snapshot.get(Job, "busy"))
    assert stored is not None
    assert attrs.evolve(stored, version=0, schema=0) == leased


def test_a_job_that_is_elsewhere_is_not_found(shop: Shop) -> None:
    put(shop.storage, "env_a", job("there", due_at=NEVER))
    for partition, id in (("env_a", "none"), ("env_b", "there")):
        with pytest.raises(NotFound):
            retry(shop.service.parts.ports, partition, id)
