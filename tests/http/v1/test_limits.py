"""The legacy interface counts in the rate policies: for the app with a secret, else by address."""

from __future__ import annotations

import base64

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
