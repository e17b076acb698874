"""The legacy interface counts in the rate policies: for the app with a secret, else by address."""

from __future__ import annotations

import base64

from tests.http.api_harness import Seen
from tests.http.throttling.test_throttling import Gate


def test_a_call_with_the_secret_counts_for_the_app() -> None:
    gate = Gate({"partner_app_minute": 1})
    target = f"/sdk/v1/get-user?userId={gate.account_id}"
    assert [gate.send(target=target).status for _ in range(2)] == [200, 429]
    assert gate.send().json["error"]["details"]["rule"] == "partner_app_minute"


def test_a_call_with_the_app_id_alone_counts_for_the_address_alone() -> None:
    gate = Gate({"partner_app_minute": 1, "ip_minute": 3})
    target = "/sdk/v1/check-username?username=somebody"
    app_id = "Basic " + base64.b64encode(gate.app_row.id.encode()).decode()
    for _ in range(2):
        assert gate.send(target=target, auth=app_id).status == 200
    assert gate.send().status == 200  # nothing of the app's was used
    refused = gate.send(target=target, auth=app_id)
    assert (refused.status, refused.json["code"]) == (429, "rate_limited")


def test_one_address_cannot_use_up_what_strangers_may_create() -> None:
    """An app id is not a secret: quotes count for the address and the app before they are made."""
    gate = Gate()
    app_id = "Basic " + base64.b64encode(gate.app_row.id.encode()).decode()
    quote = {
        "amount": 1, "sourceAddress": "0x" + "11" * 20, "destinationUserId": gate.account_id,
    }  # fmt: skip

    def ask(address: str) -> Seen:
        environ = {"REMOTE_ADDR": address}
        return gate.send("POST", "/sdk/v1/quote", auth=app_id, body=quote, environ=environ)

    seen = [ask("198.51.100.1").status for _ in range(11)]
    assert (set(seen[:10]), seen[10]) == ({200}, 429)
    assert ask("198.51.100.2").status == 200


def test_quotes_by_a_publishable_key_count_for_their_address_too() -> None:
    gate = Gate({"legacy_quotes": 1})
    _, key = gate.service.tenants.create_key(gate.partition, "publishable", "sdk")
    seen = [
        gate.send(
            "POST", "/sdk/v1/get-deposit-address", auth=None, body={}, headers={"x-sdk-key": key}
        )
        for _ in range(2)
    ]
    assert [one.status for one in seen] == [400, 429]


def test_settlements_count_for_their_address_and_app() -> None:
    """With an app id alone: each may have the nodes asked about the wallets of an account."""
    gate = Gate({"legacy_settlements": 1})
    app_id = "Basic " + base64.b64encode(gate.app_row.id.encode()).decode()

    def ask(address: str) -> int:
        environ = {"REMOTE_ADDR": address}
        return gate.send("POST", "/sdk/v1/settle", auth=app_id, body={}, environ=environ).status

    seen = [ask("198.51.100.1"), ask("198.51.100.1"), ask("198.51.100.2")]
    assert seen == [400, 429, 400]
