"""Sends and collects over WSGI."""

from __future__ import annotations

import pytest

from payments_core.clock import format_iso
from payments_core.storage.port import Storage
from tests.http.checkout import BASE, Checkout
from tests.http.payment_bodies import (
    OUTSIDE,
    WALLET,
    collect,
    create,
    mandate,
    receive,
    send,
    stored,
)
from tests.http.v2.options.test_checkout import PAYMENT_FIELDS

# Sends


def test_a_send_answers_exactly_a_payment_without_escrow_secret_or_link(storage: Storage) -> None:
    checkout = Checkout(storage)
    seen = create(checkout, send(checkout, reference="r-1", metadata={"a": [1]}))
    assert seen.status == 201, seen.body
    now = format_iso(checkout.clock.now())
    payment = seen.json
    id, source = payment["id"], payment["source"]
    assert payment == {
        "id": id,
        "paymentId": id,
        "intent": "send",
        "status": "processing",
        "statusVersion": 1,
        "accountId": checkout.payer,
        "externalUserId": "payer",
        "amount": "5.00",
        "amountAtomic": "5000000",
        "assetSymbol": "USDC",
        "decimals": 6,
        "chainId": BASE,
        "tokenAddress": payment["tokenAddress"],
        "receivedAmountAtomic": "0",
        "remainingAmountAtomic": "0",
        "excessAmountAtomic": "0",
        "settledAmountAtomic": "0",
        "refundedAmountAtomic": "0",
        "returnedAmountAtomic": "0",
        "fees": {"feeBps": 0, "feeAmountAtomic": "0", "paidBy": "recipient"},
        "source": {
            "type": "vault",
            "accountId": checkout.payer,
            "externalUserId": "payer",
            "vaultId": source["vaultId"],
            "address": source["address"],
            "mandateId": None,
            "policyVersion": 1,
        },
        "destination": {
            "type": "wallet",
            "accountId": None,
            "externalUserId": None,
            "paymentAddress": None,
            "address": OUTSIDE,
            "bankAccountId": None,
            "rail": None,
            "achReference": None,
            "wireMessage": None,
        },
        "escrow": None,
        "releaseTransactionHash": None,
        "allowedMethods": [],
        "selectedOptionId": None,
        "options": [],
        "receipts": [],
        "refunds": [],
        "payout": None,
        "reconciliation": {
            "status": "none",
            "labels": [],
            "resolution": None,
            "resolvedAt": None,
            "note": None,
        },
        "sessionId": None,
        "timeline": [{"status": "processing", "at": now, "reason": None}],
        "failure": None,
        "reference": "r-1",
        "description": None,
        "metadata": {"a": [1]},
        "apiVersion": "2026-09-09",
        "paymentUrl": None,
        "successUrl": None,
        "cancelUrl": None,
        "createdBy": "server",
        "expiresAt": None,
        "monitoringExpiresAt": None,
        "succeededAt": None,
        "cancelledAt": None,
        "createdAt": now,
        "updatedAt": now,
    }
    assert checkout.available(checkout.payer) == ("95.00", "5000000")
    checkout.advance(20)
    done = checkout.read(id)
    assert set(done) == PAYMENT_FIELDS
    assert (done["status"], done["settledAmountAtomic"]) == ("succeeded", "5000000")
    assert [entry["status"] for entry in done["timeline"]] == [
        "processing", "executing", "succeeded",
    ]  # fmt: skip
    assert checkout.available(checkout.payer) == ("95.00", "0")


@pytest.mark.parametrize(
    "destination",
    [
        {"type": "account", "externalUserId": "merchant"},
        {"type": "payment_address", "paymentAddress": "merchant@shop"},
    ],
)
def test_a_send_pays_an_account_by_any_of_its_names(
    checkout: Checkout, destination: dict[str, str]
) -> None:
    seen = create(checkout, send(checkout, destination=destination))
    assert seen.status == 201, seen.body
    assert seen.json["destination"]["accountId"] == checkout.merchant
    assert seen.json["destination"]["type"] == destination["type"]
    checkout.advance(20)
    assert checkout.available(checkout.merchant) == ("5.00", "0")


@pytest.mark.parametrize("text", ["merchant", "@shop", "merchant@"])
def test_a_payment_address_has_a_name_on_each_side_of_its_at_sign(
    checkout: Checkout, text: str
) -> None:
    to = {"type": "payment_address", "paymentAddress": text}
    for body in (receive(checkout, destination=to), send(checkout, destination=to)):
        seen = create(checkout, body)
        assert (seen.status, seen.code) == (400, "validation_error")
        assert seen.faults == {
            "destination.paymentAddress": "must be a payment address: <username>@<partner id>"
        }


