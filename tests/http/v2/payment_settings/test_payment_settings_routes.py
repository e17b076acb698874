"""`GET` and `PUT /v2/partners/payment-settings`."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.clock import FixedClock, format_iso
from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.api_harness import ApiHarness, Seen
from tests.http.checkout import Checkout
from tests.service.payments.test_concurrency import at_once
from tests.service.world import WALLET

PATH = "/v2/partners/payment-settings"
DEFAULTS: dict[str, Any] = {
    "enabled": False, "allowedOrigins": [], "allowedDestinations": [],
    "allowedMethods": ["vault", "direct", "routing", "hosted_onramp"], "chains": None,
    "assets": None, "minAmount": None, "maxAmount": None, "expiresInSeconds": 3_600,
    "monitoringSeconds": 86_400, "underpaymentToleranceBps": 0, "feeBps": 0, "confirmations": {},
    "successUrl": None, "cancelUrl": None,
    "branding": {"name": None, "logoUrl": None, "primaryColor": None, "currency": None},
    "version": 0,
    "createdAt": None, "updatedAt": None,
}  # fmt: skip
ALL: dict[str, Any] = {
    "enabled": True,
    "allowedOrigins": ["https://shop.example", "http://localhost:3000"],
    "allowedDestinations": [{"type": "wallet", "chainId": 8453, "address": WALLET}],
    "allowedMethods": ["direct"],
    "chains": [8453, 1],
    "assets": ["USDC"],
    "minAmount": "1.00",
    "maxAmount": "99.50",
    "expiresInSeconds": 900,
    "monitoringSeconds": 172_800,
    "underpaymentToleranceBps": 100,
    "feeBps": 25,
    "confirmations": {"1": 20, "8453": 10},
    "successUrl": "https://shop.example/thanks?order=1",
    "cancelUrl": "https://shop.example/cart",
    "branding": {
        "name": "Shop", "logoUrl": "https://shop.example/logo.svg", "primaryColor": "#1a2b3c",
        "currency": "EUR",
    },
}  # fmt: skip


def put(api: ApiHarness, body: Any, **more: Any) -> Seen:
    return api.call("PUT", PATH, body, **more)


def test_the_defaults_are_read_until_something_is_set(api: ApiHarness) -> None:
    seen = api.call("GET", PATH)
    assert (seen.status, seen.json) == (200, DEFAULTS)
    assert list(seen.json) == list(DEFAULTS)


def test_what_is_put_is_read_and_can_be_put_again() -> None:
    clock = FixedClock()
    api = ApiHarness(clock)
    seen = put(api, ALL)
    assert seen.status == 200
    at = format_iso(clock.now())
    assert seen.json == {**ALL, "version": 1, "createdAt": at, "updatedAt": at}
    assert api.call("GET", PATH).json == seen.json
    clock.advance(60)
    again = put(api, {**seen.json, "feeBps": 30})
    assert again.json == {
        **ALL, "feeBps": 30, "version": 2, "createdAt": at, "updatedAt": format_iso(clock.now()),
    }  # fmt: skip


def test_what_is_absent_goes_back_to_its_default(api: ApiHarness) -> None:
    put(api, ALL)
    seen = put(api, {"enabled": True})
    left = {**DEFAULTS, "enabled": True, "version": 2}
    assert {**seen.json, "createdAt": None, "updatedAt": None} == left


def test_null_means_no_limit_as_absent_does(api: ApiHarness) -> None:
    names = ("chains", "assets", "minAmount", "maxAmount", "successUrl", "cancelUrl", "branding")
    seen = put(api, {"enabled": False, "confirmations": None, **dict.fromkeys(names)})
    assert {**seen.json, "createdAt": None, "updatedAt": None, "version": 0} == DEFAULTS


def test_a_stale_version_is_a_conflict(api: ApiHarness) -> None:
    assert put(api, {**ALL, "version": 0}).status == 200
    for stale in (0, 2, 7):
        seen = put(api, {"enabled": False, "version": stale})
        assert (seen.status, seen.code) == (409, "conflict")
    assert api.call("GET", PATH).json["enabled"]
    assert put(api, {"enabled": False, "version": 1}).json["version"] == 2
    assert put(api, {"enabled": True}).json["version"] == 3


@pytest.mark.parametrize("first", [False, True])
def test_of_those_who_put_at_once_one_wins(api: ApiHarness, first: bool) -> None:
    read = 0 if first else put(api, ALL).json["version"]
    bodies = [{"enabled": True, "feeBps": fee, "version": read} for fee in range(6)]
    seen = at_once([lambda body=body: put(api, body) for body in bodies])
    assert sorted(answer.status for answer in seen) == [200, *[409] * 5]
    [won] = [answer for answer in seen if answer.status == 200]
    assert api.call("GET", PATH).json == won.json


def test_a_key_is_answered_as_it_was_first(api: ApiHarness) -> None:
    first = put(api, {**ALL, "version": 0}, key="k")
    again = put(api, {**ALL, "version": 0}, key="k")
    assert (again.status, again.body) == (200, first.body)
    assert again.headers["idempotent-replayed"] == "true"
    assert put(api, {"enabled": True}, key="k").code == "idempotency_conflict"
    assert api.call("GET", PATH).json["version"] == 1


def test_only_standard_keys_may(api: ApiHarness) -> None:
    _, wide = api.service.tenants.create_key(
        api.partition, "restricted", "wide", scopes=["v2:payments", "v2:accounts"]
    )
    for method, body in (("GET", None), ("PUT", ALL)):
        for secret in (api.restricted_secret, wide):
            seen = api.call(method, PATH, body, auth=api.basic(secret))
            assert (seen.status, seen.code) == (403, "insufficient_permissions")
        assert api.call(method, PATH, body, auth=None).status == 401
        token = f"Bearer {api.access_token()}"
        assert api.call(method, PATH, body, auth=token).status == 401
    assert api.call("GET", PATH).json == DEFAULTS
    assert "POST" not in api.call("POST", PATH, ALL).headers["allow"]


BAD: dict[str, tuple[Any, list[str]]] = {
    "enabled": ("yes", ["enabled"]),
    "allowedOrigins": (["https://Shop.example", 7, "*"], ["allowedOrigins[1]"]),
    "allowedDestinations": (
        [{"type": "account", "chainId": 1, "address": WALLET}, {"type": "wallet"}, "x"],
        ["allowedDestinations[0].type", "allowedDestinations[1].chainId",
         "allowedDestinations[1].address", "allowedDestinations[2]"],
    ),
    "allowedMethods": ([], ["allowedMethods"]),
    "chains": ([8453.0, "1"], ["chains[0]", "chains[1]"]),
    "assets": ([""], ["assets[0]"]),
    "minAmount": (5, ["minAmount"]),
    "maxAmount": ("+5", ["maxAmount"]),
    "expiresInSeconds": (299, ["expiresInSeconds"]),
    "monitoringSeconds": (2_592_001, ["monitoringSeconds"]),
    "underpaymentToleranceBps": (1_001, ["underpaymentToleranceBps"]),
    "feeBps": (10_000, ["feeBps"]),
    "confirmations": (
        {"8453": 0, "01": 1, "x": 1, "1": True, "10": "3", "137": 1_001},
        ["confirmations.8453", "confirmations.01", "confirmations.x", "confirmations.1",
         "confirmations.10", "confirmations.137"],
    ),
    "successUrl": ("shop.example", ["successUrl"]),
    "cancelUrl": (7, ["cancelUrl"]),
    "branding": (
        {
            "name": "", "logoUrl": "x", "primaryColor": "#12345", "currency": "eur",
            "font": "Comic Sans",
        },
        [
            "branding.name", "branding.logoUrl", "branding.primaryColor", "branding.currency",
            "branding.font",
        ],
    ),
    "version": (-1, ["version"]),
    "fees": (1, ["fees"]),
}  # fmt: skip


def test_every_fault_of_a_body_is_reported_at_once(api: ApiHarness) -> None:
    seen = put(api, {name: value for name, (value, _) in BAD.items()})
    assert (seen.status, seen.code) == (400, "validation_error")
    assert sorted(seen.faults) == sorted(path for _, paths in BAD.values() for path in paths)
    assert api.call("GET", PATH).json == DEFAULTS


@pytest.mark.parametrize("name", BAD)
def test_each_fault_of_a_body_is_reported_alone(api: ApiHarness, name: str) -> None:
    seen = put(api, {"enabled": True, name: BAD[name][0]})
    assert seen.status == 400
    assert sorted(seen.faults) == sorted(BAD[name][1])


def test_what_the_settings_may_not_say_has_its_path_too(api: ApiHarness) -> None:
    body = {
        **ALL,
        "allowedOrigins": ["https://shop.example", "https://shop.example/", "null"],
        "allowedDestinations": [{"type": "wallet", "chainId": 5, "address": WALLET}],
        "chains": [8453, 5],
        "minAmount": "100",
        "confirmations": {"5": 3},
        "cancelUrl": "https://user:word@shop.example/",
    }
    assert set(put(api, body).faults) == {
        "allowedOrigins[1]", "allowedOrigins[2]", "allowedDestinations[0].chainId", "chains[1]",
        "maxAmount", "confirmations.5", "cancelUrl",
    }  # fmt: skip


def test_nothing_at_all_replaces_nothing(api: ApiHarness) -> None:
    put(api, ALL)
    assert put(api, None).status == 400
    assert put(api, {}).faults == {"enabled": "is required"}
    assert api.call("GET", PATH).json["version"] == 1


def test_a_backends_payment_takes_the_terms_over() -> None:
    checkout = Checkout(MemoryStorage())
    put(checkout.api, ALL)
    body = {
        "intent": "receive", "amount": "500.00",
        "destination": {"type": "account", "accountId": checkout.merchant},
    }  # fmt: skip
    made = checkout.api.call("POST", "/v2/payments", body, key="k").json
    assert made["fees"] == {"feeBps": 25, "feeAmountAtomic": "0", "paidBy": "recipient"}
    assert (made["successUrl"], made["cancelUrl"]) == (ALL["successUrl"], ALL["cancelUrl"])
