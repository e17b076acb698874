"""Sessions and disputes as v2 returns them (interface "Session (dispute)")."""

from __future__ import annotations

from typing import ClassVar, Literal

from payments_core.clock import format_iso, format_iso_or_none
from payments_core.money import format_amount
from payments_core.payments.disputes.lifecycle import PaymentSession, PaymentSessionStatus
from payments_core.payments.disputes.record import Dispute, DisputeStatus, Resolution
from payments_core_http.wire.classes import frozen_view


@frozen_view
class FlaggedDisputeView:
    """A dispute that was just flagged, with these fields and no others."""

    closed: ClassVar[bool] = True

    status: DisputeStatus
    reason: str
    """What is disputed."""
    description: str | None
    """The text of the person who flagged it; null without one."""
    createdAt: str


@frozen_view
class FlaggedSessionView:
    """A session whose dispute was just flagged, with these fields and no others."""

    closed: ClassVar[bool] = True

    object: Literal["session"] = "session"
    id: str
    status: PaymentSessionStatus
    """The Payment's state, with the older names."""
    dispute: FlaggedDisputeView
    requestId: str


@frozen_view
class DisputeView:
    """A dispute; the fields of its resolution are null until then."""

    status: DisputeStatus
    reason: str
    """What is disputed."""
    description: str | None
    """The text of the person who flagged it; null without one."""
    createdAt: str
    resolution: Resolution | None
    note: str | None
    """The note of the person who resolved it; null without one."""
    resolvedAt: str | None


@frozen_view
class SessionView:
    """A session with all its fields."""

    object: Literal["session"] = "session"
    id: str
    status: PaymentSessionStatus
    """The Payment's state, with the older names."""
    paymentId: str
    amount: str
    amountAtomic: str
    assetSymbol: str
    decimals: int
    chainId: int
    dispute: DisputeView | None
    requestId: str
    createdAt: str
    updatedAt: str


def session(found: PaymentSession, request_id: str) -> SessionView:
    """A session with its dispute, if it has one."""
    payment = found.payment
    asset = payment.asset
    return SessionView(
        id=found.id,
        status=found.status,
        paymentId=payment.id,
        amount=format_amount(payment.amount_atomic, asset.decimals),
        amountAtomic=str(payment.amount_atomic),
        assetSymbol=asset.symbol,
        decimals=asset.decimals,
        chainId=asset.chain_id,
        dispute=_dispute(found.dispute) if found.dispute else None,
        requestId=request_id,
        createdAt=format_iso(payment.created_at_ms),
        updatedAt=format_iso(found.updated_at_ms),
    )


def flagged_session(found: PaymentSession, request_id: str) -> FlaggedSessionView:
    """The response of a flagging."""
    dispute = found.dispute
    assert dispute is not None
    return FlaggedSessionView(
        id=found.id,
        status=found.status,
        dispute=FlaggedDisputeView(
            status=dispute.status,
            reason=dispute.reason,
            description=dispute.description,
            createdAt=format_iso(dispute.created_at_ms),
        ),
        requestId=request_id,
    )


def _dispute(record: Dispute) -> DisputeView:
    return DisputeView(
        status=record.status,
        reason=record.reason,
        description=record.description,
        createdAt=format_iso(record.created_at_ms),
        resolution=record.resolution,
        note=record.note,
        resolvedAt=format_iso_or_none(record.resolved_at_ms),
    )
