"""When a Payment expires: the job at that time, the decision, and the end of the job before it."""

from __future__ import annotations

from payments_core.clock import SECOND, Instant
from payments_core.engine.decision import Decision, NewJob, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.engine.step import Step
from payments_core.payments import lifecycle
from payments_core.payments.option_cleanup import close_open_options
from payments_core.payments.record import Payment
from payments_core.storage.jobs import Job
from payments_core.storage.port import ClaimedJob, Transaction

EXPIRE_PAYMENT = "payments.expire"
POLL_MS = 30 * SECOND
"""How often the job checks whether a live attempt has ended."""


class PaymentExpiry:
    """The job at a Payment's expiry."""

    def __init__(self, ports: Ports) -> None:
        self._committer = ports.committer
        self._clock = ports.clock

    def run(self, claimed: ClaimedJob) -> None:
        """Expire the Payment, if it is time. A live attempt is waited for: its end expires it.

        The job stays until then nevertheless, since the end may be seen by a worker whose clock
        is behind and says that the time is not over. Options that nobody took expire in any case.
        """
        authority = WorkerAuthority.of(claimed)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            payment = tx.get(Payment, claimed.job.subject, for_update=True)
            if payment is None:  # it has expired and been purged meanwhile
                return Decision(None)
            if now < payment.expires_at:  # our clock is behind the claiming worker's
                return Decision(None, next_run_at=payment.expires_at)
            if payment.status == "processing" or payment.is_pending:
                return Decision(None, next_run_at=now + POLL_MS)
            if payment.status == "awaiting_payment":
                return expire_when_due(tx, Step(payment), now=now)
            return Decision(None).merge(close_open_options(tx, payment, "expire", now=now))

        self._committer.commit(authority, decide, claimed=claimed)


def expire_when_due(
    tx: Transaction, step: Step[Payment], *, now: Instant, ended: str | None = None
) -> Decision[None]:
    """The step, with the expiry and the end of all options except `ended` if the time is over and
    nothing was received."""
    payment = step.record
    if payment.status != "awaiting_payment" or now < payment.expires_at:
        return step.as_decision()
    expired = step.then(lifecycle.expire, now=now)
    return expired.as_decision().merge(
        close_open_options(tx, payment, "expire", now=now, except_option_id=ended)
    )


def expiry_job(partition: str, payment: Payment) -> NewJob:
    """The job at a Payment's expiry; an earlier settlement ends the job."""
    return NewJob(
        "timers",
        EXPIRE_PAYMENT,
        f"expiry:{partition}",
        payment.expires_at,
        payment.id,
        id=expiry_job_id(payment.id),
    )


def expiry_job_id(payment_id: str) -> str:
    """The id of the job at a Payment's expiry."""
    return f"expiry:{payment_id}"


def end_expiry(tx: Transaction, payment: Payment) -> Decision[None]:
    """The job at the expiry of a Payment that keeps its funds, ended before its time.

    Its options ended when it was covered, and no other can be made. Transfers still on their way
    are waited for. Payments of the release before have a job of another id, which runs.
    """
    if payment.is_pending:
        return Decision(None)
    job = tx.get(Job, expiry_job_id(payment.id), for_update=True)
    return Decision(None, deletes=() if job is None else (job,))
