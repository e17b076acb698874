"""Refunds as v2 returns them (contract §6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from payments_core.clock import format_iso, format_iso_or_none
from payments_core.money import format_amount
from payments_core.payments.refunds.record import Purpose, Refund
from payments_core_http.v2.statuses import RefundStatus
from payments_core_http.wire.classes import frozen_view


@frozen_view
class RefundFailure:
    """Why a refund failed."""

    reason: str
    """Why it failed."""


@frozen_view
class RefundView:
    """One transfer back: from the escrow or from the recipient's vault. The off-ramp address, from
    which a payout that the bank did not pay goes back, is an escrow too."""

    id: str
    refundId: str
    paymentId: str
    amount: str
    """How much goes back, as a decimal string."""
    amountAtomic: str
    assetSymbol: str
    chainId: int
    source: Literal["escrow", "vault"]
    """Whether it comes from the escrow or from the recipient's vault."""
    destination: str
    """The address that gets it."""
    reason: str | None
    purpose: Purpose
    """What it was made for: a requested refund, or a decision of a reconciliation."""
    status: RefundStatus
    statusVersion: int
    inReview: bool
    """Whether screening holds it: it is not sent before its destination is clear."""
    transactionHash: str | None
    failure: RefundFailure | None
    createdAt: str
    updatedAt: str
    succeededAt: str | None


@frozen_view
class CreatedRefundView(RefundView):
    """A new refund; `refunds` lists all that the request made, this one first.

    There are several if the funds came from several senders and no destination was named.
    """

    refunds: tuple[RefundView, ...]
    """All refunds that the request made, this one first."""


def created_refunds(records: Sequence[Refund]) -> CreatedRefundView:
    """The refunds that one request made."""
    views = tuple(map(refund, records))
    return CreatedRefundView(**vars(views[0]), refunds=views)


def refund(record: Refund) -> RefundView:
    """A refund."""
    return RefundView(
        id=record.id,
        refundId=record.id,
        paymentId=record.payment_id,
        amount=format_amount(record.amount_atomic, record.asset.decimals),
        amountAtomic=str(record.amount_atomic),
        assetSymbol=record.asset_symbol,
        chainId=record.chain_id,
        source="escrow" if record.vault_id is None else "vault",
        destination=record.destination,
        reason=record.reason,
        purpose=record.purpose,
        status=record.status,
        statusVersion=record.status_version,
        inReview=record.in_review,
        transactionHash=record.transaction_hash,
        failure=RefundFailure(reason=record.failure) if record.failure else None,
        createdAt=format_iso(record.created_at_ms),
        updatedAt=format_iso(record.updated_at_ms),
        succeededAt=format_iso_or_none(record.succeeded_at_ms),
    )
