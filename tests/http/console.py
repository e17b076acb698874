"""The webhook console over WSGI, and a receiver of ours behind the transport."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage
from payments_core.webhooks.transports.port import Deadline, TransportResult, WebhookRequest
from tests.http.api_harness import Seen
from tests.http.checkout import Checkout

HOOK = "https://93.184.216.34/hook"
OTHER = "https://93.184.216.34/other"
OK, LATER, NEVER = (
    TransportResult(200, b"thanks"),
    TransportResult(503, b"busy"),
    TransportResult(400, b"no"),
)

DELIVERY = {
    "id", "webhookEndpointId", "outboxEventId", "eventName", "status", "attempts",
    "responseStatus", "requestBody", "responseBody", "failureReason", "createdAt", "updatedAt",
}  # fmt: skip


@attrs.define
class Receiver:
    """The partner's side: a transport that keeps what it is sent, and answers as it was set."""

    answer: TransportResult = OK
    sent: list[WebhookRequest] = attrs.field(factory=list)
    before: Callable[[], object] = attrs.field(default=lambda: None)

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        self.sent.append(request)
        self.before()
        return self.answer

    def close(self) -> None:
        pass


class Console(Checkout):
    """A shop whose webhooks go to a receiver of ours."""

    def __init__(self, storage: Storage | None = None, **ports: Any) -> None:
        self.receiver = Receiver()
        super().__init__(storage or MemoryStorage(), transport=self.receiver, **ports)
        self.run()  # what the beginning left
        tenants = self.api.service.tenants
        self.half = {
            scope: tenants.create_key(self.api.partition, "restricted", scope, scopes=[scope])[1]
            for scope in ("v2:webhooks", "v2:console")
        }
        self.whole = tenants.create_key(
            self.api.partition, "restricted", "both", scopes=list(self.half)
        )[1]

    @property
    def collection(self) -> str:
        return f"/v2/console/apps/{self.api.app_row.id}/environments/{self.api.partition}/webhooks"

    def endpoint(self, url: str = HOOK, *events: str) -> Any:
        seen = self.call("POST", self.collection, {"url": url, "subscribedEvents": events})
        assert seen.status == 201, seen.body
        return seen.json["webhookEndpoint"]

    def call(self, method: str, path: str, body: Any = None, **more: Any) -> Seen:
        return self.api.call(method, path, body, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Seen:
        return self.call("POST", f"/v2/console/{path}", body, **more)

    def get(self, path: str, **more: Any) -> Seen:
        return self.call("GET", f"/v2/console/{path}", **more)

    def patch(self, endpoint: Any, **changes: Any) -> None:
        seen = self.call("PATCH", f"/v2/console/webhooks/{endpoint['id']}", changes)
        assert seen.status == 200, seen.body

    def happen(self, name: str = "account.created") -> str:
        seen = self.call("POST", "/v2/sandbox/events", {"name": name})
        assert seen.status == 200, seen.body
        return str(seen.json["eventId"])

    def deliveries(self, endpoint: Any) -> list[Any]:
        found: list[Any] = self.get(f"webhooks/{endpoint['id']}/deliveries").json["deliveries"]
        return found

    def delivery(self, endpoint: Any, event_id: str) -> Any:
        [found] = [d for d in self.deliveries(endpoint) if d["outboxEventId"] == event_id]
        return found

    def retry(self, endpoint: Any, delivery: Any, **more: Any) -> Seen:
        return self.post(f"webhooks/{endpoint['id']}/deliveries/{delivery['id']}/retry", **more)


def conflict(seen: Seen, why: str) -> None:
    assert (seen.status, seen.code) == (409, "conflict"), seen.body
    assert why in seen.json["error"]["message"]
