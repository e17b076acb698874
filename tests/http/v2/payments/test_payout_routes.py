"""Sends to bank accounts over WSGI, with the bank routes of the sandbox."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.checkout import Checkout
from tests.http.payment_bodies import BANK, BANK_ACCOUNT, create, receive, send

NO_PAYMENT = "payment_" + "A" * 24


class Counter:
    """A payer over HTTP whose bank account can be paid."""

    def __init__(self) -> None:
        self.checkout = Checkout(MemoryStorage(), funds="1000.00")
        self._keys = count()
        account = f"/v2/accounts/{self.checkout.payer}"
        self.sandbox(f"accounts/{self.checkout.payer}/kyc", {"status": "approved"})
        self.post(f"{account}/capability-activations", {"capability": "us_bank_payout"}, 202)
        self.sandbox("run", {})
        self.sandbox("clock", {"advanceSeconds": 60})
        self.account = self.post(f"{account}/bank-accounts", BANK_ACCOUNT, 201)["id"]
        self.sandbox("run", {})
        self.sandbox("clock", {"advanceSeconds": 60})

    def call(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        return self.checkout.api.call(method, path, body, key=key)

    def post(self, path: str, body: Any, status: int = 200) -> Any:
        seen = self.call("POST", path, body)
        assert seen.status == status, seen.body
        return seen.json

    def sandbox(self, path: str, body: Any) -> Any:
        return self.post(f"/v2/sandbox/{path}", body)

    def send(self, **changes: Any) -> Any:
        to = {**BANK, "bankAccountId": self.account, **changes}
        body = send(self.checkout, amount="25.00", destination=to)
        return create(self.checkout, body, key=f"send-{next(self._keys)}")

    def at_bank(self, **changes: Any) -> str:
        """The id of a Payment whose payout the bank has."""
        id: str = self.send(**changes).json["id"]
        self.sandbox("run", {})
        self.sandbox("clock", {"advanceSeconds": 30})
        assert self.read(id)["payout"]["status"] == "submitted"
        return id

    def read(self, id: str) -> Any:
        return self.call("GET", f"/v2/payments/{id}").json

    def decide(self, id: str, body: Any, key: str | None = None) -> Any:
        return self.call("POST", f"/v2/sandbox/payouts/{id}", body, key)


@pytest.fixture(scope="module")
def counter() -> Counter:
    return Counter()


def test_a_payout_is_shown_inside_its_payment(counter: Counter) -> None:
    seen = counter.send(achReference="invoice 7")
    assert seen.status == 201, seen.body
    created = seen.json
    assert "clientSecret" not in created
    assert (created["status"], created["escrow"], created["paymentUrl"]) == (
        "processing", None, None,
    )  # fmt: skip
    assert created["destination"] == {
        "type": "bank_account",
        "accountId": counter.checkout.payer,
        "externalUserId": created["externalUserId"],
        "paymentAddress": None,
        "address": created["destination"]["address"],
        "bankAccountId": counter.account,
        "rail": "ach",
        "achReference": "invoice 7",
        "wireMessage": None,
    }
    assert created["payout"] == {
        "status": "created",
        "attempt": 1,
        "bankAccountId": counter.account,
        "rail": "ach",
        "amount": "25.00",
        "currency": "usd",
        "reference": None,
        "settlesOn": None,
        "returnCode": None,
        "failure": None,
        "submittedAt": None,
        "settledAt": None,
        "returnedAt": None,
    }
    cancelled = counter.post(f"/v2/payments/{created['id']}/cancel", None)
    assert (cancelled["status"], cancelled["payout"]["status"]) == ("cancelled", "cancelled")


def test_the_bank_settles_and_returns_when_the_sandbox_says_so(counter: Counter) -> None:
    id = counter.at_bank()
    settled = counter.decide(id, {"outcome": "settle"}).json
    assert (settled["paymentId"], settled["status"], settled["payout"]["status"]) == (
        id, "succeeded", "settled",
    )  # fmt: skip
    assert counter.read(id)["settledAmountAtomic"] == "25000000"
    returned = counter.decide(id, {"outcome": "return", "code": "R02"}, key="return-1")
    assert returned.status == 200, returned.body
    assert (returned.json["status"], returned.json["payout"]["returnCode"]) == (
        "action_required", "R02",
    )  # fmt: skip
    again = counter.decide(id, {"outcome": "return", "code": "R02"}, key="return-1")
    assert again.body == returned.body
    payment = counter.read(id)
    assert payment["reconciliation"]["labels"] == ["returned"]
    assert payment["failure"] == {"reason": "payout_returned"}

    reconciled = counter.call(
        "POST", f"/v2/payments/{id}/reconcile", {"action": "refund", "note": "closed"}, key="r"
    ).json
    [refund] = reconciled["refunds"]
    assert (refund["source"], refund["amount"]) == ("escrow", "25.00")
    assert refund["destination"] == payment["source"]["address"]
    counter.sandbox("run", {})
    counter.sandbox("clock", {"advanceSeconds": 60})
    assert counter.read(id)["status"] == "refunded"
    journal = counter.call("GET", f"/v2/payments/{id}/receipts").json["journal"]
    assert set(journal["balances"].values()) == {"0"}
    assert [entry["cause"] for entry in journal["entries"]] == [
        "send", "payout_submitted", "payout_settled", "payout_returned", "refund",
    ]  # fmt: skip


def test_a_return_without_a_code_has_one_and_a_retry_is_another_payout(counter: Counter) -> None:
    id = counter.at_bank()
    returned = counter.decide(id, {"outcome": "return"}).json
    assert (returned["status"], returned["payout"]["returnCode"]) == ("action_required", "R03")
    body = {"action": "retry_execution"}
    retried = counter.call("POST", f"/v2/payments/{id}/reconcile", body, key="retry").json
    assert (retried["status"], retried["payout"]["status"], retried["payout"]["attempt"]) == (
        "executing", "created", 2,
    )  # fmt: skip
    counter.sandbox("run", {})
    assert counter.decide(id, {"outcome": "settle"}).json["status"] == "succeeded"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"outcome": "return", "code": "R30"}, 400, "validation_error"),
        ({"outcome": "return", "code": "R1"}, 400, "validation_error"),
        ({"outcome": "settle", "code": "R03"}, 400, "validation_error"),
        ({"outcome": "lose"}, 400, "validation_error"),
    ],
)
def test_a_decision_that_no_bank_makes_is_refused(
    counter: Counter, body: Any, status: int, code: str
) -> None:
    seen = counter.decide(NO_PAYMENT, body)
    assert (seen.status, seen.code) == (status, code), seen.body


def test_only_a_payout_at_the_bank_can_be_decided(counter: Counter) -> None:
    assert counter.decide(NO_PAYMENT, {"outcome": "settle"}).status == 404
    created = counter.send().json["id"]
    seen = counter.decide(created, {"outcome": "settle"})
    assert (seen.status, seen.code) == (409, "invalid_state")
    counter.post(f"/v2/payments/{created}/cancel", None)
    received = create(counter.checkout, receive(counter.checkout), key="receive").json
    seen = counter.decide(received["id"], {"outcome": "settle"})
    assert (seen.status, seen.code) == (409, "invalid_state")


def test_what_the_rails_do_not_allow_is_a_conflict(counter: Counter) -> None:
    id = counter.at_bank()
    assert counter.decide(id, {"outcome": "return"}).status == 200
    seen = counter.decide(id, {"outcome": "settle"})
    assert (seen.status, seen.code) == (409, "conflict")
    assert "has been returned" in seen.json["error"]["message"]


def test_the_bank_can_be_made_to_fail(counter: Counter) -> None:
    for operation in ("submit", "find_payout"):
        body = {"dependency": "bank", "operation": operation}
        assert counter.sandbox("failures", body)["times"] == 1
    id = counter.at_bank()
    assert counter.decide(id, {"outcome": "return"}).status == 200


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"bankAccountId": "bank_account_" + "A" * 24}, 404, "not_found"),
        ({"rail": "wire", "achReference": "x"}, 400, "validation_error"),
    ],
)
def test_a_payout_that_cannot_be_made_is_refused(
    counter: Counter, changes: Any, status: int, code: str
) -> None:
    seen = counter.send(**changes)
    assert (seen.status, seen.code) == (status, code)


def test_fractions_of_a_cent_are_refused(counter: Counter) -> None:
    to = {**BANK, "bankAccountId": counter.account}
    seen = create(counter.checkout, send(counter.checkout, amount="0.001", destination=to))
    assert (seen.status, seen.code) == (422, "amount_out_of_range")
