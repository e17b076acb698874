"""Refunds and reconciliation, as a partner's backend asks for them after real transfers."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.chains.simulated.transfers import FAUCET
from payments_core.clock import format_iso
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage
from tests.http.api_harness import Seen
from tests.http.checkout import BASE, Checkout
from tests.http.v2.options.test_checkout import PAYMENT_FIELDS, together

OUTSIDE = "0x00000000000000000000000000000000000E0e0E"
SENDER = "0x0000000000000000000000000000000000005e4D"
HOUR = 3_600


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


def refund(checkout: Checkout, payment: Any, body: Any = None, **more: Any) -> Seen:
    more.setdefault("key", "refund")
    body = {} if body is None else body
    return checkout.api.call("POST", f"/v2/payments/{payment['id']}/refunds", body, **more)


def reconcile(checkout: Checkout, payment: Any, action: str, **more: Any) -> Seen:
    more.setdefault("key", f"reconcile-{action}")
    note = more.pop("note", None)
    body = {"action": action, **({"note": note} if note else {})}
    return checkout.api.call("POST", f"/v2/payments/{payment['id']}/reconcile", body, **more)


def paid(checkout: Checkout, *amounts: str, wait: int = 0, **more: Any) -> Any:
    """A Payment of 25 USDC after a stranger's transfers to its escrow."""
    payment = checkout.create(**more).json
    for amount in amounts:
        checkout.transfer(payment["escrow"]["address"], amount)
    if wait:
        checkout.advance(wait)
    return checkout.read(payment["id"])


def underpaid(checkout: Checkout) -> Any:
    """One that expired with 10 USDC of 25 in its escrow."""
    payment = paid(checkout, "10", wait=HOUR)
    assert (payment["status"], payment["reconciliation"]["status"]) == ("action_required", "open")
    assert payment["reconciliation"]["labels"] == ["underpaid"]
    return payment


def refunds(checkout: Checkout, payment: Any, query: str = "") -> Any:
    seen = checkout.api.call("GET", f"/v2/payments/{payment['id']}/refunds{query}")
    assert seen.status == 200, seen.body
    return seen.json


# Refunds


def test_a_refund_goes_from_escrow_to_the_sender_and_is_shown_exactly(storage: Storage) -> None:
    checkout = Checkout(storage)
    payment = underpaid(checkout)
    seen = refund(checkout, payment, {"amount": "4", "reason": "sorry"})
    assert seen.status == 201, seen.body
    made = seen.json
    assert made["refunds"] == [{name: made[name] for name in made if name != "refunds"}]
    del made["refunds"]
    now = format_iso(checkout.clock.now())
    assert made == {
        "id": made["id"],
        "refundId": made["id"],
        "paymentId": payment["id"],
        "amount": "4.00",
        "amountAtomic": "4000000",
        "assetSymbol": "USDC",
        "chainId": BASE,
        "source": "escrow",
        "destination": FAUCET,
        "reason": "sorry",
        "purpose": "refund",
        "status": "created",
        "statusVersion": 1,
        "inReview": False,
        "transactionHash": None,
        "failure": None,
        "createdAt": now,
        "updatedAt": now,
        "succeededAt": None,
    }
    assert made["id"].startswith("refund_")
    assert refunds(checkout, payment) == {
        "data": [made], "limit": 50, "hasNextPage": False, "nextCursor": None,
    }  # fmt: skip
    assert checkout.read(payment["id"])["refunds"] == [made]
    checkout.advance(20)
    [done] = refunds(checkout, payment)["data"]
    assert (done["status"], done["statusVersion"]) == ("succeeded", 3)
    assert done["transactionHash"] is not None and done["succeededAt"] is not None
    read = checkout.read(payment["id"])
    assert read["refunds"] == [done]
    assert (read["status"], read["refundedAmountAtomic"]) == ("action_required", "4000000")


def test_a_refund_that_screening_holds_says_so(checkout: Checkout) -> None:
    payment = underpaid(checkout)
    made = refund(checkout, payment, {"amount": "4", "destination": "0x" + "ab" * 18 + "4e71"})
    assert (made.status, made.json["inReview"]) == (201, False)
    checkout.advance(20)
    [held] = refunds(checkout, payment)["data"]
    assert (held["status"], held["inReview"], held["transactionHash"]) == ("created", True, None)


