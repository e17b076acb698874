"""The audit trail over HTTP: addresses, request ids, filters, and who may read it."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core_http.app import create_app
from payments_core_http.client_address import parse_networks
from payments_core_http.throttling import Throttle
from tests.http.checkout import Checkout

LIST = "/v2/console/audit"


def entries(checkout: Checkout, query: str = "") -> Any:
    seen = checkout.api.call("GET", f"{LIST}{query}")
    assert seen.status == 200, seen.body
    return seen.json["data"]


def test_a_change_is_listed_with_its_key_its_address_and_its_request(checkout: Checkout) -> None:
    made = checkout.create()
    [entry] = entries(checkout, f"?objectId={made.json['paymentId']}")
    assert entry.pop("createdAt") and entry.pop("id").startswith("audit_")
    key = checkout.api.key
    assert entry == {
        "actor": {"type": "key", "id": key.id, "name": key.name},
        "operation": "payments.receive", "objectId": made.json["paymentId"], "relatedIds": [],
        "outcome": "succeeded", "ipAddress": "127.0.0.1",
        "requestId": made.headers["x-request-id"],
    }  # fmt: skip


def test_a_replay_and_a_read_add_nothing(checkout: Checkout) -> None:
    checkout.create()
    before = entries(checkout)
    checkout.create()
    checkout.api.call("GET", "/v2/payments")
    assert entries(checkout) == before


def test_behind_a_trusted_proxy_the_address_is_the_client_s(checkout: Checkout) -> None:
    api = checkout.api
    trusted = Throttle(None, trusted_proxies=parse_networks(["127.0.0.1"]))
    api.validated = create_app(api.service, mode="sandbox", throttle=trusted)
    body = {"externalUserId": "x", "subjectType": "individual"}
    forwarded = {"X-Forwarded-For": "198.51.100.7, 203.0.113.9"}
    made = checkout.api.call("POST", "/v2/accounts", body, headers=forwarded)
    [entry] = entries(checkout, f"?objectId={made.json['id']}")
    assert entry["ipAddress"] == "203.0.113.9"


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("actorType=nobody", "actorType"),
        ("operation=", "operation"),
        ("createdAfter=yesterday", "createdAfter"),
        ("cursor=abc", "cursor"),
        ("limit=0", "limit"),
    ],
)
def test_a_bad_filter_is_named(checkout: Checkout, query: str, path: str) -> None:
    refused = checkout.api.call("GET", f"{LIST}?{query}")
    assert refused.status == 400
    assert [one["path"] for one in refused.json["error"]["details"]["fields"]] == [path]


def test_a_key_needs_the_scope_of_the_console(checkout: Checkout) -> None:
    tenants, api = checkout.api.service.tenants, checkout.api
    for scopes, status in ((("v2:payments",), 403), (("v2:webhooks", "v2:console"), 200)):
        _, api.secret = tenants.create_key(api.partition, "restricted", "r", scopes=scopes)
        assert checkout.api.call("GET", LIST).status == status
