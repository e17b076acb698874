"""Records as they might be, for tests of the pure functions over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from payments_core.accounts.vaults.record import VaultBalance
from payments_core.engine.step import Step
from payments_core.payments import lifecycle as payments
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.journal.record import JournalBalances
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.receipts import lifecycle as receipts
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Destination, Payment
from payments_core.payments.refunds.plans import RefundLeg
from payments_core.payments.refunds.record import Refund
from tests.shipped import asset_of

NOW = 1_790_000_000_000
USDC = asset_of(8453, "USDC")
ALICE, BOB, CAROL = ("0x" + 40 * digit for digit in "123")
"""Payers; digits have the same checksum in any case."""
"""Senders."""


def a_payment(**given: Any) -> Payment:
    facts: dict[str, Any] = {
        "id": "payment_1",
        "status": "awaiting_payment",
        "status_version": 1,
        "account_id": "acct_1",
        "external_user_id": "user-1",
        "chain_id": 8453,
        "asset_symbol": "USDC",
        "token_address": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        "decimals": 6,
        "amount_atomic": 1_000,
        "destination": Destination(type="account", address="0x1", account_id="acct_1"),
        "escrow_address": "0x2",
        "allowed_methods": ("vault",),
        "session_id": "ses_1",
        "api_version": "2026-09-09",
        "link_code": "sealed",
        "expires_at_ms": NOW + 1_000,
        "monitoring_expires_at_ms": NOW + 2_000,
        "created_at_ms": NOW,
        "updated_at_ms": NOW,
    }
    return Payment(**{**facts, **given})


def an_option(**given: Any) -> PaymentOption:
    facts: dict[str, Any] = {
        "id": "pay_option_1",
        "payment_id": "payment_1",
        "method": "vault",
        "status": "pending",
        "selection_status": "selected",
        "payer_account_id": "acct_2",
        "vault_id": "vault_1",
        "vault_address": "0x3",
        "funding_operation_id": "pay_funding_1",
        "chain_id": 8453,
        "asset_symbol": "USDC",
        "required_atomic": 1_000,
        "action_id": "action_1",
        "action_expires_at_ms": NOW + 300_000,
        "expires_at_ms": NOW + 3_600_000,
        "created_at_ms": NOW,
        "updated_at_ms": NOW,
    }
    return PaymentOption(**{**facts, **given})


def an_operation(**given: Any) -> FundingOperation:
    facts: dict[str, Any] = {
        "id": "pay_funding_1",
        "payment_id": "payment_1",
        "option_id": "pay_option_1",
        "vault_id": "vault_1",
        "status": "awaiting_authorization",
        "status_version": 1,
        "amount_atomic": 1_000,
        "chain_id": 8453,
        "asset_symbol": "USDC",
        "created_at_ms": NOW,
        "updated_at_ms": NOW,
    }
    return FundingOperation(**{**facts, **given})


ARRIVED = dict.fromkeys(("receiptId", "reason", "tokenAddress", "from"), "x")
"""Details of a step that reports misdirected funds, besides the Payment's own fields."""


def a_receipt(amount: int = 1_000, sender: str = ALICE, **given: Any) -> Receipt:
    """A receipt that is seen and waits to be counted."""
    facts: dict[str, Any] = {
        "id": "receipt_1",
        "payment_id": "payment_1",
        "option_id": None,
        "chain_id": 8453,
        "transaction_hash": "0xh",
        "position": 0,
        "log_index": 0,
        "token_address": USDC.address,
        "sender": sender,
        "recipient": "0x2",
        "amount_atomic": amount,
        "block_number": 100,
        "block_hash": "0xb",
        "status": "observed",
        "observed_at_ms": NOW,
    }
    return Receipt(**{**facts, **given})


def a_refund(**given: Any) -> Refund:
    """A refund under way that was asked for."""
    facts: dict[str, Any] = {
        "id": "refund_1",
        "payment_id": "payment_1",
        "purpose": "refund",
        "status": "created",
        "status_version": 1,
        "chain_id": 8453,
        "asset_symbol": "USDC",
        "token_address": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        "decimals": 6,
        "destination": ALICE,
        "outgoing_id": "out_1",
        "created_at_ms": NOW,
        "updated_at_ms": NOW,
    }
    return Refund(**{**facts, **given})


def counted(
    payment: Payment,
    receipt: Receipt,
    attempt: str = "",
    *,
    now: int = NOW,
    paid_at: int | None = None,
) -> tuple[Step[Payment], Receipt]:
    """What a verified receipt makes of the Payment, and the receipt as it is stored then.

    Without `paid_at` it is in a block of `now`.
    """
    came_at = now if paid_at is None else paid_at
    change = payments.apply_receipt(
        payment, receipt, attempt or receipt.id, now=now, paid_at=came_at
    )
    part = change.record.counted_atomic - payment.counted_atomic
    return change, receipts.mark_verified(receipt, part, now).record


def releasing(payment: Payment, id: str = "out_1") -> Payment:
    """The Payment with its release prepared, as the commit that covers it leaves it."""
    assert payment.release_id is None
    return attrs.evolve(payment, release_id=id, released_atomic=payment.releasable_atomic)


def books_of(**accounts: int) -> JournalBalances:
    """Books in which the payer stands for what the other accounts hold."""
    return JournalBalances(payer=-sum(accounts.values()), **accounts)


