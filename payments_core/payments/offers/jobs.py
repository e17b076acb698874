"""The job of an offer: it asks the provider if the request did not, and follows what it reports.

The job exists from the commit that asks for the offer, so a crash between that and the provider's
answer costs time only. It ends with what can come of the offer: a payer may pay late, and what is
paid late is delivered or returned, never kept.
"""

from __future__ import annotations

import logging

import attrs

from payments_core.chains.backoff import back_off
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.parking import Queue
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.notices.owners import Routed, bring_looks_forward
from payments_core.payments.details import lock_option, lock_payment
from payments_core.payments.offers import lifecycle
from payments_core.payments.offers.providers import OfferMakers, OfferRefused, OfferUnavailable
from payments_core.payments.offers.settling import settle_delivery
from payments_core.payments.options import lifecycle as options
from payments_core.payments.options.offer import Offer, OfferProgress, OfferTerms
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.record import Payment
from payments_core.payments.transitions import OPEN
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import ClaimedJob, Snapshot, Transaction

FOLLOW_OFFER = "offers.follow"
OFFER_QUEUE = Queue("offers", lane_concurrency=4, failure_blocks_lane=False, threads=1)
"""A provider that hangs takes one thread of a worker, and keeps no job of another kind waiting."""

_log = logging.getLogger(__name__)


def follow_job(mode: str, partition: str, offer: Offer, due_at: Instant) -> Job:
    """The one job of an offer: its id follows from the offer's."""
    return Job(
        id=f"{mode}:{FOLLOW_OFFER}:{offer.id}",
        queue=OFFER_QUEUE.full_name(mode),
        lane=f"offers:{partition}",
        kind=FOLLOW_OFFER,
        due_at=due_at,
        subject=offer.id,
    )


def have_followed(tx: Transaction, job: Job) -> Decision[None]:
    """The job at the time that a request has found; one that runs chooses its own."""
    known = tx.get(Job, job.id, for_update=True)
    if known is None:
        return Decision(None, inserts=(job,))
    if known.lease_until == NEVER or known.lease_until > job.due_at:
        return Decision(None)
    return Decision(None, replaces=(evolve(known, due_at=job.due_at),))


@attrs.frozen
class AnsweredOffer:
    """What became of an offer that was asked of its provider."""

    payment: Payment
    option: PaymentOption
    offer: Offer


def decide_answer(
    tx: Transaction,
    asked: Offer,
    answer: tuple[OfferTerms, str | None] | None,
    *,
    now: Instant,
) -> Decision[AnsweredOffer]:
    """The offer and its option after the provider's answer; None is its refusal.

    An answer that another request or the job has stored already changes nothing.
    """
    payment = lock_payment(tx, asked.payment_id)
    option = lock_option(tx, asked.option_id)
    offer = tx.get(Offer, asked.id, for_update=True)
    assert offer is not None
    if offer.status != "asked":
        return Decision(AnsweredOffer(payment, option, offer))
    if answer is None:
        after, answered = lifecycle.refuse(option, offer, now=now)
    else:
        after, answered = lifecycle.accept_terms(option, offer, payment, *answer, now=now)
    changed = tuple(new for old, new in ((option, after), (offer, answered)) if new != old)
    return Decision(AnsweredOffer(payment, after, answered), replaces=changed)


