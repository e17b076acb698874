"""The main job over HTTP: a receive Payment through the Vault option, on every storage."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from payments_core.storage.port import Storage
from tests.http.api_harness import Seen
from tests.http.checkout import Checkout

OPTION_FIELDS = {
    "id",
    "providerCode",
    "paymentMethodType",
    "paymentMethodId",
    "type",
    "displayName",
    "status",
    "selectionStatus",
    "requiredAmountAtomic",
    "paidAmountAtomic",
    "remainingAmountAtomic",
    "isTerminal",
    "confirmationMode",
    "transactionSubmissions",
    "sourceAmount",
    "destinationAmount",
    "payerAmount",
    "recipientAmount",
    "providerFee",
    "execution",
    "expiresAt",
    "refreshable",
    "feeAmountAtomic",
    "actionExpiresAt",
    "quoteExpiresAt",
    "orderExpiresAt",
    "receipts",
}
OPERATION_FIELDS = {
    "id",
    "status",
    "statusVersion",
    "commercialFeeMode",
    "transactionHash",
    "authorizedAt",
    "broadcastAt",
    "confirmedAt",
    "expiresAt",
}
RECEIPT_FIELDS = {
    "id",
    "paymentId",
    "optionId",
    "chainId",
    "transactionHash",
    "logIndex",
    "tokenAddress",
    "from",
    "to",
    "amountAtomic",
    "blockNumber",
    "blockHash",
    "status",
    "rejectionReason",
    "observedAt",
    "verifiedAt",
}
PAYMENT_FIELDS = {
    "id",
    "paymentId",
    "intent",
    "status",
    "statusVersion",
    "accountId",
    "externalUserId",
    "amount",
    "amountAtomic",
    "assetSymbol",
    "decimals",
    "chainId",
    "tokenAddress",
    "receivedAmountAtomic",
    "remainingAmountAtomic",
    "excessAmountAtomic",
    "settledAmountAtomic",
    "refundedAmountAtomic",
    "returnedAmountAtomic",
    "fees",
    "source",
    "destination",
    "escrow",
    "releaseTransactionHash",
    "allowedMethods",
    "selectedOptionId",
    "options",
    "receipts",
    "refunds",
    "payout",
    "reconciliation",
    "sessionId",
    "timeline",
    "failure",
    "reference",
    "description",
    "metadata",
    "apiVersion",
    "paymentUrl",
    "successUrl",
    "cancelUrl",
    "createdBy",
    "expiresAt",
    "monitoringExpiresAt",
    "succeededAt",
    "cancelledAt",
    "createdAt",
    "updatedAt",
}


@pytest.fixture
def checkout(storage: Storage) -> Checkout:
    return Checkout(storage)


def test_a_payment_goes_from_creation_to_succeeded(checkout: Checkout) -> None:
    payment = checkout.create(metadata={"order": "7"}).json
    assert set(payment) == {*PAYMENT_FIELDS, "clientSecret"}
    assert payment["status"] == "awaiting_payment"
    option = checkout.option(payment)
    assert set(option) == OPTION_FIELDS
    assert (option["status"], option["selectionStatus"]) == ("pending", "selected")

    seen = checkout.authorize(payment, option, metadata={"device": "phone"})
    assert seen.status == 200
    assert seen.headers["service-version"] == "2026-09-09"
    answer = seen.json
    assert set(answer) == {"paymentId", "option", "fundingOperation"}
    assert set(answer["option"]) == OPTION_FIELDS
    assert answer["option"]["status"] == "processing"
    assert answer["option"]["execution"] is None
    operation = answer["fundingOperation"]
    assert set(operation) == OPERATION_FIELDS
    assert (operation["status"], operation["statusVersion"]) == ("authorized", 2)
    assert operation["authorizedAt"] is not None
    moments = ("transactionHash", "broadcastAt", "confirmedAt")
    assert [operation[name] for name in moments] == [None, None, None]
    assert checkout.available(checkout.payer) == ("75.00", "25000000")

    assert checkout.advance(20).status == 200
    done = checkout.read(payment["id"])
    assert set(done) == PAYMENT_FIELDS
    assert done["status"] == "succeeded"
    assert [entry["status"] for entry in done["timeline"]] == [
        "awaiting_payment", "processing", "accepted", "executing", "succeeded",
    ]  # fmt: skip
    [entry] = done["options"]
    assert entry["metadata"] == {"device": "phone"}
    assert entry["option"]["status"] == "succeeded"
    assert entry["fundingOperation"]["status"] == "confirmed"
    [receipt] = done["receipts"]
    assert set(receipt) == RECEIPT_FIELDS
    assert (receipt["status"], receipt["to"]) == ("verified", payment["escrow"]["address"])
    assert done["settledAmountAtomic"] == "25000000"
    assert checkout.available(checkout.payer) == ("75.00", "0")
    assert checkout.available(checkout.merchant) == ("25.00", "0")


def test_a_replay_is_the_same_bytes_even_after_the_payment_moved_on(checkout: Checkout) -> None:
    created = checkout.create()
    payment = created.json
    option = checkout.option(payment)
    first = checkout.authorize(payment, option)
    checkout.advance(20)
    again = checkout.authorize(payment, option)
    assert (again.status, again.body) == (first.status, first.body)
    assert again.headers["idempotent-replayed"] == "true"
    replayed = checkout.create()
    assert replayed.body == created.body
    assert replayed.json["clientSecret"] == payment["clientSecret"]
    assert "clientSecret" not in checkout.read(payment["id"])


def test_a_key_used_for_another_payment_option_or_body_conflicts(checkout: Checkout) -> None:
    one, two = checkout.create(key="a").json, checkout.create(key="b").json
    option_one, option_two = checkout.option(one), checkout.option(two)
    assert checkout.authorize(one, option_one, key="k").status == 200
    for seen in (
        checkout.authorize(two, option_two, key="k"),
        checkout.authorize(one, option_one, key="k", metadata={"a": "b"}),
        checkout.authorize(one, option_one, key="k", actionId="other"),
    ):
        assert (seen.status, seen.code) == (409, "idempotency_conflict")


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"actionId": "action_unknown"}, 422, "action_invalid"),
        ({"actionId": ""}, 400, "validation_error"),
        ({"actionId": 7}, 400, "validation_error"),
        ({"proof": {"type": "managed_authorization"}}, 400, "validation_error"),
        ({"extra": 1}, 400, "validation_error"),
    ],
)
def test_a_wrong_authorize_body_changes_nothing(
    checkout: Checkout, changes: dict[str, Any], status: int, code: str
) -> None:
    payment = checkout.create().json
    option = checkout.option(payment)
    seen = checkout.authorize(payment, option, **changes)
    assert (seen.status, seen.code) == (status, code)
    assert checkout.authorize(payment, option).status == 200


def test_an_operator_without_coins_is_a_failed_dependency_with_its_reason(
    checkout: Checkout,
) -> None:
    payment = checkout.create().json
    option = checkout.option(payment)
    chain: Any = checkout.api.service.chains[8453]
    chain.set_coins(checkout.api.partition, 0)
    before = checkout.read(payment["id"])
    seen = checkout.authorize(payment, option)
    error = seen.json["error"]
    assert (seen.status, error["code"]) == (424, "dependency_failed")
    assert error["details"]["reason"] == "operator_out_of_gas"
    assert error["details"]["retryable"] is True
    assert error["message"].startswith("The operator of this environment has too few coins")
    assert checkout.read(payment["id"]) == before
    chain.set_coins(checkout.api.partition, 9)
    checkout.advance(10)
    assert checkout.authorize(payment, option).status == 200


def test_five_faults_of_a_body_are_named_by_five_paths(checkout: Checkout) -> None:
    payment = checkout.create().json
    option = checkout.option(payment)
    body = {
        "actionId": 5,
        "proof": {"type": "other", "authorization": "approved", "more": True},
        "metadata": {"a": {"b": {"c": {}}}},
        "unknown": None,
    }
    seen = checkout.pay(payment, f"/{option['id']}/authorize", body, key="k")
    assert seen.status == 400
    assert set(seen.faults) == {
        "actionId", "proof.type", "proof.more", "metadata.a.b.c", "unknown",
    }  # fmt: skip


def test_vault_spending_needs_both_credentials(checkout: Checkout) -> None:
    payment, other = checkout.create(key="a").json, checkout.create(key="b").json
    option = checkout.option(payment)
    path = f"/v2/client/me/payments/{payment['id']}/options/{option['id']}/authorize"
    body = {
        "actionId": option["execution"]["actionId"],
        "proof": {"type": "managed_authorization", "authorization": "approved"},
    }
    secret = {"X-Service-Payment-Secret": payment["clientSecret"]}
    bearer = f"Bearer {checkout.access}"
    call = checkout.api.call
    refused = {
        "no secret": call("POST", path, body, key="k", auth=bearer),
        "no token": call("POST", path, body, key="k", auth=None, headers=secret),
        "the secret as token": call(
            "POST", path, body, key="k", auth=f"Bearer {payment['clientSecret']}", headers=secret
        ),
        "another's secret": call(
            "POST", path, body, key="k", auth=bearer,
            headers={"X-Service-Payment-Secret": other["clientSecret"]},
        ),
        "the server key": call("POST", path, body, key="k", headers=secret),
    }  # fmt: skip
    assert {why: (seen.status, seen.code) for why, seen in refused.items()} == dict.fromkeys(
        refused, (401, "unauthorized")
    )
    reader = checkout.access_token("payer", "payments:read")
    seen = checkout.pay(payment, f"/{option['id']}/authorize", body, key="k", access=reader)
    assert (seen.status, seen.code) == (403, "insufficient_permissions")
    stranger = checkout.access_token("merchant")
    seen = checkout.pay(payment, f"/{option['id']}/authorize", body, key="k", access=stranger)
    assert (seen.status, seen.code) == (404, "not_found")
    assert checkout.authorize(payment, option).status == 200


def together(count: int, do: Callable[[int], Seen]) -> list[Seen]:
    barrier = threading.Barrier(count)

    def one(number: int) -> Seen:
        barrier.wait()
        return do(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_two_payments_cannot_spend_the_same_funds(storage: Storage) -> None:
    checkout = Checkout(storage, funds="30")
    payments = [checkout.create(key=f"p{n}").json for n in range(2)]
    options = [checkout.option(payment) for payment in payments]
    seen = together(2, lambda n: checkout.authorize(payments[n], options[n], key=f"k{n}"))
    assert sorted(one.status for one in seen) == [200, 422]
    [refused] = [one for one in seen if one.status == 422]
    assert refused.code == "insufficient_balance"
    assert checkout.available(checkout.payer) == ("5.00", "25000000")


def test_one_action_from_16_threads_is_used_once(checkout: Checkout) -> None:
    payment = checkout.create().json
    option = checkout.option(payment)
    seen = together(16, lambda n: checkout.authorize(payment, option, key=f"k{n}"))
    outcomes = Counter(
        "200" if one.status == 200 else _settled(checkout, payment, option, n, one.code)
        for n, one in enumerate(seen)
    )
    assert outcomes == {"200": 1, "action_already_used": 15}
    assert checkout.available(checkout.payer) == ("75.00", "25000000")


def _settled(checkout: Checkout, payment: Any, option: Any, n: int, code: str) -> str:
    """The code of a refusal; PostgreSQL gives up a lock after 2 s, and that caller asks again."""
    if code != "idempotency_in_progress":
        return code
    return str(checkout.authorize(payment, option, key=f"k{n}").code)


def test_one_key_from_16_threads_has_one_effect(checkout: Checkout) -> None:
    payment = checkout.create().json
    option = checkout.option(payment)
    seen = together(16, lambda n: checkout.authorize(payment, option, key="same"))
    answered = [one for one in seen if one.status == 200]
    assert len({one.body for one in answered}) == 1
    waited = [one for one in seen if one.status != 200]
    assert {one.code for one in waited} <= {"idempotency_in_progress"}
    assert all(one.headers["retry-after"] == "1" for one in waited)
    created = together(16, lambda n: checkout.create(key="create-same"))
    assert len({one.json["id"] for one in created if one.status == 201}) == 1
    listed = checkout.api.call("GET", "/v2/payments").json["data"]
    assert len(listed) == 2
