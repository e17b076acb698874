"""The steps of records, for every state and trigger: what they change, and what they report.

The tables themselves are compared with the contract's in `test_machines.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from payments_core.accounts.record import Account
from payments_core.accounts.verification import lifecycle as kyc
from payments_core.accounts.verification.record import Verification
from payments_core.deposits import lifecycle as deposits
from payments_core.deposits.record import Deposit
from payments_core.engine.state_machine import StateMachine
from payments_core.engine.step import Step
from payments_core.errors import InvalidState
from payments_core.payments import lifecycle as payments
from payments_core.payments.disputes import lifecycle as disputes
from payments_core.payments.disputes.lifecycle import PaymentSession
from payments_core.payments.disputes.record import Dispute
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.mandates import lifecycle as mandates
from payments_core.payments.mandates.record import Mandate
from payments_core.payments.options import lifecycle as options
from payments_core.payments.receipts import lifecycle as receipts
from payments_core.payments.refunds import lifecycle as refunds
from payments_core.payments.transitions import PAYMENT
from payments_core.tenants.authorization import SYSTEM_REQUIREMENT, Authority
from payments_core.tenants.record import Environment
from tests.core import tables
from tests.core.examples import (
    ARRIVED,
    NOW,
    a_payment,
    a_receipt,
    a_refund,
    an_operation,
    an_option,
    stages,
)

LATER = NOW + 500
Lifecycle = Callable[[str, str], Step[Any]]
"""Gives the step of a record in a status by a trigger. Raises InvalidState."""


def payment_step(status: str, trigger: str) -> Step[Any]:
    step = payments.apply_trigger(
        a_payment(status=status, status_version=7), trigger, now=LATER, details=ARRIVED
    )
    assert step.entries == ()
    return step


def option_step(status: str, trigger: str) -> Step[Any]:
    return options.apply_trigger(an_option(status=status), trigger, now=LATER)


def operation_step(status: str, trigger: str) -> Step[Any]:
    operation = an_operation(status=status, status_version=7)
    return funding.apply_trigger(operation, trigger, a_payment(), now=LATER)


def refund_step(status: str, trigger: str) -> Step[Any]:
    refund = a_refund(status=status, status_version=7, from_escrow_atomic=9)
    return refunds.apply_trigger(refund, trigger, a_payment(), now=LATER)


def deposit_step(status: str, trigger: str) -> Step[Any]:
    deposit = a_deposit(status=status, status_version=7)
    return deposits.apply_trigger(deposit, trigger, now=LATER)


def receipt_step(status: str, trigger: str) -> Step[Any]:
    receipt = a_receipt(status=status)
    step: Callable[[], Step[Any]] = {
        "observe": lambda: receipts.mark_reobserved(receipt),
        "verify": lambda: receipts.mark_verified(receipt, 600, LATER),
        "reject": lambda: receipts.mark_rejected(receipt, "wrong_token"),
        "reorg": lambda: receipts.mark_reorged(receipt),
    }[trigger]
    return step()


STEPS: dict[str, tuple[StateMachine, set[tables.Row], Lifecycle]] = {
    "PAYMENT": (PAYMENT, tables.PAYMENT, payment_step),
    "RECEIPT": (receipts.RECEIPT, tables.RECEIPT, receipt_step),
    "OPTION": (options.OPTION, tables.OPTION, option_step),
    "FUNDING_OPERATION": (funding.FUNDING_OPERATION, tables.FUNDING_OPERATION, operation_step),
    "REFUND": (refunds.REFUND, tables.REFUND, refund_step),
    "DEPOSIT": (deposits.DEPOSIT, tables.DEPOSIT, deposit_step),
}


def grid() -> list[tuple[str, str, str]]:
    return [
        (name, state, trigger)
        for name, (machine, _, _) in STEPS.items()
        for state, trigger in itertools.product(
            sorted(machine.states),
            sorted({row.trigger for row in machine.transitions if row.source}),
        )
    ]


@pytest.mark.parametrize(("name", "state", "trigger"), grid())
def test_a_record_steps_as_its_table_says(name: str, state: str, trigger: str) -> None:
    _, table, step = STEPS[name]
    rows = [row for row in table if row[:2] == (state, trigger)]
    if not rows:
        with pytest.raises(InvalidState):
            step(state, trigger)
        return
    [(_, _, target, event, label)] = rows
    taken = step(state, trigger)
    after, events = taken.record, taken.events
    assert after.status == target
    assert [it.name for it in events] == ([event] if event else [])
    assert getattr(after, "updated_at_ms", LATER) == LATER
    assert getattr(after, "status_version", 8) == 8
    assert label is None or label in after.labels
    for reported in events:
        if name == "REFUND" and "refundId" in reported.payload and "labels" in reported.payload:
            assert reported.payload["paymentId"] == a_payment().id  # it says how the Payment is
            continue
        assert (reported.payload["status"], reported.payload["statusVersion"]) == (target, 8)
        assert reported.account_id == "acct_1"


@pytest.mark.parametrize("name", [name for name in STEPS if name != "RECEIPT"])
def test_an_unknown_trigger_is_refused(name: str) -> None:
    machine, _, step = STEPS[name]
    for state in sorted(machine.states):
        with pytest.raises(InvalidState):
            step(state, "jump")


def test_a_receipt_counts_while_it_is_verified() -> None:
    verified = receipts.mark_verified(a_receipt(), 600, LATER).record
    assert (verified.counted_atomic, verified.verified_at_ms) == (600, LATER)
    undone = receipts.mark_reorged(verified).record
    assert (undone.counted_atomic, undone.verified_at_ms) == (0, None)
    rejected = receipts.mark_rejected(a_receipt(), "wrong_amount").record
    assert rejected.rejection_reason == "wrong_amount"
    assert receipts.mark_reorged(rejected).record.rejection_reason is None


def a_deposit(**given: Any) -> Deposit:
    facts: dict[str, Any] = {
        "id": "deposit_1",
        "account_id": "acct_1",
        "deposit_address_id": "deposit_address_1",
        "chain_id": 8453,
        "asset_symbol": "USDC",
        "token_address": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        "decimals": 6,
        "amount_atomic": 5,
        "sender": "0xs",
        "address": "0xd",
        "transaction_hash": "0xh",
        "position": 0,
        "log_index": 0,
        "block_number": 100,
        "block_hash": "0xb",
        "external_user_id": "user-1",
        "api_version": "2026-09-09",
        "created_at_ms": NOW,
        "updated_at_ms": NOW,
    }
    return Deposit(**{**facts, **given})


# Machines whose steps do more than step.

AUTHORITY = Authority(
    requirement=SYSTEM_REQUIREMENT,
    environment=Environment(
        id="env_1",
        app_id="app_1",
        partner_id="acme",
        app_name="Acme",
        mode="sandbox",
        api_version="2026-09-09",
        products=(),
        created_at_ms=NOW,
        updated_at_ms=NOW,
    ),
    api_version="2026-09-09",
)


@pytest.mark.parametrize("trigger", ["start", "approve", "reject"])
@pytest.mark.parametrize("status", sorted(kyc.VERIFICATION.states))
def test_a_verification_takes_its_account_along(status: Any, trigger: str) -> None:
    account = Account(
        id="acct_1",
        partner_id="acme",
        external_user_id="user-1",
        subject_type="individual",
        kyc_status=status,
        created_at_ms=NOW,
        updated_at_ms=NOW,
    )
    verification = Verification(
        id="v",
        account_id="acct_1",
        status=status,
        hosted_url="https://kyc",
        created_at_ms=NOW,
        updated_at_ms=NOW,
    )
    rows = [row for row in tables.KYC if row[:2] == (status, trigger)]
    if not rows:
        with pytest.raises(InvalidState):
            kyc.apply_trigger(verification, trigger, now=LATER)
        return
    stepped = kyc.apply_trigger(verification, trigger, now=LATER).record
    after = kyc.follow(account, stepped, AUTHORITY, now=LATER)
    assert after.record.kyc_status == stepped.status == rows[0][2]
    assert (stepped.hosted_url is None) == (stepped.status != "pending")
    [event] = after.events
    assert (event.name, event.account_id) == (rows[0][3], "acct_1")
    assert after.record.updated_at_ms == stepped.updated_at_ms == LATER


@pytest.mark.parametrize("trigger", ["collect", "revoke"])
@pytest.mark.parametrize("status", sorted(mandates.MANDATE.states))
def test_a_mandate_is_drawn_on_and_revoked_as_its_table_says(status: str, trigger: str) -> None:
    mandate = Mandate(
        id="mandate_1",
        account_id="acct_1",
        vault_id="vault_1",
        chain_id=8453,
        asset_symbol="USDC",
        token_address="0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        decimals=6,
        amount_per_period_atomic=100,
        period="day",
        status="revoked" if status == "revoked" else "active",
        expires_at_ms=NOW if status == "expired" else None,
        created_at_ms=NOW,
        updated_at_ms=NOW,
    )
    assert mandates.status_of(mandate, LATER) == status
    step: Callable[[], Step[Mandate]] = {
        "collect": lambda: mandates.charge(mandate, 1, now=LATER),
        "revoke": lambda: mandates.revoke(mandate, now=LATER),
    }[trigger]
    rows = [row for row in tables.MANDATE if row[:2] == (status, trigger)]
    if rows:
        assert mandates.status_of(step().record, LATER) == rows[0][2]
    else:
        with pytest.raises(InvalidState):
            step()


@pytest.mark.parametrize("status", [None, "flagged", "resolved"])
@pytest.mark.parametrize("trigger", ["flag", "resolve"])
def test_a_dispute_is_flagged_once_and_resolved_once(status: str | None, trigger: str) -> None:
    flagged = Dispute(
        id="ses_1",
        payment_id="payment_1",
        nonce="n",
        status="flagged",
        reason="r",
        created_at_ms=NOW,
    )
    dispute = attrs.evolve(flagged, status=status) if status else None
    session = PaymentSession(stages()["succeeded"].payment, dispute)
    step: Callable[[], Step[Dispute]] = {
        "flag": lambda: disputes.flag(session, "r", None, nonce="n", now=LATER),
        "resolve": lambda: disputes.resolve(session, "won", None, now=LATER),
    }[trigger]
    rows = [row for row in tables.DISPUTE if row[:2] == (status or tables.NEW, trigger)]
    if rows:
        after = step()
        [event] = after.events
        assert (after.record.status, event.name) == (rows[0][2], rows[0][3])
    else:
        with pytest.raises(InvalidState):
            step()
