"""A token's own contract is nobody's wallet: what is sent there is lost."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.api_harness import Seen
from tests.http.checkout import BASE, Checkout
from tests.http.payment_bodies import collect, create, mandate, receive, send
from tests.shipped import CHAINS

TOKEN = CHAINS[BASE].tokens[0].address
TO_TOKEN = {"type": "wallet", "address": TOKEN.lower()}


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


def refused_at(seen: Seen) -> dict[str, str]:
    assert (seen.status, seen.code) == (400, "validation_error"), seen.body
    faults: dict[str, str] = seen.faults
    return faults


@pytest.mark.parametrize("intent", ["receive", "send", "collect"])
def test_it_is_not_a_destination_of_a_payment(checkout: Checkout, intent: str) -> None:
    bodies: dict[str, Any] = {
        "receive": lambda: receive(checkout, destination=TO_TOKEN),
        "send": lambda: send(checkout, destination=TO_TOKEN),
        "collect": lambda: collect(checkout, mandate(checkout), destination=TO_TOKEN),
    }
    seen = create(checkout, bodies[intent]())
    assert refused_at(seen) == {"destination.address": "must not be the contract of a token"}


def test_it_is_not_a_destination_of_a_refund(checkout: Checkout) -> None:
    made = create(checkout, receive(checkout)).json
    path = f"/v2/payments/{made['id']}/refunds"
    seen = checkout.api.call("POST", path, {"amount": "1", "destination": TOKEN}, key="r")
    assert list(refused_at(seen)) == ["destination"]


def test_it_is_not_a_wallet_of_an_account(checkout: Checkout) -> None:
    wallet = {"address": TOKEN, "chainType": "evm"}
    body = {"externalUserId": "new", "subjectType": "individual", "wallets": [wallet]}
    seen = checkout.api.call("POST", "/v2/accounts", body)
    assert list(refused_at(seen)) == ["wallets[0].address"]
    path = f"/v2/accounts/{checkout.payer}/wallets/challenge"
    assert list(refused_at(checkout.api.call("POST", path, wallet))) == ["address"]


def test_no_settings_and_no_policy_allow_it(checkout: Checkout) -> None:
    to = {"type": "wallet", "chainId": BASE, "address": TOKEN}
    body = {"enabled": True, "allowedDestinations": [to]}
    seen = checkout.api.call("PUT", "/v2/partners/payment-settings", body)
    assert list(refused_at(seen)) == ["allowedDestinations[0].address"]
    account = f"/v2/accounts/{checkout.payer}"
    vault = checkout.api.call("GET", account).json["vaults"][0]["vaultId"]
    policy = {"status": "active", "allowedDestinations": [to]}
    seen = checkout.api.call("PUT", f"{account}/vaults/{vault}/policy", policy)
    assert list(refused_at(seen)) == ["allowedDestinations[0].address"]