def test_a_refund_to_several_senders_shows_each_and_is_replayed(checkout: Checkout) -> None:
    payment = checkout.create().json
    other = "0xd8BC79b53BD5BE614dCD5Ee8e12A05f44eDFAd2B"
    checkout.transfer(payment["escrow"]["address"], "10")
    checkout.transfer(other, "5")
    checkout.transfer(payment["escrow"]["address"], "5", **{"from": other})
    checkout.advance(HOUR)
    seen = refund(checkout, payment, {}, key="split")
    assert seen.status == 201, seen.body
    made = seen.json["refunds"]
    assert [(one["destination"], one["amount"]) for one in made] == [
        (other, "5.00"),
        (FAUCET, "10.00"),
    ]
    assert {**made[0], "refunds": made} == seen.json
    assert refund(checkout, payment, {}, key="split").json == seen.json
    listed = refunds(checkout, payment)["data"]
    assert sorted(listed, key=lambda one: str(one["id"])) == sorted(
        made, key=lambda one: str(one["id"])
    )


def test_the_rest_goes_back_without_an_amount_and_then_nothing_is_left(
    checkout: Checkout,
) -> None:
    payment = underpaid(checkout)
    assert refund(checkout, payment, {"amount": "4"}, key="a").status == 201
    beyond = refund(checkout, payment, {"amount": "6.000001", "destination": OUTSIDE}, key="b")
    assert (beyond.status, beyond.code) == (422, "amount_out_of_range")
    assert refund(checkout, payment, key="c").json["amount"] == "6.00"
    more = {"amount": "0.000001", "destination": OUTSIDE}
    nothing = refund(checkout, payment, more, key="d")
    assert (nothing.status, nothing.code) == (422, "amount_out_of_range")
    checkout.advance(20)
    read = checkout.read(payment["id"])
    assert (read["status"], read["refundedAmountAtomic"]) == ("refunded", "10000000")
    over = refund(checkout, payment, key="e")
    assert (over.status, over.code) == (409, "invalid_state")


def test_a_retried_refund_is_the_same_refund(checkout: Checkout) -> None:
    payment = underpaid(checkout)
    first = refund(checkout, payment)
    checkout.advance(20)
    again = refund(checkout, payment)
    assert (again.status, again.body) == (201, first.body)
    assert again.headers["idempotent-replayed"] == "true"
    assert refund(checkout, payment, {"amount": "1"}).code == "idempotency_conflict"
    other = paid(checkout, "1", key="other")
    assert refund(checkout, other).code == "idempotency_conflict"
    assert len(refunds(checkout, payment)["data"]) == 1


def test_after_the_release_the_recipients_vault_pays(checkout: Checkout) -> None:
    payment = paid(checkout, "25")
    assert payment["status"] == "succeeded"
    seen = refund(checkout, payment, {"amount": "5"})
    assert (seen.status, seen.json["source"]) == (201, "vault")
    assert checkout.available(checkout.merchant) == ("20.00", "5000000")
    checkout.advance(20)
    read = checkout.read(payment["id"])
    assert (read["status"], read["refundedAmountAtomic"]) == ("partially_refunded", "5000000")
    assert checkout.available(checkout.merchant) == ("20.00", "0")
    spent = {"type": "vault", "accountId": checkout.merchant}
    body = {
        "intent": "send", "amount": "20", "source": spent,
        "destination": {"type": "wallet", "address": OUTSIDE},
    }  # fmt: skip
    assert checkout.api.call("POST", "/v2/payments", body, key="spend").status == 201
    short = refund(checkout, payment, key="more")
    assert (short.status, short.code) == (422, "insufficient_balance")


def test_refunds_at_once_never_give_back_more_than_came(storage: Storage) -> None:
    checkout = Checkout(storage)
    payment = underpaid(checkout)
    three = {"amount": "3", "destination": OUTSIDE}
    seen = together(8, lambda n: refund(checkout, payment, three, key=f"k{n}"))
    made = [one.json["id"] for one in seen if one.status == 201]
    assert 1 <= len(made) <= 3
    assert {one.status for one in seen} <= {201, 422, 503}
    half = {"amount": "0.5", "destination": OUTSIDE}
    again = together(8, lambda n: refund(checkout, payment, half, key="same"))
    assert len({one.body for one in again if one.status == 201}) == 1
    checkout.advance(20)
    read = checkout.read(payment["id"])
    assert read["refundedAmountAtomic"] == str(3_000_000 * len(made) + 500_000)
    assert len(read["refunds"]) == len(made) + 1


