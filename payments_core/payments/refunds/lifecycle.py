"""The states of a refund, and who gets how much back out of what. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from payments_core.clock import Instant
from payments_core.engine.events import Happening
from payments_core.engine.state_machine import Machine, Transition, rows
from payments_core.engine.step import Step
from payments_core.errors import (
    AmountOutOfRange,
    InvalidState,
    ReconciliationActionNotAllowed,
    ValidationFailed,
)
from payments_core.money import format_amount
from payments_core.payments.machine import PAYMENT
from payments_core.payments.record import PaidBy, Payment
from payments_core.payments.refunds.record import UNFINISHED, Refund

REFUND = Machine(
    "refund",
    (
        Transition(
            None,
            "create",
            "created",
            emits="refund.created",
            why="The amount is set aside; nothing has moved.",
        ),
        Transition("created", "submit", "submitted", why="The transfer back was sent."),
        Transition(
            "submitted",
            "confirm",
            "succeeded",
            emits="refund.succeeded",
            why="The transfer back is proven and final.",
        ),
        *rows(
            ("submitted",),
            "fail",
            "failed",
            emits="refund.failed",
            why="The transfer back failed for good; the amount can be refunded again.",
        ),
        Transition(
            "succeeded",
            "reorg",
            "failed",
            emits="refund.failed",
            why="A reorg beyond finality undid it, and it failed when it was sent again.",
        ),
    ),
    terminal=("failed",),
)

HELD = ("action_required", "expired", "cancelled", "failed")
"""The states in which what was received lies in escrow, with no release under way."""

RELEASED = ("succeeded", "partially_refunded")
"""The states in which the recipient has the funds."""


MOST_PARTS = 50
"""So many senders get their own back at once; what is left is refunded by another call."""


@attrs.frozen(kw_only=True)
class Part:
    """One transfer back: to whom, and out of which accounts of the books."""

    to: str
    from_escrow: int = 0
    from_excess: int = 0
    from_recipient: int = 0

    @property
    def amount(self) -> int:
        """What goes back."""
        return self.from_escrow + self.from_excess + self.from_recipient


@attrs.frozen
class Share:
    """What a sender has sent and not got back; `excess` is the part of it that was too much."""

    address: str
    amount: int
    excess: int


@attrs.frozen
class Left:
    """What can still go back: the books and the senders, less the refunds under way.

    `received` is the most that can go back in all. An account of the books that a reorg has left
    below zero takes from the other. The newest sender comes first.
    """

    escrow: int
    excess: int
    recipient: int
    received: int
    shares: tuple[Share, ...]

    @property
    def held(self) -> int:
        """What lies in escrow and is promised to nobody."""
        return self.escrow + self.excess

    def share_of(self, address: str) -> Share:
        """What an address has sent; nothing, for a stranger."""
        return next(
            (share for share in self.shares if share.address == address), Share(address, 0, 0)
        )


def left_of(payment: Payment, refunds: Sequence[Refund]) -> Left:
    """What of a Payment can still go back, and to whom."""
    under_way = [refund for refund in refunds if refund.status in UNFINISHED]
    escrow = payment.books.escrow - sum(refund.from_escrow for refund in under_way)
    excess = payment.books.excess - sum(refund.from_excess for refund in under_way)
    recipient = payment.books.recipient - sum(refund.from_recipient for refund in under_way)
    promised = sum(refund.amount for refund in under_way)
    held = max(0, escrow + excess)
    excess = min(max(0, excess), held)
    if payment.status in (*RELEASED, "refunded"):  # no release will ever take it
        excess = held
    shares = [_share(item, under_way) for item in reversed(payment.paid_by)]
    return Left(
        held - excess,
        excess,
        max(0, recipient),
        max(0, payment.received - payment.refunded - promised),
        tuple(share for share in shares if share.amount > 0),
    )


def _share(paid: PaidBy, under_way: Sequence[Refund]) -> Share:
    its = [refund for refund in under_way if refund.destination == paid.address]
    amount = paid.amount - sum(refund.amount for refund in its)
    excess = paid.excess - sum(refund.from_excess for refund in its)
    return Share(paid.address, amount, min(max(0, excess), max(0, amount)))


def plan(payment: Payment, left: Left, amount: int | None, destination: str | None) -> Part:
    """The refund that was asked for: from escrow while the funds are held, else the recipient's.

    Without an amount it is all that can go back to that destination; without a destination it
    goes to whoever sent the funds. Raises InvalidState, AmountOutOfRange, ValidationFailed.
    """
    if payment.intent == "send":
        raise InvalidState("payment", payment.status, "refund")
    if payment.status in HELD and payment.release_id is None:
        most = left.held
    elif payment.status in RELEASED and payment.destination.account_id is not None:
        most = min(left.recipient, left.received)
    else:  # not received, on its way, or released to an outside wallet
        raise InvalidState("payment", payment.status, "refund")
    if not most or (amount is not None and not 0 < amount <= most):
        raise _beyond(payment, most)
    share = _named(payment, left, amount, destination)
    own = own_part(payment, share) if share.amount else most  # a stranger may get anything
    wanted = min(most, own) if amount is None else amount
    if not wanted:
        raise _beyond(payment, 0)
    if payment.status in RELEASED:
        return Part(to=share.address, from_recipient=wanted)
    return _held_part(left, share, wanted)


def _beyond(payment: Payment, most: int) -> AmountOutOfRange:
    text = format_amount(most, payment.asset.decimals)
    return AmountOutOfRange(f"at most {text} can be refunded")


def own_part(payment: Payment, share: Share) -> int:
    """How much of a refund is the sender's own: the recipient's vault has none of the excess."""
    return share.amount - share.excess if payment.status in RELEASED else share.amount


def plan_all_held(left: Left) -> tuple[Part, ...]:
    """All that is held, back to its senders. Raises ReconciliationActionNotAllowed.

    What came from senders that are not known stays; it can be refunded to a destination by name.
    """
    if not left.held:
        raise ReconciliationActionNotAllowed("refund", "nothing is held")
    _require_enough(sum(share.amount for share in left.shares), left.held, "refund")
    parts = []
    for share in _largest(left.shares):
        part = _held_part(left, share, min(share.amount, left.held))
        left = attrs.evolve(
            left, escrow=left.escrow - part.from_escrow, excess=left.excess - part.from_excess
        )
        parts.append(part)
    return _some(parts, "refund")


def plan_excess(left: Left) -> tuple[Part, ...]:
    """The excess, back to whoever sent it. Raises ReconciliationActionNotAllowed."""
    if not left.excess:
        raise ReconciliationActionNotAllowed("refund_excess", "there is no excess")
    _require_enough(sum(share.excess for share in left.shares), left.excess, "refund_excess")
    parts, excess = [], left.excess
    for share in _largest(left.shares):
        amount = min(share.excess, excess)
        parts.append(Part(to=share.address, from_excess=amount))
        excess -= amount
    return _some(parts, "refund_excess")


def _named(payment: Payment, left: Left, amount: int | None, destination: str | None) -> Share:
    """The share of whom the refund goes to: the newest sender's who has something to claim."""
    if destination is not None:
        return left.share_of(destination)
    claims = [share for share in left.shares if own_part(payment, share)]
    if not claims:
        raise ValidationFailed.at("destination", "is needed: no sender is known")
    if (len(claims) > 1 and amount is None) or (amount or 0) > own_part(payment, claims[0]):
        raise ValidationFailed.at("destination", "is needed: no one sender has sent so much")
    return claims[0]


