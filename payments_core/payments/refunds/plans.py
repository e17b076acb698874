"""The amounts of a Payment that can go back, to whom, and from which accounts. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from payments_core.errors import (
    AmountOutOfRange,
    FundsOutOfReach,
    InvalidState,
    ReconciliationActionNotAllowed,
    ValidationFailed,
)
from payments_core.evolve import evolve
from payments_core.money import format_amount
from payments_core.payments.record import PayerTotal, Payment
from payments_core.payments.refunds.record import PENDING, Refund

FUNDS_IN_ESCROW = ("action_required", "expired", "cancelled", "failed")
"""The states in which the received funds are in escrow, with no release in progress."""

FUNDS_PAID_OUT = ("succeeded", "partially_refunded")
"""The states in which the recipient has the funds."""

MAX_LEGS = 50
"""The maximum number of senders refunded at once; another call refunds the rest."""


@attrs.frozen(kw_only=True)
class RefundLeg:
    """One transfer back: to whom, and from which accounts of the books."""

    to: str
    from_escrow_atomic: int = 0
    from_excess_atomic: int = 0
    from_recipient_atomic: int = 0
    from_offramp_atomic: int = 0

    @property
    def amount_atomic(self) -> int:
        """The amount that goes back."""
        return (
            self.from_escrow_atomic
            + self.from_excess_atomic
            + self.from_recipient_atomic
            + self.from_offramp_atomic
        )


@attrs.frozen
class SenderShare:
    """The amount that a sender can still claim; `excess_atomic` is the overpaid part of it."""

    address: str
    amount_atomic: int
    excess_atomic: int


@attrs.frozen
class Refundable:
    """The amounts that can still go back: the books and the senders, less pending refunds.

    `received` is the maximum that can go back in total. An account of the books that a reorg has
    left below zero reduces the other. The newest sender comes first.
    """

    escrow: int
    excess: int
    recipient: int
    received: int
    shares: tuple[SenderShare, ...]

    @property
    def held_atomic(self) -> int:
        """The amount in escrow that is not committed to any refund."""
        return self.escrow + self.excess

    def share_of(self, address: str) -> SenderShare:
        """The amount that an address has sent; zero for a stranger."""
        return next(
            (share for share in self.shares if share.address == address), SenderShare(address, 0, 0)
        )


def compute_refundable(
    payment: Payment, refunds: Sequence[Refund], payable: Collection[str] | None = None
) -> Refundable:
    """The amounts of a Payment that can still go back, and to whom.

    Only the `payable` senders have a share, by default all: others are unknown.
    """
    under_way = [refund for refund in refunds if refund.status in PENDING]
    escrow = payment.books.escrow - sum(refund.from_escrow_atomic for refund in under_way)
    excess = payment.books.excess - sum(refund.from_excess_atomic for refund in under_way)
    recipient = payment.books.recipient - sum(refund.from_recipient_atomic for refund in under_way)
    promised = sum(refund.amount_atomic for refund in under_way)
    held = max(0, escrow + excess)
    excess = min(max(0, excess), held)
    if payment.status in (*FUNDS_PAID_OUT, "refunded"):  # no release will ever take it
        excess = held
    shares = [
        _compute_share(item, under_way)
        for item in reversed(payment.paid_by)
        if payable is None or item.address in payable
    ]
    return Refundable(
        held - excess,
        excess,
        max(0, recipient),
        max(0, payment.received_atomic - payment.refunded_atomic - promised),
        tuple(share for share in shares if share.amount_atomic > 0),
    )


def _compute_share(paid: PayerTotal, under_way: Sequence[Refund]) -> SenderShare:
    its = [refund for refund in under_way if refund.destination == paid.address]
    amount = paid.amount_atomic - sum(refund.amount_atomic for refund in its)
    excess = paid.excess_atomic - sum(refund.from_excess_atomic for refund in its)
    return SenderShare(paid.address, amount, min(max(0, excess), max(0, amount)))


def plan_refunds(
    payment: Payment, refundable: Refundable, amount: int | None, destination: str | None
) -> tuple[RefundLeg, ...]:
    """The requested refunds: one, or one for each sender.

    There are several if no destination is named and the newest sender has not sent that much.
    Then each sender is refunded in proportion. Raises as `plan_refund`.
    """
    claims = _find_claims(payment, refundable) if destination is None else []
    if len(claims) < 2 or (amount is not None and amount <= own_amount(payment, claims[0])):
        return (plan_refund(payment, refundable, amount, destination),)
    return _split_refund(payment, refundable, claims, amount)


def plan_refund(
    payment: Payment, refundable: Refundable, amount: int | None, destination: str | None
) -> RefundLeg:
    """One refund: from escrow while the funds are held, else from the recipient's vault.

    Without an amount, it is all that can go back to that destination; without a destination, it
    goes to the sender of the funds. Raises InvalidState, AmountOutOfRange, ValidationFailed.
    """
    maximum = _require_refundable(payment, refundable, amount)
    share = _choose_share(payment, refundable, amount, destination)
    own = (
        own_amount(payment, share) if share.amount_atomic else maximum
    )  # a stranger may get any part
    wanted = min(maximum, own) if amount is None else amount
    if not wanted:
        raise _amount_out_of_range(payment, 0)
    if payment.status in FUNDS_PAID_OUT:
        return RefundLeg(to=share.address, from_recipient_atomic=wanted)
    return _new_leg_from_held(refundable, share, wanted)


def _require_refundable(payment: Payment, refundable: Refundable, amount: int | None) -> int:
    """The maximum that can go back. Raises InvalidState, AmountOutOfRange."""
    if payment.intent == "send":
        raise InvalidState("payment", payment.status, "refund")
    if payment.status in FUNDS_IN_ESCROW and payment.release_id is None:
        maximum = refundable.held_atomic
    elif payment.status in FUNDS_PAID_OUT and payment.destination.account_id is not None:
        maximum = min(refundable.recipient, refundable.received)
    elif payment.status in FUNDS_PAID_OUT:
        raise FundsOutOfReach("payment", payment.status, "refund")
    else:  # not received, or already on its way
        raise InvalidState("payment", payment.status, "refund")
    if not maximum or (amount is not None and not 0 < amount <= maximum):
        raise _amount_out_of_range(payment, maximum)
    return maximum


def _split_refund(
    payment: Payment, refundable: Refundable, claims: Sequence[SenderShare], amount: int | None
) -> tuple[RefundLeg, ...]:
    """A refund to all senders. Raises as `plan_refund`.

    If the recipient paid a fee, less is held than was sent, and all bear it equally. If even
    less is held, a part went to somebody else, and nobody is paid with another's money.
    """
    maximum = _require_refundable(payment, refundable, amount)
    fees = payment.books.fees if payment.status in FUNDS_PAID_OUT else 0
    if sum(own_amount(payment, share) for share in claims) > maximum + fees:
        raise ValidationFailed.at("destination", "is required: less is held than the senders sent")
    shares = _take_largest(claims)
    owns = [own_amount(payment, share) for share in shares]
    wanted = min(maximum, sum(owns)) if amount is None else amount
    if wanted > sum(owns):
        raise ValidationFailed.at("destination", "is required: the largest senders sent less")
    parts = tuple(zip(shares, _divide(wanted, owns), strict=True))
    if payment.status not in FUNDS_PAID_OUT:
        return tuple(leg for leg in _plan_held_legs(refundable, parts) if leg.amount_atomic)
    return tuple(
        RefundLeg(to=share.address, from_recipient_atomic=part) for share, part in parts if part
    )


def _divide(amount: int, among: Sequence[int]) -> list[int]:
    """An amount divided in proportion to some others, exceeding none if all can be paid.

    The remainder of rounding goes to the largest, one unit each: so dust causes no transfer.
    """
    whole = sum(among)
    parts = [amount * own // whole for own in among]
    largest = sorted(range(len(among)), key=lambda place: among[place], reverse=True)
    for place in largest[: amount - sum(parts)]:
        parts[place] += 1
    return parts


def _amount_out_of_range(payment: Payment, maximum: int) -> AmountOutOfRange:
    text = format_amount(maximum, payment.asset.decimals)
    return AmountOutOfRange(f"at most {text} can be refunded")


def own_amount(payment: Payment, share: SenderShare) -> int:
    """The sender's share of a refund: the recipient's vault has none of the excess."""
    return (
        share.amount_atomic - share.excess_atomic
        if payment.status in FUNDS_PAID_OUT
        else share.amount_atomic
    )


def plan_all_held(refundable: Refundable, to: str | None = None) -> tuple[RefundLeg, ...]:
    """Refunds of all held funds: to one destination if it is named, else to their senders.

    Funds of unknown senders stay; they can be refunded to a named destination. Raises
    ReconciliationActionNotAllowed.
    """
    if not refundable.held_atomic:
        raise ReconciliationActionNotAllowed("refund", "no funds are held")
    if to is not None:
        return (
            RefundLeg(
                to=to, from_escrow_atomic=refundable.escrow, from_excess_atomic=refundable.excess
            ),
        )
    _require_enough(
        sum(share.amount_atomic for share in refundable.shares), refundable.held_atomic, "refund"
    )
    parts = [(share, share.amount_atomic) for share in _take_largest(refundable.shares)]
    return _require_any(_plan_held_legs(refundable, parts), "refund")


def plan_unpaid_payout(payment: Payment) -> tuple[RefundLeg, ...]:
    """A refund to the vault after the bank's refusal or return.

    No refund may be pending. Raises ReconciliationActionNotAllowed.
    """
    if payment.books.offramp <= 0 or payment.source is None:
        raise ReconciliationActionNotAllowed("refund", "no funds are held")
    return (RefundLeg(to=payment.source.address, from_offramp_atomic=payment.books.offramp),)


def plan_excess(refundable: Refundable, to: str | None = None) -> tuple[RefundLeg, ...]:
    """Refunds of the excess: to one destination if it is named, else to its senders.

    Raises ReconciliationActionNotAllowed.
    """
    if not refundable.excess:
        raise ReconciliationActionNotAllowed("refund_excess", "the Payment has no excess")
    if to is not None:
        return (RefundLeg(to=to, from_excess_atomic=refundable.excess),)
    _require_enough(
        sum(share.excess_atomic for share in refundable.shares), refundable.excess, "refund_excess"
    )
    legs, excess = [], refundable.excess
    for share in _take_largest(refundable.shares):
        amount = min(share.excess_atomic, excess)
        legs.append(RefundLeg(to=share.address, from_excess_atomic=amount))
        excess -= amount
    return _require_any(legs, "refund_excess")


def _choose_share(
    payment: Payment, refundable: Refundable, amount: int | None, destination: str | None
) -> SenderShare:
    """The share of the refund's recipient: the newest sender with a claim."""
    if destination is not None:
        return refundable.share_of(destination)
    claims = _find_claims(payment, refundable)
    if not claims:
        raise ValidationFailed.at("destination", "is required: no sender is known")
    if (len(claims) > 1 and amount is None) or (amount or 0) > own_amount(payment, claims[0]):
        raise ValidationFailed.at("destination", "is required: no single sender sent so much")
    return claims[0]


