"""A wrong body under a key that was used before is a wrong body, not a conflict."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.checkout import Checkout

ACCOUNT = {"externalUserId": "new", "subjectType": "individual"}
HOOK = {"url": "https://93.184.216.34/hook"}


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


def hooks(checkout: Checkout) -> str:
    api = checkout.api
    return f"/v2/console/apps/{api.app_row.id}/environments/{api.partition}/webhooks"


@pytest.mark.parametrize(
    ("address", "chain_type"),
    [
        ("0x12", "evm"),
        ("0xe0dA8Ca1c0C4FE1e95cD7Ea0736DD09dE9201030", "evm"),  # its checksum is wrong
        ("0xe0dA8Ca1c0C4FE1e95cD7Ea0736DD09dE9201032", "solana"),
    ],
)
def test_a_reused_key_with_an_invalid_wallet_address_is_a_validation_error(
    checkout: Checkout, address: str, chain_type: str
) -> None:
    call = checkout.api.call
    first = call("POST", "/v2/accounts", ACCOUNT, key="k")
    assert first.status == 201
    wrong = {**ACCOUNT, "wallets": [{"address": address, "chainType": chain_type}]}
    seen = call("POST", "/v2/accounts", wrong, key="k")
    assert (seen.status, seen.code) == (400, "validation_error")
    assert list(seen.faults) == ["wallets[0].address"]
    assert call("POST", "/v2/accounts", ACCOUNT, key="k").body == first.body


def test_a_reused_key_with_an_unknown_event_name_is_a_validation_error(checkout: Checkout) -> None:
    call, path = checkout.api.call, hooks(checkout)
    first = call("POST", path, HOOK, key="k")
    assert first.status == 201
    wrong = {**HOOK, "subscribedEvents": ["account.created", "account.exploded"]}
    seen = call("POST", path, wrong, key="k")
    assert (seen.status, seen.code) == (400, "validation_error")
    assert list(seen.faults) == ["subscribedEvents[1]"]
    assert call("POST", path, HOOK, key="k").body == first.body


def test_a_patch_with_an_unknown_event_name_is_a_validation_error_too(checkout: Checkout) -> None:
    call = checkout.api.call
    endpoint = call("POST", hooks(checkout), HOOK).json["webhookEndpoint"]
    path = f"/v2/console/webhooks/{endpoint['id']}"
    assert call("PATCH", path, {"description": "mine"}, key="k").status == 200
    seen = call("PATCH", path, {"subscribedEvents": ["nope"]}, key="k")
    assert (seen.status, list(seen.faults)) == (400, ["subscribedEvents[0]"])
    assert call("GET", path).json["webhookEndpoint"]["description"] == "mine"


def test_a_right_body_that_differs_is_still_a_conflict(checkout: Checkout) -> None:
    call = checkout.api.call
    call("POST", "/v2/accounts", ACCOUNT, key="k")
    seen = call("POST", "/v2/accounts", {**ACCOUNT, "username": "somebody"}, key="k")
    assert (seen.status, seen.code) == (409, "idempotency_conflict")


@pytest.mark.parametrize(
    ("more", "paths"),
    [
        ({"subjectType": "robot"}, ["subjectType", "wallets[0].address", "wallets[2].address"]),
        ({"age": 7}, ["wallets[0].address", "wallets[2].address", "age"]),
        ({"username": 7, "email": ""},
         ["username", "email", "wallets[0].address", "wallets[2].address"]),
    ],
)  # fmt: skip
def test_wallet_faults_are_reported_together_with_type_faults(
    checkout: Checkout, more: dict[str, Any], paths: list[str]
) -> None:
    wallets = [
        {"address": "0x12", "chainType": "evm"},
        {"address": "0xe0dA8Ca1c0C4FE1e95cD7Ea0736DD09dE9201032", "chainType": "evm"},
        {"address": "0x13", "chainType": "evm"},
    ]
    seen = checkout.api.call("POST", "/v2/accounts", {**ACCOUNT, "wallets": wallets, **more})
    assert seen.status == 400
    assert sorted(seen.faults) == sorted(paths)
