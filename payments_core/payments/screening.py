"""The steps of a Payment whose transfer to the recipient screening holds or stops. Pure."""

from __future__ import annotations

from collections.abc import Callable

from payments_core.clock import Instant
from payments_core.engine.step import Step
from payments_core.payments.lifecycle import CLEARED_RELEASE, apply_trigger
from payments_core.payments.payer_totals import MAX_PAYERS
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.transitions import IN_REVIEW
from payments_core.screening.judging import Concern, paid_in, pay_out
from payments_core.screening.port import Subject
from payments_core.storage.port import Position, Snapshot


def find_concerns(payment: Payment) -> tuple[Concern, ...]:
    """Whom the transfer concerns: the recipient and, for a release, those who have paid for it.

    The recipient of a payout is its bank account, and that of a route is on its own chain: the
    addresses on the way are the bank's and the router's.
    """
    to = payment.destination
    if to.bank_account_id is not None:
        recipient = Concern(Subject(kind="bank_account", reference=to.bank_account_id), "out")
    else:
        chain_id = payment.chain_id if payment.route is None else payment.route.chain_id
        recipient = pay_out(chain_id, to.address)
    senders = [paid.address for paid in payment.paid_by if paid.amount_atomic > paid.excess_atomic]
    return (recipient, *(paid_in(payment.chain_id, address) for address in senders))


def find_more_senders(payment: Payment) -> Callable[[Snapshot], tuple[Concern, ...]] | None:
    """What reads all senders of a Payment with so many that its record lacks some."""
    if len(payment.paid_by) < MAX_PAYERS:
        return None

    def read(snapshot: Snapshot) -> tuple[Concern, ...]:
        senders: list[str] = []
        after: Position | None = None
        while True:
            page = snapshot.find(Receipt, "by_payment", (payment.id,), after=after, limit=100)
            senders += [one.sender for one in page.records if one.counted_atomic > 0]
            after = page.next
            if after is None:
                return tuple(paid_in(payment.chain_id, one) for one in dict.fromkeys(senders))

    return read


def hold(payment: Payment, *, now: Instant) -> Step[Payment]:
    """Screening has not cleared whom its transfer concerns; unchanged if it is held already."""
    return Step(payment) if IN_REVIEW in payment.labels else apply_trigger(payment, "hold", now=now)


def end_hold(payment: Payment, *, now: Instant) -> Step[Payment]:
    """Screening has cleared whom its transfer concerns; unchanged if it is not held."""
    return apply_trigger(payment, "pass", now=now) if IN_REVIEW in payment.labels else Step(payment)


def block(payment: Payment, reason: str, *, now: Instant) -> Step[Payment]:
    """Screening has blocked its transfer, which is withdrawn; the partner may request another."""
    return apply_trigger(
        payment, "block", now=now, reason=reason, failure=reason, **CLEARED_RELEASE
    )
