"""One endpoint with one delivery, in a state that a test begins with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from payments_core.clock import SECOND
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core.webhooks.record import Delivery, Endpoint, delivery_id
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.transports.port import Deadline, TransportResult, WebhookRequest
from tests.webhooks.webhook_bench import OK, Bench, Wire

DAY_S = 86_400
NO_ANSWER = TransportResult(failure="no timely answer")
BACKOFF_S = [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600]

CLOSINGS = {
    "disabled": EndpointChanges(status="disabled"),
    "archived": EndpointChanges(status="archived"),
    "narrowed": EndpointChanges(subscribed_events=("account.updated",)),
}
"""What makes an endpoint give up a delivery that is on its way."""


@attrs.define
class Interrupted(Wire):
    """Something happens while the next request is on its way; those after it go undisturbed."""

    meanwhile: Callable[[], object] | None = None

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        answer = Wire.send(self, request, addresses, deadline)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return answer


class Case:
    """One endpoint with one delivery, brought into the state that a row begins with."""

    def __init__(
        self, state: str = "pending", storage: Storage | None = None, max_attempts: int = 10
    ) -> None:
        self.wire = Interrupted([OK])
        self.bench = Bench(
            storage or MemoryStorage(),
            wire=self.wire,
            settings=WebhookSettings(max_attempts=max_attempts),
        )
        self.endpoint_id = self.bench.endpoint().id
        self.event_id = self.bench.happen("account.created")
        self.id = delivery_id(self.event_id, self.endpoint_id)
        if state == "pending":
            while self._stored() is None:  # the fan-out alone; a claim may come back empty
                self.bench.worker.run_due(limit=1)
        else:
            answers = {"failed": 500, "abandoned": 400, "delivered": 200}
            self.attempt(TransportResult(answers[state]))
        assert self.delivery.status == state
        self.wire.sent.clear()

    @property
    def endpoint(self) -> Endpoint:
        return self.bench.endpoints.get(self.bench.authority, self.endpoint_id)

    @property
    def delivery(self) -> Delivery:
        """The row, as it is stored."""
        stored = self._stored()
        assert stored is not None
        return stored

    @property
    def seen(self) -> Delivery:
        """What the partner sees of it."""
        (seen,) = self.bench.deliveries(self.endpoint)
        return seen

    def _stored(self) -> Delivery | None:
        return self.bench.storage.read(
            self.bench.authority.partition, lambda snapshot: snapshot.get(Delivery, self.id)
        )

    def attempt(
        self, answer: TransportResult, meanwhile: Callable[[], object] | None = None
    ) -> None:
        """What is due, answered in this way; a failed delivery becomes due first.

        `meanwhile` happens after the first request was sent, before its answer comes.
        """
        self.wire.answers[:] = [answer]
        self.wire.meanwhile = meanwhile
        stored = self._stored()
        if stored is not None and stored.next_attempt_at_ms is not None:
            self.bench.clock.advance((stored.next_attempt_at_ms - self.bench.clock.now()) / SECOND)
        self.bench.run()

    def change(self, changes: EndpointChanges) -> Endpoint:
        return self.bench.endpoints.update(self.bench.authority, self.endpoint_id, changes)

    def retry(self) -> Delivery:
        return self.bench.endpoints.retry(self.bench.authority, self.endpoint_id, self.id)

    def assert_over(self) -> None:
        """Nothing is sent any more, and no job is left that might."""
        sent = len(self.wire.sent)
        assert self.delivery.next_attempt_at_ms is None
        assert self.bench.jobs_of(self.endpoint) == ()
        self.bench.run_for(DAY_S)
        assert len(self.wire.sent) == sent
