"""Deliveries whose job parked before any attempt had an outcome."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from payments_core.clock import HOUR, SECOND
from payments_core.errors import ResourceConflict
from payments_core.storage.jobs import NEVER
from payments_core.webhooks.record import Endpoint
from payments_core.webhooks.transports.port import Deadline, TransportResult, WebhookRequest
from tests.webhooks.webhook_bench import Bench, Wire


class Broken(Wire):
    """A transport with a fault of its own, which says nothing of the endpoint."""

    broken = True

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        if self.broken:
            raise RuntimeError("a fault of ours")
        return super().send(request, addresses, deadline)


def parked() -> tuple[Bench, Broken, Endpoint]:
    """A pending delivery that is attempted no more."""
    wire = Broken()
    bench = Bench(wire=wire)
    endpoint = bench.endpoint()
    bench.happen()
    bench.run_for(6 * HOUR // SECOND)
    [job] = bench.jobs_of(endpoint)
    assert job.due_at == NEVER
    [delivery] = bench.deliveries(endpoint)
    assert (delivery.status, delivery.attempts) == ("pending", 0)
    return bench, wire, endpoint


def retry(bench: Bench, endpoint: Endpoint) -> None:
    [delivery] = bench.deliveries(endpoint)
    bench.endpoints.retry(bench.authority, endpoint.id, delivery.id)


def test_a_parked_delivery_that_is_still_pending_can_be_retried() -> None:
    bench, wire, endpoint = parked()
    wire.broken = False
    assert bench.run_for(60) == 0  # nothing else wakes it
    retry(bench, endpoint)
    bench.run()
    [delivery] = bench.deliveries(endpoint)
    assert (delivery.status, delivery.attempts) == ("delivered", 1)
    assert len(wire.sent) == 1
    assert bench.jobs_of(endpoint) == ()


def test_a_retried_delivery_has_its_whole_budget_again_and_may_park_again() -> None:
    bench, wire, endpoint = parked()
    retry(bench, endpoint)
    [job] = bench.jobs_of(endpoint)
    assert (job.due_at, job.claims, job.failures) == (bench.clock.now(), 0, 0)
    bench.run_for(6 * HOUR // SECOND)
    wire.broken = False
    retry(bench, endpoint)
    bench.run()
    assert bench.deliveries(endpoint)[0].status == "delivered"


def test_a_pending_delivery_that_waits_for_its_next_try_cannot_be_retried() -> None:
    bench = Bench(wire=Broken())
    endpoint = bench.endpoint()
    bench.happen()
    bench.run_for(60)
    with pytest.raises(ResourceConflict, match="pending"):
        retry(bench, endpoint)
