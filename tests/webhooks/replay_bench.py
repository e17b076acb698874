"""What the tests of events that are sent again stand on."""

from __future__ import annotations

from typing import Any

import attrs
from msgspec import UNSET

from payments_core.clock import to_datetime
from payments_core.webhooks.dispatch.recovery import WebhookRecovery
from payments_core.webhooks.dispatch.replay import WebhookEvents
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core.webhooks.lifecycle import RECOVER
from payments_core.webhooks.record import Endpoint
from payments_core.webhooks.transports.port import TransportResult
from tests.webhooks.webhook_bench import Bench, Wire


@attrs.define
class ReplayBench(Bench):
    """The bench, with events and recoveries."""

    events: WebhookEvents = attrs.field(init=False)
    recovery: WebhookRecovery = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.events = WebhookEvents(self.ports)
        self.recovery = WebhookRecovery(self.ports)
        self.worker._executor.handlers[RECOVER] = self.recovery.recover

    @property
    def sent(self) -> list[Any]:
        assert isinstance(self.wire, Wire)
        return [request for request, _ in self.wire.sent]

    def answer(self, outcome: TransportResult) -> None:
        assert isinstance(self.wire, Wire)
        self.wire.answers[:] = [outcome]

    def test(self, endpoint: Endpoint) -> Any:
        return self.events.send_test(self.authority, endpoint.id)

    def resend(self, event_id: str, endpoint: Endpoint | None = None) -> Any:
        named = UNSET if endpoint is None else endpoint.id
        return self.events.resend(self.authority, event_id, endpoint_id=named)

    def recover(self, endpoint: Endpoint, since: int) -> None:
        self.events.recover(self.authority, endpoint.id, to_datetime(since))
        self.settle()

    def update(self, endpoint: Endpoint, **changes: Any) -> None:
        self.endpoints.update(self.authority, endpoint.id, EndpointChanges(**changes))

    def settle(self) -> None:
        """Run what is due until an empty pass is no accident of a short claim; a clock that was
        ahead in a claim may have left leases, which end within a minute."""
        for _ in range(4):
            self.run()
        self.run_for(0)
