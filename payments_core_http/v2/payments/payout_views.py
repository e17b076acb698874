"""Payouts as v2 returns them, inside their Payment (contract §7)."""

from __future__ import annotations

from payments_core.banks.rails import Rail
from payments_core.clock import format_iso_or_none
from payments_core.payments.record import Payout
from payments_core_http.v2.statuses import PayoutStatus
from payments_core_http.wire.classes import frozen_view


@frozen_view
class PayoutFailure:
    """Why the bank did not pay: the bank's reason, or why the transfer to the bank failed."""

    reason: str
    """The bank's reason, or why the transfer to the bank failed."""


@frozen_view
class PayoutView:
    """What the bank is asked to pay. `attempt` counts the payouts of the Payment; `reference` is
    the bank's, and `settlesOn` the settlement date of the rail: expected, until it has settled."""

    status: PayoutStatus
    attempt: int
    """The number of this payout of the Payment; each retry is a new payout."""
    bankAccountId: str
    """The bank account that is paid."""
    rail: Rail
    amount: str
    """The amount in the bank's currency, as a decimal string."""
    currency: str
    """The currency that the bank pays."""
    reference: str | None
    """The bank's own id of the payment; null until it has one."""
    settlesOn: str | None
    """The settlement date; an expected date until the payout has settled."""
    returnCode: str | None
    """The bank's code for the return, for example R01; null unless it was returned."""
    failure: PayoutFailure | None
    submittedAt: str | None
    """When the bank was asked to pay; null until then."""
    settledAt: str | None
    returnedAt: str | None
    """When the bank returned the payout; null unless it was returned."""


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
        submittedAt=format_iso_or_none(record.submitted_at_ms),
        settledAt=format_iso_or_none(record.settled_at_ms),
        returnedAt=format_iso_or_none(record.returned_at_ms),
    )