def test_refunds_from_a_vault_at_once_never_spend_its_funds_twice(storage: Storage) -> None:
    checkout = Checkout(storage)
    payments = [paid(checkout, "25", key=f"p{n}") for n in range(2)]
    source = {"type": "vault", "accountId": checkout.merchant}
    to = {"type": "wallet", "address": OUTSIDE}
    body = {"intent": "send", "amount": "20", "source": source, "destination": to}
    assert checkout.api.call("POST", "/v2/payments", body, key="send").status == 201
    seen = together(2, lambda n: refund(checkout, payments[n], key=f"k{n}"))
    assert sorted(one.status for one in seen) == [201, 422]
    assert [one.code for one in seen if one.status == 422] == ["insufficient_balance"]
    checkout.advance(20)
    assert checkout.available(checkout.merchant) == ("5.00", "0")


def test_what_was_released_to_a_wallet_cannot_be_refunded(checkout: Checkout) -> None:
    payment = paid(checkout, "25", destination={"type": "wallet", "address": OUTSIDE})
    assert payment["status"] == "succeeded"
    seen = refund(checkout, payment)
    assert (seen.status, seen.code) == (409, "invalid_state")
    assert "the recipient's own wallet" in seen.json["error"]["message"]


def test_another_destination_needs_a_standard_key(checkout: Checkout) -> None:
    checkout.transfer(SENDER, "10")
    payment = checkout.create().json
    checkout.transfer(payment["escrow"]["address"], "10", **{"from": SENDER})
    checkout.advance(HOUR)
    api = checkout.api
    _, secret = api.service.tenants.create_key(
        api.partition, "restricted", "pay", scopes=["v2:payments"]
    )
    restricted = api.basic(secret)
    elsewhere = {"amount": "1", "destination": OUTSIDE}
    seen = refund(checkout, payment, elsewhere, auth=restricted)
    assert (seen.status, seen.code) == (403, "insufficient_permissions")
    back = {"amount": "1", "destination": SENDER.lower()}
    assert refund(checkout, payment, back, auth=restricted, key="back").status == 201
    given = refund(checkout, payment, elsewhere, key="elsewhere")
    assert (given.status, given.json["destination"]) == (201, OUTSIDE)


def test_an_escrow_is_not_a_destination_of_a_refund(checkout: Checkout) -> None:
    payment = underpaid(checkout)
    own = {"destination": payment["escrow"]["address"]}
    seen = refund(checkout, payment, own)
    assert (seen.status, seen.code) == (422, "destination_not_allowed")


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({"amount": 4}, ["amount"]),
        ({"amount": "1e3"}, ["amount"]),
        ({"amount": "0.0000001"}, ["amount"]),
        ({"destination": "0x12"}, ["destination"]),
        ({"reason": "x" * 513}, ["reason"]),
        ({"amount": "-1", "destination": "", "why": 1}, ["amount", "destination", "why"]),
    ],
)
def test_a_wrong_refund_body_names_its_paths(
    checkout: Checkout, body: dict[str, Any], paths: list[str]
) -> None:
    payment = underpaid(checkout)
    seen = refund(checkout, payment, body)
    assert (seen.status, list(seen.faults)) == (400, paths)
    assert refunds(checkout, payment)["data"] == []


def test_refunds_and_decisions_need_a_key(checkout: Checkout) -> None:
    payment = underpaid(checkout)
    for seen in (
        refund(checkout, payment, key=None),
        reconcile(checkout, payment, "refund", key=None),
    ):
        assert (seen.status, seen.code) == (400, "idempotency_key_required")
    assert refunds(checkout, payment)["data"] == []


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_limit_and_cursor_lead_through_all_refunds_once(checkout: Checkout, limit: int) -> None:
    payment = underpaid(checkout)
    made = []
    for number in range(4):
        made.append(refund(checkout, payment, {"amount": "1"}, key=f"k{number}").json["id"])
        checkout.system.advance(0.001)
    found, query = list[str](), f"?limit={limit}"
    while len(found) < len(made):
        listed = refunds(checkout, payment, query)
        assert listed["limit"] == limit
        found += [item["id"] for item in listed["data"]]
        assert listed["hasNextPage"] == (len(found) < len(made))
        query = f"?limit={limit}&cursor={listed['nextCursor']}"
        # One made meanwhile comes before the first page and shifts nothing.
        refund(checkout, payment, {"amount": "0.1"}, key=f"more-{len(found)}")
    assert found == made[::-1]


# Reconciliation


