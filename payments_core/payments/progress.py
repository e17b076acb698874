"""What a changed Payment does next, in the commit of the change itself."""

from __future__ import annotations

import attrs

from payments_core.accounts.vaults.reservations import Reservation
from payments_core.chains.outbox.record import OutboundTransfer, new_transfer, send_job
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.step import Step
from payments_core.money import Atomic
from payments_core.payments import lifecycle
from payments_core.payments.option_cleanup import close_open_options, close_pending_options
from payments_core.payments.record import Payment
from payments_core.storage.port import Transaction

SEND_RELEASE = "payments.release"


def advance_payment(
    tx: Transaction,
    id_sequence: IdSequence,
    partition: str,
    step: Step[Payment],
    *,
    now: Instant,
    ended: str | None = None,
) -> Decision[None]:
    """The step with what it leads to at once: the release of what is covered, or the expiry of
    what waits in vain. In both cases the Payment's other options end. `ended` is an option that the
    caller's own decision brings to its end."""
    payment = step.record
    if payment.status == "accepted" and payment.release_id is None:
        outgoing = new_release(payment, id_sequence.issue("out"), now=now)
        job = send_job(SEND_RELEASE, partition, outgoing, now)
        releasing = attrs.evolve(
            payment, release_id=outgoing.id, released=Atomic(payment.releasable)
        )
        return (
            attrs.evolve(step, record=releasing)
            .as_decision()
            .merge(
                Decision(None, inserts=(outgoing,), jobs=(job,)),
                close_pending_options(tx, payment, now=now, except_option_id=ended),
            )
        )
    if payment.status == "awaiting_payment" and now >= payment.expires_at:
        expired = step.then(lifecycle.expire, now=now)
        return expired.as_decision().merge(
            close_open_options(tx, payment, "expire", now=now, except_option_id=ended)
        )
    return step.as_decision()


def reservation_of_send(payment: Payment) -> Reservation:
    """What a send has reserved of its vault."""
    assert payment.source is not None
    return Reservation(
        vault_id=payment.source.vault_id,
        asset=payment.asset,
        amount=payment.amount,
        counted_at=payment.source.reserved_at,
    )


def new_release(payment: Payment, id: str, *, now: Instant) -> OutboundTransfer:
    """The transfer of what is in escrow to the recipient, less the recipient's fee."""
    assert payment.escrow is not None
    return new_transfer(
        id,
        payment.asset,
        "release",
        payment.id,
        source=payment.escrow,
        recipient=payment.payout_address,
        amount=payment.releasable - payment.fee,
        now=now,
    )
