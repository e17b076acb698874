"""The status of a session, and the lifecycle of a dispute (contract §6). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Literal, cast

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.clock import Instant
from payments_core.engine.events import NewEvent
from payments_core.engine.state_machine import StateMachine, Transition
from payments_core.engine.step import Step
from payments_core.errors import InvalidState
from payments_core.evolve import evolve
from payments_core.field_views import FieldView, instant_view
from payments_core.payments.disputes.record import Dispute, DisputeStatus, Resolution
from payments_core.payments.record import Payment

PaymentSessionStatus = Literal[
    "open", "pending", "routing", "settled", "refunded", "failed", "expired"
]

PAYMENT_SESSION_STATUSES: Mapping[str, PaymentSessionStatus] = {
    "awaiting_payment": "open",
    "processing": "pending",
    "accepted": "routing",
    "executing": "routing",
    "action_required": "routing",
    "succeeded": "settled",
    "partially_refunded": "settled",
    "refunded": "refunded",
    "failed": "failed",
    "cancelled": "expired",
    "expired": "expired",
}
"""The status of a session, by that of its Payment. A dispute does not change it."""

DISPUTE = StateMachine(
    "dispute",
    (
        Transition(
            None,
            "flag",
            "flagged",
            emits="dispute.flagged",
            why="The session is settled and was never disputed.",
        ),
        Transition(
            "flagged",
            "resolve",
            "resolved",
            emits="dispute.resolved",
            why="The partner recorded the outcome: won, lost or withdrawn.",
        ),
    ),
    terminal=("resolved",),
)


@attrs.frozen
class PaymentSession:
    """A receive Payment seen as a session, with its dispute if there is one.

    >>> shop.sessions.read(paid.session_id).payment.id == paid.id
    True
    """

    __repr__ = brief_repr

    payment: Payment
    dispute: Dispute | None = None

    @property
    def id(self) -> str:
        """The session's id, which is not the Payment's."""
        return self.payment.session_id

    @property
    def status(self) -> PaymentSessionStatus:
        """The Payment's status in the older vocabulary."""
        return PAYMENT_SESSION_STATUSES[self.payment.status]

    @property
    def updated_at_ms(self) -> Instant:
        """When the Payment or the dispute last changed."""
        if self.dispute is None:
            return self.payment.updated_at_ms
        changed_at = self.dispute.resolved_at_ms or self.dispute.created_at_ms
        return max(self.payment.updated_at_ms, changed_at)

    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")


def flag(
    session: PaymentSession, reason: str, description: str | None, *, nonce: str, now: Instant
) -> Step[Dispute]:
    """A new dispute; `nonce` is unique to this call.

    Raises InvalidState if the session is not settled or was disputed before.
    """
    row = DISPUTE.step(session.dispute.status if session.dispute else None, "flag")
    if session.status != "settled":
        raise InvalidState("session", session.status, "dispute")
    dispute = Dispute(
        id=session.id,
        payment_id=session.payment.id,
        nonce=nonce,
        status=cast(DisputeStatus, row.target),
        reason=reason,
        description=description,
        created_at_ms=now,
    )
    return Step(dispute, (_build_event(row, dispute, session.payment),))


def resolve(
    session: PaymentSession, resolution: Resolution, note: str | None, *, now: Instant
) -> Step[Dispute]:
    """The dispute, resolved.

    Raises InvalidState if there is no dispute, or if it is already resolved.
    """
    if session.dispute is None:
        raise InvalidState("session", "undisputed", "resolve")
    row = DISPUTE.step(session.dispute.status, "resolve")
    dispute = evolve(
        session.dispute,
        status=cast(DisputeStatus, row.target),
        resolution=resolution,
        note=note,
        resolved_at_ms=now,
    )
    return Step(dispute, (_build_event(row, dispute, session.payment),))


def _build_event(row: Transition, dispute: Dispute, payment: Payment) -> NewEvent:
    return NewEvent(
        str(row.emits),
        {"sessionId": dispute.id, "paymentId": payment.id, "status": dispute.status},
        payment.api_version,
        payment.account_id,
        payment.external_user_id,
    )
