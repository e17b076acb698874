"""A request whose twin is answered between its credential and its body.

The earlier answer is looked for together with the credential, so by then that look is stale.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from tests.http.api_harness import Seen
from tests.http.checkout import Checkout


class OvertakenBody(io.BytesIO):
    """A body that comes after something else has happened."""

    def __init__(self, body: bytes, meanwhile: Callable[[], Any]) -> None:
        super().__init__(body)
        self.meanwhile: Callable[[], Any] | None = meanwhile

    def read(self, size: int | None = -1, /) -> bytes:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().read(size)


def overtake(call: Callable[..., Seen], body: Any) -> tuple[Seen, Seen]:
    """The answer of the twin, and that of the request which it overtakes."""
    raw = json.dumps(body).encode()
    first: list[Seen] = []
    stream = OvertakenBody(raw, lambda: first.append(call(raw=raw)))
    second = call(raw=raw, environ={"wsgi.input": stream})
    return first[0], second


def test_a_create_that_is_overtaken_is_answered_alike(checkout: Checkout) -> None:
    body = {
        "intent": "receive",
        "amount": "25.00",
        "destination": {"type": "account", "accountId": checkout.merchant},
    }

    def create(**given: Any) -> Seen:
        return checkout.api.call("POST", "/v2/payments", key="k", **given)

    first, second = overtake(create, body)
    assert (first.status, second.status) == (201, 201)
    assert first.body == second.body
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"
    assert len(checkout.api.call("GET", "/v2/payments").json["data"]) == 1


def test_an_authorize_that_is_overtaken_is_not_refused_for_what_its_twin_did(
    checkout: Checkout,
) -> None:
    payment = checkout.create().json
    option = checkout.option(payment)
    body = {
        "actionId": option["execution"]["actionId"],
        "proof": {"type": "managed_authorization", "authorization": "approved"},
    }
    path = f"/v2/client/me/payments/{payment['id']}/options/{option['id']}/authorize"
    headers = {"X-Service-Payment-Secret": payment["clientSecret"]}

    def authorize(**given: Any) -> Seen:
        auth = f"Bearer {checkout.access}"
        return checkout.api.call("POST", path, auth=auth, key="k", headers=headers, **given)

    first, second = overtake(authorize, body)
    assert (first.status, second.status) == (200, 200)
    assert first.body == second.body
    assert second.headers["idempotent-replayed"] == "true"
    assert checkout.available(checkout.payer)[1] == "25000000"


def test_another_request_under_the_key_of_its_twin_is_a_conflict(checkout: Checkout) -> None:
    def create(amount: str, **given: Any) -> Seen:
        destination = {"type": "account", "accountId": checkout.merchant}
        body = {"intent": "receive", "amount": amount, "destination": destination}
        raw = json.dumps(body).encode()
        if given:
            given = {"environ": {"wsgi.input": OvertakenBody(raw, given["meanwhile"])}}
        return checkout.api.call("POST", "/v2/payments", key="k", raw=raw, **given)

    seen = create("2.00", meanwhile=lambda: create("1.00"))
    assert (seen.status, seen.code) == (409, "idempotency_conflict")
    assert len(checkout.api.call("GET", "/v2/payments").json["data"]) == 1
