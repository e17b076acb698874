"""Purging Payments that expired with nothing received (contract §6).

A Payment is deleted with its link, its options with their offers, and its failed submissions. A
small record of its escrow stays, so that an even later transfer is noticed
(`receipts/purged_escrows.py`). A Payment with a receipt, a journal entry, an authorization or a
transfer that was ever seen is kept permanently.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from payments_core.clock import Instant
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.decision import Decision
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.links import find_link_ids
from payments_core.payments.options.offer import Offer, list_offer_ids
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.purged import PurgedPayment
from payments_core.payments.receipts.record import Receipt, TrackedTransaction
from payments_core.payments.record import Payment, PaymentLink
from payments_core.storage.port import Snapshot, Transaction
from payments_core.storage.records import Record

MAX_EVIDENCE = 100
"""A Payment with more submissions is kept: each option takes few, so this one is unusual."""


@attrs.frozen
class PurgeCandidate:
    """A Payment that may be purged, with its evidence and its link's ids, from one snapshot."""

    payment: Payment
    evidence: tuple[TrackedTransaction, ...]
    link_ids: tuple[str, ...]


def is_purgeable(payment: Payment, before: Instant) -> bool:
    """Whether the Payment expired, never received anything, and ended before that moment."""
    return (
        payment.intent == "receive"
        and payment.status == "expired"
        and max(payment.expires_at_ms, payment.monitoring_expires_at_ms, payment.updated_at_ms)
        < before
        and not (
            payment.entry_count or payment.received_atomic or payment.paid_by or payment.labels
        )
        and not (payment.is_pending or payment.refunding or payment.release_id)
    )


def load_candidates(
    snapshot: Snapshot, payment_ids: Sequence[str], before: Instant, key_ring: KeyRing
) -> tuple[PurgeCandidate, ...]:
    """The Payments that may be purged, as far as one snapshot shows."""
    found = snapshot.get_many(Payment, payment_ids)
    loaded = (
        _load_candidate(snapshot, payment, key_ring)
        for payment in found.values()
        if is_purgeable(payment, before)
    )
    return tuple(candidate for candidate in loaded if candidate is not None)


def _load_candidate(
    snapshot: Snapshot, payment: Payment, key_ring: KeyRing
) -> PurgeCandidate | None:
    key = (payment.id,)
    evidence = snapshot.find(TrackedTransaction, "by_payment", key, limit=MAX_EVIDENCE)
    if evidence.next is not None or snapshot.find(Receipt, "by_payment", key, limit=1).records:
        return None
    return PurgeCandidate(payment, evidence.records, find_link_ids(key_ring, payment))


def decide_purge(
    tx: Transaction, candidates: Sequence[PurgeCandidate], *, now: Instant
) -> Decision[None]:
    """Delete each candidate that did not change since it was loaded, with all its records.

    The discovery of a transfer changes the Payment in the same transaction
    (`receipts/discovery.py`), so an unchanged version means that there is none.
    """
    locked = tx.get_many(Payment, [one.payment.id for one in candidates], for_update=True)
    same = [one for one in candidates if _is_same(one.payment, locked.get(one.payment.id))]
    option_ids = [id for one in same for id in one.payment.option_ids]
    options = tx.get_many(PaymentOption, option_ids, for_update=True)
    operation_ids = [option.funding_operation_id for option in options.values()]
    operations = tx.get_many(FundingOperation, [id for id in operation_ids if id], for_update=True)
    evidence = tx.get_many(
        TrackedTransaction, [e.id for one in same for e in one.evidence], for_update=True
    )
    offer_ids = [id for option in options.values() for id in list_offer_ids(option)]
    offers = tx.get_many(Offer, offer_ids, for_update=True)
    links = tx.get_many(PaymentLink, [id for one in same for id in one.link_ids], for_update=True)
    deletes: list[Record] = []
    inserts: list[Record] = []
    for one in same:
        payment = locked[one.payment.id]
        offered = [options[id] for id in payment.option_ids]
        allowed = [
            operations[option.funding_operation_id]
            for option in offered
            if option.funding_operation_id
        ]
        tracked = [evidence[item.id] for item in one.evidence]
        made = [offers[id] for option in offered for id in list_offer_ids(option) if id in offers]
        if any(map(_was_authorized, allowed)) or not all(map(_failed, tracked)):
            continue
        if any(now < offer.followed_until_ms for offer in made):  # a payer may still pay it
            continue
        found = [links[id] for id in one.link_ids if id in links]
        deletes += [payment, *offered, *allowed, *made, *tracked, *found]
        inserts.append(_remember(payment, now))
    return Decision(None, inserts=tuple(inserts), deletes=tuple(deletes))


def _is_same(loaded: Payment, locked: Payment | None) -> bool:
    return locked is not None and locked.version == loaded.version


def _failed(tracked: TrackedTransaction) -> bool:
    """Whether it is only a submission that no chain knew, and no job follows it any more."""
    return not tracked.watched and tracked.block_number is None and not tracked.receipt_ids


def _was_authorized(operation: FundingOperation) -> bool:
    """Whether a transfer was ever made for it, with any result."""
    return operation.authorized_at_ms is not None or operation.outgoing_id is not None


def _remember(payment: Payment, now: Instant) -> PurgedPayment:
    assert payment.escrow_address is not None
    return PurgedPayment(
        id=payment.id,
        chain_id=payment.chain_id,
        escrow_address=payment.escrow_address,
        expired_at=payment.expires_at_ms,
        purged_at=now,
    )
