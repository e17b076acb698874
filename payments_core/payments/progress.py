"""The next step of a changed Payment, in the commit of the change itself."""

from __future__ import annotations

from payments_core.chains.outbox.record import send_job
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.payments.expiry import wake_expiry
from payments_core.payments.option_cleanup import close_pending_options
from payments_core.payments.record import Payment
from payments_core.payments.release import SEND_RELEASE, new_release
from payments_core.storage.port import Transaction


def advance_payment(
    tx: Transaction,
    id_sequence: IdSequence,
    partition: str,
    step: Step[Payment],
    *,
    now: Instant,
    ended: str | None = None,
) -> Decision[None]:
    """The step with its immediate consequence: the release of a covered Payment, whose other
    options end, or a look whether one without attempts has expired. `ended` is an option that the
    caller's own decision ends."""
    payment = step.record
    if payment.status == "accepted" and payment.release_id is None:
        outgoing = new_release(payment, id_sequence.issue("out"), now=now)
        job = send_job(SEND_RELEASE, partition, outgoing, now)
        releasing = evolve(
            payment, release_id=outgoing.id, released_atomic=Atomic(payment.releasable_atomic)
        )
        return (
            evolve(step, record=releasing)
            .as_decision()
            .merge(
                Decision(None, inserts=(outgoing,), jobs=(job,)),
                close_pending_options(tx, partition, payment, now=now, except_option_id=ended),
            )
        )
    return step.as_decision().merge(wake_expiry(tx, payment, now=now))
