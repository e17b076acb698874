"""Deliveries under whatever partners, receivers and time do, on strong and on weak storage."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from payments_core.errors import ResourceConflict
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.webhooks.dispatch.replay import WebhookEvents
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core.webhooks.lifecycle import OPEN_STATUSES
from payments_core.webhooks.record import Delivery, Endpoint
from payments_core.webhooks.transports.port import TransportResult
from tests.webhooks.webhook_bench import Bench, Wire

NAMES = ("account.created", "account.updated")
ANSWERS = (
    TransportResult(200),
    TransportResult(500),
    TransportResult(400),
    TransportResult(503, retry_after="5"),
    TransportResult(),
)


class DeliveryMachine(RuleBasedStateMachine):
    """One endpoint, its events, and a ledger of what was sent."""

    weakness: Weakness | None = None

    @initialize(seed=st.integers(0, 2**16))
    def begin(self, seed: int) -> None:
        weakness = None if self.weakness is None else Weakness(seed=seed, clock_ahead=0)
        self.wire = Wire()
        self.bench = Bench(MemoryStorage(weakness), wire=self.wire)
        bench = self.bench
        self.events = WebhookEvents(bench.ports)
        self.id = bench.endpoint().id
        self.ended: dict[str, tuple[str, int]] = {}
        self.first_bodies: dict[str, str] = {}

    @property
    def endpoint(self) -> Endpoint:
        return self.bench.endpoints.get(self.bench.authority, self.id)

    def settle(self) -> None:
        """Run what is due until an empty pass is no accident of a short claim."""
        for _ in range(4):
            self.bench.run()

    def sends(self, delivery: Delivery) -> int:
        return sum(r.headers["x-service-delivery"] == delivery.id for r, _ in self.wire.sent)

    @rule(name=st.sampled_from(NAMES), answer=st.sampled_from(ANSWERS))
    def happen(self, name: str, answer: TransportResult) -> None:
        self.wire.answers[:] = [answer]
        wanted = self.endpoint.status == "active" and self.endpoint.subscribes(name)
        before = len(self.wire.sent)
        event_id = self.bench.happen(name)
        self.settle()
        found = [d for d in self.bench.stored(self.endpoint) if d.event_id == event_id]
        assert len(found) == wanted
        assert len(self.wire.sent) - before >= wanted

    @rule(seconds=st.sampled_from([1, 30, 600, 7200]), answer=st.sampled_from(ANSWERS))
    def wait(self, seconds: int, answer: TransportResult) -> None:
        self.wire.answers[:] = [answer]
        self.bench.run_for(seconds)

    @precondition(lambda self: self.endpoint.status != "archived")
    @rule(
        status=st.sampled_from(["active", "disabled", "active", "disabled", "archived"]),
        promptly=st.booleans(),
    )
    def set_status(self, status: Any, promptly: bool) -> None:
        self.bench.endpoints.update(self.bench.authority, self.id, EndpointChanges(status=status))
        if promptly:
            self.settle()

    @precondition(lambda self: self.endpoint.status != "archived")
    @rule(events=st.sampled_from([(), NAMES[:1], NAMES[1:], NAMES]))
    def subscribe(self, events: tuple[str, ...]) -> None:
        self.bench.endpoints.update(
            self.bench.authority, self.id, EndpointChanges(subscribed_events=events)
        )

    @rule(data=st.data(), answer=st.sampled_from(ANSWERS))
    def retry(self, data: st.DataObject, answer: TransportResult) -> None:
        deliveries = self.bench.deliveries(self.endpoint)
        if not deliveries:
            return
        delivery = data.draw(st.sampled_from(deliveries))
        may = (
            self.endpoint.status == "active"
            and self.endpoint.subscribes(delivery.event_name)
            and delivery.status in {"failed", "abandoned"}
        )
        self.wire.answers[:] = [answer]
        before = self.sends(delivery)
        try:
            retried = self.bench.endpoints.retry(self.bench.authority, self.id, delivery.id)
        except ResourceConflict:
            assert not may
            return
        assert may
        assert (retried.status, retried.attempts) == ("pending", 0)
        self.ended.pop(delivery.id, None)
        self.settle()
        assert self.sends(delivery) > before

    @rule(data=st.data(), answer=st.sampled_from(ANSWERS))
    def resend(self, data: st.DataObject, answer: TransportResult) -> None:
        deliveries = self.bench.deliveries(self.endpoint)
        if not deliveries:
            return
        delivery = data.draw(st.sampled_from(deliveries))
        may = (
            self.endpoint.status == "active"
            and self.endpoint.subscribes(delivery.event_name)
            and delivery.status != "pending"
        )
        self.wire.answers[:] = [answer]
        before = self.sends(delivery)
        try:
            [resent] = self.events.resend(
                self.bench.authority, delivery.event_id, endpoint_id=self.id
            )
        except ResourceConflict:
            assert not may
            return
        assert may
        assert (resent.id, resent.status, resent.attempts) == (delivery.id, "pending", 0)
        self.ended.pop(delivery.id, None)
        self.settle()
        assert self.sends(delivery) > before

    @invariant()
    def what_has_ended_is_left_alone(self) -> None:
        for delivery in self.bench.stored(self.endpoint):
            now = (delivery.status, self.sends(delivery))
            if delivery.id in self.ended:
                assert self.ended[delivery.id] == now
            if delivery.status not in OPEN_STATUSES:
                self.ended[delivery.id] = now

    @invariant()
    def each_open_delivery_has_the_one_job_that_attempts_it(self) -> None:
        jobs = {job.id for job in self.bench.jobs_of(self.endpoint)}
        waiting = {d.job_id for d in self.bench.stored(self.endpoint) if d.status in OPEN_STATUSES}
        assert waiting <= jobs

    @invariant()
    def attempts_stay_within_the_budget_and_bodies_stay_the_same(self) -> None:
        for delivery in self.bench.stored(self.endpoint):
            assert delivery.attempts <= 10
            assert (delivery.next_attempt_at_ms is not None) == (delivery.status == "failed")
            assert (delivery.delivered_at_ms is not None) == (delivery.status == "delivered")
            body = self.first_bodies.setdefault(delivery.id, delivery.request_body)
            assert body == delivery.request_body


class WeakDeliveryMachine(DeliveryMachine):
    weakness = Weakness()


TestDeliveries = DeliveryMachine.TestCase
TestDeliveriesOnWeakStorage = WeakDeliveryMachine.TestCase
for case in (TestDeliveries, TestDeliveriesOnWeakStorage):
    case.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
del case