def _held_part(left: Left, share: Share, amount: int) -> Part:
    """Out of what is held: first what this sender sent too much, then escrow, then other excess."""
    too_much = min(share.excess, left.excess, amount)
    from_escrow = min(amount - too_much, left.escrow)
    return Part(to=share.address, from_escrow=from_escrow, from_excess=amount - from_escrow)


def _largest(shares: Sequence[Share]) -> Sequence[Share]:
    """Those with most, in the order given: dust makes no real payer wait."""
    kept = sorted(shares, key=lambda share: share.amount, reverse=True)[:MOST_PARTS]
    return [share for share in shares if share in kept]


def _require_enough(owed: int, there: int, action: str) -> None:
    """Raise where not every sender can have his own: one must not be paid with another's.

    So it is after a refund to somebody who had sent nothing, or where a reorg took some away.
    """
    if owed > there:
        raise ReconciliationActionNotAllowed(
            action, "less is there than was sent; refund to destinations that you name"
        )


def _some(parts: Sequence[Part], action: str) -> tuple[Part, ...]:
    """The parts that are not empty; there is one at least."""
    some = tuple(part for part in parts if part.amount)
    if not some:
        raise ReconciliationActionNotAllowed(
            action, "no sender is known; refund to destinations that you name"
        )
    return some


def created(refund: Refund, payment: Payment) -> Step[Refund]:
    """A new refund in its first state."""
    row = REFUND.step(None, "create")
    refund = attrs.evolve(refund, status=row.target, status_version=1)
    return Step(refund, (_happening("refund.created", refund, payment),))


def step(
    refund: Refund, trigger: str, payment: Payment, *, now: Instant, **changes: Any
) -> Step[Refund]:
    """The refund after `trigger`, with `changes`. Raises InvalidState."""
    row = REFUND.step(refund.status, trigger)
    if row.target == "succeeded":
        changes["succeeded_at"] = now
    after = attrs.evolve(
        refund,
        status=row.target,
        status_version=refund.status_version + 1,
        updated_at=now,
        **changes,
    )
    return Step(after, (_happening(row.emits, after, payment),) if row.emits else ())


def closing(payment: Payment, refund: Refund) -> str:
    """The trigger of the Payment's table that a refund brings when it is final.

    It is asked with the books as they will be, the refund taken out.
    """
    books = payment.books
    if refund.purpose == "refund_excess":
        return "refund_excess"
    nothing_held = books.held - refund.from_escrow - refund.from_excess <= 0
    nothing_left = nothing_held and books.recipient - refund.from_recipient <= 0
    wanted = "refund_part"
    if refund.purpose == "reconcile_refund" and nothing_held:
        wanted = "reconcile_refund"
    elif refund.purpose == "refund" and nothing_left:
        wanted = "refund_all"
    return wanted if PAYMENT.allows(payment.status, wanted) else "refund_part"


def _happening(name: str, refund: Refund, payment: Payment) -> Happening:
    return Happening(
        name,
        {
            "paymentId": payment.id,
            "refundId": refund.id,
            "status": refund.status,
            "statusVersion": refund.status_version,
            "amountAtomic": str(refund.amount),
        },
        payment.api_version,
        payment.account_id,
        payment.external_user_id,
    )