def _find_claims(payment: Payment, refundable: Refundable) -> list[SenderShare]:
    """The senders with a claim, the newest first."""
    return [share for share in refundable.shares if own_amount(payment, share)]


def _plan_held_legs(
    refundable: Refundable, parts: Sequence[tuple[SenderShare, int]]
) -> list[RefundLeg]:
    """Plan transfers of the amounts to the senders, from the held funds."""
    legs = []
    for share, amount in parts:
        leg = _new_leg_from_held(refundable, share, amount)
        refundable = evolve(
            refundable,
            escrow=refundable.escrow - leg.from_escrow_atomic,
            excess=refundable.excess - leg.from_excess_atomic,
        )
        legs.append(leg)
    return legs


def _new_leg_from_held(refundable: Refundable, share: SenderShare, amount: int) -> RefundLeg:
    """From the held funds: first this sender's excess, then escrow, then other excess."""
    too_much = min(share.excess_atomic, refundable.excess, amount)
    from_escrow = min(amount - too_much, refundable.escrow)
    return RefundLeg(
        to=share.address, from_escrow_atomic=from_escrow, from_excess_atomic=amount - from_escrow
    )


def _take_largest(shares: Sequence[SenderShare]) -> Sequence[SenderShare]:
    """The largest, in the given order: dust delays no real payer."""
    kept = sorted(shares, key=lambda share: share.amount_atomic, reverse=True)[:MAX_LEGS]
    return [share for share in shares if share in kept]


def _require_enough(owed: int, there: int, action: str) -> None:
    """Raise if not every sender can be refunded: nobody is paid with another's money.

    This happens after a refund to somebody who had sent nothing, or after a reorg.
    """
    if owed > there:
        raise ReconciliationActionNotAllowed(
            action, "less is held than the senders sent; give a destination"
        )


def _require_any(legs: Sequence[RefundLeg], action: str) -> tuple[RefundLeg, ...]:
    """The parts that are not empty; there is at least one."""
    some = tuple(leg for leg in legs if leg.amount_atomic)
    if not some:
        raise ReconciliationActionNotAllowed(action, "no sender is known; give a destination")
    return some
