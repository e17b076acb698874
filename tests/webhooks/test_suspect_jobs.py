"""Deliveries that end their process, as a handler of events can, and those beside them."""

from __future__ import annotations

from payments_core.clock import HOUR, SECOND
from payments_core.engine.jobs.leases import LeaseKeeper
from payments_core.engine.jobs.parking import CLAIMS_BEFORE_PARKING
from payments_core.engine.jobs.suspects import ALONE_PAUSE_MS, CLAIMS_BEFORE_ALONE
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import ClaimedJob, Transaction
from payments_core.webhooks.dispatch.job_handlers import DELIVERY_QUEUE, FAN_OUT_QUEUE
from payments_core.webhooks.dispatch.jobs_in_hand import JobsInHand
from payments_core.webhooks.record import Endpoint
from tests.webhooks.webhook_bench import HOOK, Bench


class Deployment:
    """A deployment of one process with a delivery to each of four endpoints."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.endpoints = [self.bench.endpoint(f"{HOOK}/{name}") for name in "abcd"]
        self.bench.happen()
        jobs = self.begin()
        for items in jobs.claim(FAN_OUT_QUEUE, 10, 1, {}).values():
            self.bench.delivery.fan_out(items)

    def begin(self) -> JobsInHand:
        """The jobs that a new process has leased: none."""
        bench = self.bench
        leases = LeaseKeeper(bench.storage, bench.clock)
        return JobsInHand(bench.worker.parking, leases, "sandbox")

    def die(self) -> None:
        """The process ends; what it had is free again when its leases end."""
        self.bench.clock.advance(DELIVERY_QUEUE.lease_ms / SECOND)

    def job(self, endpoint: Endpoint) -> Job:
        [job] = self.bench.jobs_of(endpoint)
        return job

    def end(self, claimed: ClaimedJob) -> None:
        """The delivery has its outcome."""

        def work(tx: Transaction) -> None:
            job = tx.get(Job, claimed.job.id, for_update=True)
            assert job is not None
            tx.delete(job)

        self.bench.storage.transact(claimed.partition, work)


def take(jobs: JobsInHand) -> list[ClaimedJob]:
    """What may be sent now."""
    claimed = jobs.claim(DELIVERY_QUEUE, 100, 100, {})
    return [item for items in claimed.values() for item in jobs.keep(items)]


def test_a_delivery_that_ends_its_process_parks_alone() -> None:
    deployment = Deployment()
    poison = deployment.job(deployment.endpoints[0]).id
    sent, deaths = 0, 0
    until = deployment.bench.clock.now() + HOUR
    while deployment.bench.clock.now() < until:
        taken = take(deployment.begin())
        if any(item.job.id == poison for item in taken):  # nobody hears of the others either
            deaths += 1
            deployment.die()
            continue
        for item in taken:
            deployment.end(item)
        sent += len(taken)
        deployment.bench.clock.advance(ALONE_PAUSE_MS / SECOND)
    assert (sent, deaths) == (3, CLAIMS_BEFORE_PARKING)
    assert deployment.job(deployment.endpoints[0]).due_at == NEVER


def test_of_those_that_may_have_ended_their_process_one_is_sent_at_a_time() -> None:
    deployment = Deployment()
    for _ in range(CLAIMS_BEFORE_ALONE):
        assert len(take(deployment.begin())) == 4
        deployment.die()
    jobs = deployment.begin()
    [first] = take(jobs)
    assert take(jobs) == []
    deployment.bench.clock.advance(ALONE_PAUSE_MS / SECOND)
    assert take(jobs) == []  # that one is still under way
    jobs.drop([first])
    deployment.end(first)
    deployment.bench.clock.advance(ALONE_PAUSE_MS / SECOND)
    [second] = take(jobs)
    assert second.job.claims == CLAIMS_BEFORE_ALONE + 1  # to wait counts as no claim