def test_a_decision_answers_the_payment_whole(checkout: Checkout) -> None:
    payment = underpaid(checkout)
    seen = reconcile(checkout, payment, "accept", note="good enough")
    assert seen.status == 200, seen.body
    assert set(seen.json) == PAYMENT_FIELDS
    assert (seen.json["status"], seen.json["receipts"]) == ("accepted", payment["receipts"])
    assert seen.json["reconciliation"] == {
        "status": "resolved",
        "labels": ["underpaid"],
        "resolution": "accept",
        "resolvedAt": format_iso(checkout.clock.now()),
        "note": "good enough",
    }
    assert seen.json == checkout.read(payment["id"])
    checkout.advance(20)
    assert checkout.read(payment["id"])["status"] == "succeeded"
    assert checkout.available(checkout.merchant) == ("10.00", "0")
    again = reconcile(checkout, payment, "accept", note="good enough")
    assert (again.status, again.body) == (200, seen.body)
    other = reconcile(checkout, payment, "accept", note="another", key="reconcile-accept")
    assert (other.status, other.code) == (409, "idempotency_conflict")


def test_all_that_is_held_goes_back(checkout: Checkout) -> None:
    payment = underpaid(checkout)
    seen = reconcile(checkout, payment, "refund", note="n")
    assert (seen.status, seen.json["status"]) == (200, "action_required")
    checkout.advance(20)
    read = checkout.read(payment["id"])
    assert (read["status"], read["reconciliation"]["resolution"]) == ("refunded", "refund")
    [made] = read["refunds"]
    assert (made["purpose"], made["reason"]) == ("reconcile_refund", "n")


def test_excess_goes_back_and_the_payment_stays(checkout: Checkout) -> None:
    payment = paid(checkout, "30")
    assert (payment["status"], payment["excessAmountAtomic"]) == ("succeeded", "5000000")
    assert payment["reconciliation"]["labels"] == ["overpaid"]
    seen = reconcile(checkout, payment, "refund_excess")
    assert (seen.status, seen.json["status"]) == (200, "succeeded")
    checkout.advance(20)
    read = checkout.read(payment["id"])
    assert (read["status"], read["excessAmountAtomic"]) == ("succeeded", "0")
    assert read["refundedAmountAtomic"] == "5000000"
    assert read["reconciliation"]["resolution"] == "refund_excess"
    assert read["refunds"][0]["destination"] == FAUCET
    again = reconcile(checkout, payment, "refund_excess", key="again")
    assert (again.status, again.code) == (422, "reconciliation_action_not_allowed")


def test_what_is_written_off_can_still_be_refunded_and_stays_written_off(
    checkout: Checkout,
) -> None:
    payment = underpaid(checkout)
    seen = reconcile(checkout, payment, "write_off", note="no answer")
    assert (seen.status, seen.json["status"]) == (200, "failed")
    decided = seen.json["reconciliation"]
    assert (decided["resolution"], decided["note"]) == ("write_off", "no answer")
    assert seen.json["timeline"][-1]["reason"] == "no answer"
    assert refund(checkout, payment).json["amount"] == "10.00"
    checkout.advance(20)
    read = checkout.read(payment["id"])
    assert (read["status"], read["refundedAmountAtomic"]) == ("failed", "10000000")
    assert read["reconciliation"] == decided
    token = checkout.access_token("merchant", "payments:read")
    path = f"/v2/client/me/payments/{payment['id']}"
    own = checkout.api.call("GET", path, auth=f"Bearer {token}")
    assert own.json["reconciliation"] == {k: v for k, v in decided.items() if k != "note"}
    assert "no answer" not in own.body.decode()


def test_a_decision_that_makes_no_sense_is_refused_by_name(checkout: Checkout) -> None:
    payment = underpaid(checkout)
    seen = reconcile(checkout, payment, "retry_execution")
    assert (seen.status, seen.code) == (422, "reconciliation_action_not_allowed")
    assert seen.json["error"]["details"]["action"] == "retry_execution"
    waiting = checkout.create(key="waiting").json
    early = reconcile(checkout, waiting, "accept", key="early")
    assert (early.status, early.code) == (409, "invalid_state")


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({}, ["action"]),
        ({"action": "forgive"}, ["action"]),
        ({"action": None, "note": "x" * 513, "why": 1}, ["action", "note", "why"]),
    ],
)
def test_a_wrong_decision_names_its_paths(
    checkout: Checkout, body: dict[str, Any], paths: list[str]
) -> None:
    payment = underpaid(checkout)
    path = f"/v2/payments/{payment['id']}/reconcile"
    seen = checkout.api.call("POST", path, body, key="k")
    assert (seen.status, list(seen.faults)) == (400, paths)
    assert checkout.read(payment["id"]) == payment


def test_a_cancelled_payment_is_answered_whole(checkout: Checkout) -> None:
    payment = checkout.create().json
    checkout.option(payment)
    checkout.option(payment)
    seen = checkout.api.call("POST", f"/v2/payments/{payment['id']}/cancel")
    assert (seen.status, seen.json["status"]) == (200, "cancelled")
    assert seen.json == checkout.read(payment["id"])