def a_balance(**given: Any) -> VaultBalance:
    return VaultBalance(**{"id": "vault_1/USDC", "asset_id": USDC.id, **given})


@attrs.frozen
class Stage:
    """A Payment somewhere on its way, and the receipts that it counted."""

    payment: Payment
    receipts: tuple[Receipt, ...] = ()

    def counting(self, amount: int, sender: str = ALICE, *, now: int = NOW) -> Stage:
        """The stage after a further receipt."""
        number = len(self.receipts) + 1
        receipt = a_receipt(amount, sender, id=f"receipt_{number}", payment_id=self.payment.id)
        change, stored = counted(self.payment, receipt, now=now)
        return Stage(change.record, (*self.receipts, stored))

    def after(self, step: Callable[..., Any], *arguments: Any, **more: Any) -> Stage:
        """The stage after a function that gives a Payment or a Step."""
        after = step(self.payment, *arguments, **{"now": NOW, **more})
        return attrs.evolve(self, payment=after.record if isinstance(after, Step) else after)


def stages(fresh: Payment | None = None) -> dict[str, Stage]:
    """A Payment of 1,000 in each status, in each way that matters; the name begins with it.

    They are reached by the steps that lead there, so that books and labels are as they would be.
    """
    half = {"now": (fresh or a_payment()).expires_at_ms + 1}
    late = {"now": (fresh or a_payment()).monitoring_expires_at_ms + 1}
    waiting = Stage(fresh or a_payment())
    part = waiting.counting(600)
    covered = waiting.counting(1_000)
    accepted = attrs.evolve(covered, payment=releasing(covered.payment))
    over = waiting.counting(1_300)
    executing = accepted.after(payments.apply_trigger, "release")
    succeeded = executing.after(payments.settle)
    overpaid = attrs.evolve(over, payment=releasing(over.payment)).after(
        payments.apply_trigger, "release"
    )
    short = part.after(payments.expire)
    expired, cancelled = waiting.after(payments.expire), waiting.after(payments.cancel)
    return {
        "awaiting_payment": waiting,
        "awaiting_payment, part received": part,
        "processing": waiting.after(payments.authorize, "pay_funding_1"),
        "processing, part received": part.after(payments.authorize, "pay_funding_1"),
        "processing, a transfer seen": waiting.after(payments.add_pending_transfer, "evidence_1"),
        "accepted": accepted,
        "executing": executing,
        "succeeded": succeeded,
        "succeeded, overpaid": overpaid.after(payments.settle),
        "partially_refunded": succeeded.after(
            payments.apply_refund, "refund_part", "refund_1", ALICE, recipient=400
        ),
        "refunded": succeeded.after(
            payments.apply_refund, "refund_all", "refund_1", ALICE, recipient=1_000
        ),
        "refunded, never released": short.after(
            payments.apply_refund, "reconcile_refund", "refund_1", ALICE, escrow=600
        ),
        "action_required, short": short,
        "action_required, late": expired.counting(1_000, **half),
        "action_required, overpaid": cancelled.counting(1_300, **half),
        "action_required, release failed": executing.after(
            payments.fail_release, "transaction_failed"
        ),
        "action_required, reorged": attrs.evolve(accepted, receipts=()).after(
            payments.reverse_receipt, accepted.receipts[0], release_stopped=True
        ),
        "failed": short.after(payments.write_off),
        "expired": expired,
        "expired, received after the window": expired.counting(1_000, **late),
        "cancelled": cancelled,
        "cancelled, received after the window": cancelled.counting(1_000, **late),
    }


def send_stages(fresh: Payment) -> dict[str, Stage]:
    """The same of a send, which has no escrow and no receipts."""
    sending = Stage(fresh)
    executing = sending.after(payments.apply_trigger, "submit")
    return {
        "processing, a send": sending,
        "executing, a send": executing,
        "succeeded, a send": executing.after(payments.settle),
        "action_required, a send": executing.after(payments.fail_release, "transaction_failed"),
    }


def collect_stages(fresh: Payment) -> dict[str, Stage]:
    """The same of a collect before it has received anything."""
    drawn = Stage(fresh)
    failed = drawn.after(payments.fail_attempt, fresh.authorized[0], reason="transaction_failed")
    return {"processing, a collect": drawn, "action_required, a collect": failed}


def held(*receipts: tuple[int, str], amount: int = 1_000) -> Payment:
    """A Payment that was cancelled and then received this: all of it lies in escrow."""
    stage = Stage(a_payment(amount_atomic=amount)).after(payments.cancel)
    for part, sender in receipts:
        stage = stage.counting(part, sender, now=NOW)
    return stage.payment


def settled(*receipts: tuple[int, str]) -> Payment:
    """The same released to the recipient."""
    payment = releasing(payments.accept(held(*receipts), now=NOW).record)
    return payments.settle(
        payments.apply_trigger(payment, "release", now=NOW).record, now=NOW
    ).record


def refund_of(part: RefundLeg, **given: object) -> Refund:
    sources = {
        "from_escrow_atomic": part.from_escrow_atomic,
        "from_excess_atomic": part.from_excess_atomic,
        "from_recipient_atomic": part.from_recipient_atomic,
    }
    return a_refund(destination=part.to, **sources, **given)
