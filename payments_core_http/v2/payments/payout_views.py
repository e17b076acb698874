"""Payouts as v2 returns them, inside their Payment (contract §7)."""

from __future__ import annotations

from payments_core.banks.rails import Rail
from payments_core.clock import format_iso_or_none
from payments_core.payments.payouts.record import Payout
from payments_core_http.v2.statuses import PayoutStatus
from payments_core_http.wire.classes import frozen_view


@frozen_view
class PayoutFailure:
    """Why the bank did not pay: the bank's reason, or why the transfer to the bank failed."""

    reason: str


@frozen_view
class PayoutView:
    """What the bank is asked to pay. `attempt` counts the payouts of the Payment; `reference` is
    the bank's, and `settlesOn` the settlement date of the rail: expected, until it has settled."""

    status: PayoutStatus
    attempt: int
    bankAccountId: str
    rail: Rail
    amount: str
    currency: str
    reference: str | None
    settlesOn: str | None
    returnCode: str | None
    failure: PayoutFailure | None
    submittedAt: str | None
    settledAt: str | None
    returnedAt: str | None


def payout(record: Payout) -> PayoutView:
    """A payout."""
    return PayoutView(
        status=record.status,
        attempt=record.attempt,
        bankAccountId=record.bank_account_id,
        rail=record.rail,
        amount=f"{record.amount_cents // 100}.{record.amount_cents % 100:02d}",
        currency="usd",
        reference=record.reference,
        settlesOn=record.settles_on,
        returnCode=record.return_code,
        failure=PayoutFailure(reason=record.failure) if record.failure else None,
        submittedAt=format_iso_or_none(record.submitted_at),
        settledAt=format_iso_or_none(record.settled_at),
        returnedAt=format_iso_or_none(record.returned_at),
    )