class OfferJobs:
    """Follows offers. `makers` has the providers; `on_sighted` has a transaction looked for."""

    def __init__(self, ports: Ports, makers: OfferMakers) -> None:
        self._ports = ports
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._makers = makers

    def follow(self, claimed: ClaimedJob) -> None:
        """The job: ask for the offer, or look at it, until nothing can come of it."""
        authority = WorkerAuthority.of(claimed)
        seen = self._load(authority.partition, claimed.job.subject)
        if seen is None or not self._makers[seen.offer.method].serves(authority.mode):
            self._committer.finish(claimed)
            return
        work = self._ask if seen.offer.status == "asked" else self._look
        try:
            work(claimed, authority, seen)
        except OfferUnavailable:
            provider = self._makers[seen.offer.method].dependency
            pause = back_off(claimed.job, self._clock.now(), provider)
            self._committer.finish(claimed, pause)

    def bring_forward(self, mode: str, reference: str) -> Routed:
        """Look at the order of a provider's reference now. See NoticeOwner."""

        def new_job(partition: str, offer: Offer) -> Job | None:
            now = self._clock.now()
            if lifecycle.next_look_at(offer, now) is None:
                return None
            return follow_job(mode, partition, offer, now)

        return bring_looks_forward(self._ports, mode, Offer, "by_reference", reference, new_job)

    def _load(self, partition: str, offer_id: str) -> AnsweredOffer | None:
        def load(snapshot: Snapshot) -> AnsweredOffer | None:
            offer = snapshot.get(Offer, offer_id)
            payment = None if offer is None else snapshot.get(Payment, offer.payment_id)
            option = None if offer is None else snapshot.get(PaymentOption, offer.option_id)
            if offer is None or payment is None or option is None:  # it was purged
                return None
            return AnsweredOffer(payment, option, offer)

        return self._storage.read(partition, load)

    def _ask(self, claimed: ClaimedJob, authority: WorkerAuthority, seen: AnsweredOffer) -> None:
        """Ask for an offer that a request has not got, unless nobody can use it any more."""
        asked_for_ms = self._clock.now() - seen.offer.created_at_ms
        is_wanted = seen.option.status not in options.OPTION.terminal
        answer: tuple[OfferTerms, str | None] | None = None
        try:
            if is_wanted:
                answer = self._makers[seen.offer.method].ask(authority, seen.offer, seen.payment)
        except OfferRefused:
            pass
        except OfferUnavailable:
            if asked_for_ms < lifecycle.ASKED_FOR_MS:
                raise

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[AnsweredOffer]:
            now = self._clock.now()
            decided = decide_answer(tx, seen.offer, answer, now=now)
            return evolve(decided, next_run_at=lifecycle.next_look_at(decided.result.offer, now))

        self._committer.commit(authority, decide, claimed=claimed)

    def _look(self, claimed: ClaimedJob, authority: WorkerAuthority, seen: AnsweredOffer) -> None:
        """Ask the provider what became of the offer, and note it."""
        try:
            progress = self._makers[seen.offer.method].look(authority, seen.offer, seen.payment)
        except OfferRefused as error:
            _log.critical("ALARM: the provider does not know the offer %s", seen.offer.id)
            raise OfferUnavailable from error

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            now = self._clock.now()
            decided = decide_progress(tx, seen.offer, progress, now=now)
            return Decision(None, next_run_at=lifecycle.next_look_at(decided.result, now)).merge(
                decided
            )

        self._committer.commit(authority, decide, claimed=claimed)
        noted = len(seen.option.deliveries) + lifecycle.names_delivery(seen.option, progress)
        if noted == lifecycle.MAX_DELIVERIES > len(seen.option.deliveries):
            _log.critical(
                "ALARM: the provider has named %d transactions for %s; no more are noted",
                noted, seen.option.id,
            )  # fmt: skip


def decide_progress(
    tx: Transaction, seen: Offer, progress: OfferProgress, *, now: Instant
) -> Decision[Offer]:
    """The offer after a look, its option, and the transaction that is to be looked for.

    A delivery beyond those that an option may have changes nothing: its receipt is found without.
    """
    if not lifecycle.is_news(seen, progress):
        return Decision(seen)
    payment = lock_payment(tx, seen.payment_id)
    option = lock_option(tx, seen.option_id)
    offer = tx.get(Offer, seen.id, for_update=True)
    assert offer is not None
    is_full = len(option.deliveries) >= lifecycle.MAX_DELIVERIES
    if is_full and lifecycle.names_delivery(option, progress):
        return Decision(offer)
    after, moved = lifecycle.apply_progress(option, offer, progress, now=now)
    if payment.status not in OPEN:  # it takes no more funds
        after = options.close(after, "cancel", now=now).record
    settled: Decision[None] = Decision(None)
    if moved.status == "delivered" and moved.transaction_hash is not None:
        after, settled = settle_delivery(tx, payment, after, moved.transaction_hash, now=now)
    changed = tuple(new for old, new in ((option, after), (offer, moved)) if new != old)
    return Decision(moved, replaces=changed).merge(settled)
