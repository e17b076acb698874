"""An API whose app has its public checkout open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from payments_core.clock import FixedClock
from payments_core.engine.idempotency.record import StoredResponse
from payments_core.payments.record import Payment
from tests.http.api_harness import ApiHarness, Seen
from tests.service.world import WALLET

ORIGIN = "https://shop.example"
OTHER = "https://shop.example:8443"
SETTINGS: dict[str, Any] = {
    "enabled": True,
    "allowedOrigins": [ORIGIN, OTHER],
    "allowedDestinations": [{"type": "wallet", "chainId": 8453, "address": WALLET}],
    "minAmount": "1.00",
    "maxAmount": "100.00",
}
BODY: dict[str, Any] = {"amount": "25.00", "destination": {"type": "wallet", "address": WALLET}}
PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "content-type,idempotency-key",
}
CORS = ("access-control-allow-origin", "vary", "access-control-expose-headers")


class Shop(ApiHarness):
    """An API whose app has its public checkout open."""

    def __init__(self, clock: FixedClock | None = None, **settings: Any) -> None:
        super().__init__(clock)
        self.set(**settings)

    def set(self, **settings: Any) -> None:
        body = {**SETTINGS, **settings}
        assert self.call("PUT", "/v2/partners/payment-settings", body).status == 200

    def path(self, app_id: str | None = None) -> str:
        return f"/v2/public/apps/{app_id or self.app_row.id}/payments"

    def create(
        self,
        body: Any = None,
        *,
        origin: str | None = ORIGIN,
        key: str | None = "k",
        app_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Seen:
        given = {**({"Origin": origin} if origin is not None else {}), **(headers or {})}
        more.setdefault("auth", None)
        body = BODY if body is None and "raw" not in more else body
        return self.call("POST", self.path(app_id), body, key=key, headers=given, **more)

    def asked(self, origin: str | None = ORIGIN, **more: Any) -> Seen:
        """A browser's preflight."""
        headers = {**PREFLIGHT, **({"Origin": origin} if origin is not None else {})}
        return self.call(
            "OPTIONS", self.path(more.pop("app_id", None)), auth=None, headers=headers, **more
        )

    def stored(self) -> tuple[int, int]:
        """How many Payments there are, and answers under a key."""

        def look(snapshot: Any) -> tuple[int, int]:
            payments = snapshot.find(Payment, "by_created", limit=100).records
            return len(payments), len(snapshot.find(StoredResponse, "by_expiry").records)

        return self.service.parts.ports.storage.read(self.partition, look)