def test_a_send_bridges_nothing(checkout: Checkout) -> None:
    same = send(checkout, destination={**WALLET, "chainId": BASE})
    assert create(checkout, same, key="same").status == 201
    bridged = send(checkout, destination={**WALLET, "chainId": 137})
    bridged["source"] = {**bridged["source"], "chainId": BASE}
    other = create(checkout, bridged, key="other")
    assert (other.status, other.code) == (422, "destination_not_allowed")
    named = send(checkout)
    named["source"] = {**named["source"], "chainId": BASE, "assetSymbol": "USDC"}
    assert create(checkout, named, key="named").status == 201
    named["source"]["assetSymbol"] = "DOGE"
    assert create(checkout, named, key="doge").code == "unsupported_asset"


def test_a_send_beyond_the_balance_is_refused_and_keeps_nothing(checkout: Checkout) -> None:
    seen = create(checkout, send(checkout, "100.000001"))
    assert (seen.status, seen.code) == (422, "insufficient_balance")
    assert stored(checkout) == (0, 0)
    assert checkout.available(checkout.payer) == ("100.00", "0")


def test_a_retried_send_is_answered_from_the_store_when_its_funds_are_gone(
    checkout: Checkout,
) -> None:
    body = send(checkout, "100")
    first = create(checkout, body)
    checkout.advance(20)
    again = create(checkout, body)
    assert (again.status, again.body) == (201, first.body)
    assert again.headers["idempotent-replayed"] == "true"
    assert create(checkout, send(checkout, "1")).code == "idempotency_conflict"
    assert create(checkout, send(checkout, "1"), key="other").code == "insufficient_balance"
    assert stored(checkout) == (1, 1)


def test_a_send_can_be_cancelled_before_it_is_sent(checkout: Checkout) -> None:
    payment = create(checkout, send(checkout)).json
    seen = checkout.api.call("POST", f"/v2/payments/{payment['id']}/cancel")
    assert (seen.status, seen.json["status"]) == (200, "cancelled")
    assert set(seen.json) == PAYMENT_FIELDS
    assert seen.json["source"] == payment["source"]
    assert checkout.available(checkout.payer) == ("100.00", "0")


# Collects


def test_a_collect_draws_on_its_mandate_and_goes_on_as_a_receive_payment(
    storage: Storage,
) -> None:
    checkout = Checkout(storage)
    mandate_id = mandate(checkout)
    seen = create(checkout, collect(checkout, mandate_id, description="June"))
    assert seen.status == 201, seen.body
    payment = seen.json
    assert set(payment) == PAYMENT_FIELDS
    assert (payment["intent"], payment["status"]) == ("collect", "processing")
    assert payment["accountId"] == checkout.merchant
    assert payment["source"]["accountId"] == checkout.payer
    assert payment["source"]["mandateId"] == mandate_id
    assert payment["source"]["policyVersion"] == 1
    assert (payment["paymentUrl"], payment["sessionId"]) == (None, None)
    assert payment["escrow"]["chainId"] == BASE
    assert payment["description"] == "June"
    [entry] = payment["options"]
    assert entry["option"]["id"] == payment["selectedOptionId"]
    assert entry["option"]["status"] == "processing"
    assert entry["fundingOperation"]["status"] == "authorized"
    assert checkout.available(checkout.payer) == ("95.00", "5000000")
    checkout.advance(20)
    done = checkout.read(payment["id"])
    assert done["status"] == "succeeded"
    assert done["source"] == payment["source"]
    assert done["receipts"][0]["optionId"] == payment["selectedOptionId"]
    assert checkout.available(checkout.merchant) == ("5.00", "0")


def test_a_retried_collect_draws_once(checkout: Checkout) -> None:
    mandate_id = mandate(checkout, "5")
    body = collect(checkout, mandate_id)
    first = create(checkout, body)
    assert create(checkout, body).body == first.body
    beyond = create(checkout, body, key="other")
    assert (beyond.status, beyond.code) == (422, "policy_denied")
    assert checkout.available(checkout.payer) == ("95.00", "5000000")


def test_a_collect_has_its_mandates_chain_and_asset_and_no_other(checkout: Checkout) -> None:
    mandate_id = mandate(checkout)
    same = collect(checkout, mandate_id, chainId=BASE, assetSymbol="USDC")
    assert create(checkout, same, key="same").status == 201
    chain = create(checkout, collect(checkout, mandate_id, chainId=137), key="chain")
    assert (chain.status, chain.code) == (422, "unsupported_chain")
    asset = create(checkout, collect(checkout, mandate_id, assetSymbol="USDT"), key="asset")
    assert (asset.status, asset.code) == (422, "unsupported_asset")


def test_the_allowed_methods_can_be_read_back(checkout: Checkout) -> None:
    body = receive(checkout, allowedMethods=["direct", "vault"])
    made = create(checkout, body).json
    assert made["allowedMethods"] == ["direct", "vault"]
    read = checkout.api.call("GET", f"/v2/payments/{made['id']}").json
    assert read["allowedMethods"] == ["direct", "vault"]
