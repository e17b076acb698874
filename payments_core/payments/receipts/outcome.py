"""What a look at a transaction means, committed in one step.

Receipts, the operation that sent the transaction, its option, the Payment with its journal, the
vault's balance: all of them move together or not at all (contract §6 "In step").
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from payments_core.accounts.vaults.reservations import Asked, settled
from payments_core.chains.backoff import OVERSIGHT_MS, POLL_MS, poll_again
from payments_core.chains.judge import Expectation
from payments_core.chains.outbox.record import Outgoing, failed_for_good, send_job, withdraw
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import Draw
from payments_core.payments import lifecycle as payments
from payments_core.payments.details import locked_option, locked_payment
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.funding.failing import come_to_nothing, reservation_of
from payments_core.payments.funding.operations import SEND
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.lifecycle import Change
from payments_core.payments.options import lifecycle as options
from payments_core.payments.options.record import Option
from payments_core.payments.progress import carry_on
from payments_core.payments.receipts import lifecycle
from payments_core.payments.receipts.direct import carried, direct_option_of, hinted, is_mere_hint
from payments_core.payments.receipts.discovery import watched
from payments_core.payments.receipts.evidence import Sighting, Weighed, weigh
from payments_core.payments.receipts.record import Evidence, Receipt
from payments_core.payments.record import Payment
from payments_core.storage.port import Transaction
from payments_core.storage.records import Record

R = TypeVar("R", bound=Record)


@attrs.frozen
class Look:
    """What a look saw, and the balance of the operation's vault where it ends a reservation.

    `scanned_to` is how far the chain had been scanned before it. `included_as` is the hash of the
    transaction that is in a block instead of this one, being the same with other fees; it `is_lost`
    where another transaction than ours has taken its place for good.
    """

    sighting: Sighting
    asked: Asked | None
    scanned_to: int
    included_as: str | None = None
    is_lost: bool = False


@attrs.frozen
class _Attempt:
    """The operation that sent the transaction, and its option, as the look finds them."""

    option: Option
    operation: FundingOperation

    @property
    def is_live(self) -> bool:
        """Whether the look may still decide it."""
        return self.operation.status in funding.LIVE


@attrs.frozen
class _Counted:
    """The receipts after the look, what they changed of the Payment, and a release stopped."""

    change: Change
    receipts: tuple[Receipt, ...]
    stopped: Decision[None]


def decide(
    tx: Transaction, draw: Draw, partition: str, known: Evidence, look: Look, *, now: Instant
) -> Decision[None]:
    """What a look means. Raises BalanceOutdated."""
    payment = locked_payment(tx, known.payment_id)
    found = _locked(tx, Evidence, known.id)
    if not found.watched:
        return Decision(None)
    if found.version != known.version:  # found again, or its sender is known: look once more
        return poll_again(now)
    attempt = _attempt(tx, found)
    instead: Decision[None] = Decision(None)
    if look.included_as is not None:
        instead = watched(
            tx, payment.id, found.chain_id, look.included_as,
            now=now, due_at=now, option_id=found.option_id,
        )  # fmt: skip
    if look.included_as is not None and not found.receipt_ids:
        over = attrs.evolve(found, watched=False)
        return instead.joined(Decision(None, replaces=(over,)))
    option = direct_option_of(tx, payment, found, look.sighting)
    evidence = attrs.evolve(found, direct_option_id=option.id) if option else found
    before = tuple(_locked(tx, Receipt, id) for id in evidence.receipt_ids)
    weighed = weigh(
        evidence,
        before,
        look.sighting,
        _expectation(payment),
        lambda: draw.id("receipt"),
        now=now,
    )
    if is_mere_hint(evidence, weighed):
        return hinted(evidence, look.sighting, now=now)
    counted = _count(tx, payment, evidence, attempt, weighed, now=now)
    is_replaced = look.included_as is not None or look.is_lost
    ends = is_replaced or _ends(evidence, attempt, look.sighting)
    change = counted.change
    if ends or look.sighting.view is None or (attempt is not None and attempt.is_live):
        change = change.then(
            payments.end_attempt(change.payment, evidence.id, now=now, reason="reorged")
        )
    again_at = _again_at(look, ends=ends, now=now)
    noted = _noted(evidence, counted.receipts, look.sighting, watched=again_at is not None)
    base = Decision(None, again_at=again_at).joined(
        _stored((*before, found), (*counted.receipts, noted)), counted.stopped, instead
    )
    ended = option.id if option else None
    if option is not None:
        base = base.joined(
            carried(option, payment, change.payment, evidence, before, counted.receipts, now=now)
        )
    if attempt is not None and attempt.is_live:
        if look.asked is not None and not _paid(weighed):
            return base.joined(
                _failed(tx, draw, partition, change, attempt, look.asked, weighed, look, now=now)
            )
        base = base.joined(
            _moved_on(tx, partition, change.payment, evidence, attempt, weighed, look, now=now)
        )
        if look.asked is not None:
            done = payments.end_attempt(
                change.payment, attempt.operation.id, now=now, reason="confirmed"
            )
            change, ended = change.then(done), attempt.option.id
    if change == Change(payment):
        return base
    return base.joined(carry_on(tx, draw, partition, change, now=now, ended=ended))


def _attempt(tx: Transaction, evidence: Evidence) -> _Attempt | None:
    if evidence.option_id is None:
        return None
    return _Attempt(*locked_option(tx, evidence.option_id))


def _expectation(payment: Payment) -> Expectation:
    assert payment.escrow_address is not None
    return Expectation(payment.chain_id, payment.asset.address, payment.escrow_address)


def _ends(evidence: Evidence, attempt: _Attempt | None, sighting: Sighting) -> bool:
    """Whether what the transaction brings is decided.

    A stranger's transaction that is gone may be on another fork: not every node has switched yet.
    It is looked for until the height at which it was is final without it. Our own is sent again
    until it is in, or no transaction of ours after it would ever be.
    """
    if sighting.is_final:
        return True
    if sighting.view is not None:
        return False
    if attempt is not None and (attempt.is_live or attempt.operation.status == "confirmed"):
        return False
    return evidence.block_number is None or sighting.heads.final.number >= evidence.block_number


def _again_at(look: Look, *, ends: bool, now: Instant) -> Instant | None:
    """When to look again: also at what is decided, until a scan would notice its undoing."""
    if not ends:
        return now + POLL_MS
    block = look.sighting.block
    return None if block is None or block.number <= look.scanned_to else now + OVERSIGHT_MS


def _noted(
    evidence: Evidence, receipts: tuple[Receipt, ...], sighting: Sighting, *, watched: bool
) -> Evidence:
    block = sighting.block
    return attrs.evolve(
        evidence,
        receipt_ids=tuple(receipt.id for receipt in receipts),
        block_number=block.number if block else evidence.block_number,
        block_hash=block.hash if block else None,
        watched=watched,
    )


def _stored(before: tuple[Record, ...], after: tuple[Record, ...]) -> Decision[None]:
    """Insert what is new, replace what has changed."""
    return Decision(
        None,
        inserts=tuple(record for record in after if record.version == 0),
        replaces=tuple(record for record in after if record.version and record not in before),
    )


# The Payment.


def _count(
    tx: Transaction,
    payment: Payment,
    evidence: Evidence,
    attempt: _Attempt | None,
    weighed: Weighed,
    *,
    now: Instant,
) -> _Counted:
    """Take back what was undone, note what is coming, count what is proven."""
    change, stopped = Change(payment), Decision(None)
    for receipt in weighed.undone:
        release = _stoppable_release(tx, change.payment, receipt)
        change = change.then(
            payments.undo(change.payment, receipt, now=now, release_stopped=release is not None)
        )
        if release is not None:
            stopped = stopped.joined(Decision(None, replaces=(release,)))
    is_live = attempt is not None and attempt.is_live
    if weighed.is_promising and not is_live:
        change = change.then(payments.sight(change.payment, evidence.id, now=now))
    brought_by = attempt.operation.id if attempt is not None and is_live else evidence.id
    receipts = {receipt.id: receipt for receipt in weighed.receipts}
    for receipt in weighed.proven:
        counted = change.payment.counted
        change = change.then(payments.count(change.payment, receipt, brought_by, now=now))
        receipts[receipt.id] = lifecycle.verified(receipt, change.payment.counted - counted, now)
    return _Counted(change, tuple(receipts.values()), stopped)


def _stoppable_release(tx: Transaction, payment: Payment, receipt: Receipt) -> Outgoing | None:
    """The release that misses this receipt, withdrawn; None if it cannot be, or need not."""
    if payment.status != "accepted" or payment.release_id is None or not receipt.counted:
        return None
    return withdraw(_locked(tx, Outgoing, payment.release_id))


# The operation.


def _moved_on(
    tx: Transaction,
    partition: str,
    payment: Payment,
    evidence: Evidence,
    attempt: _Attempt,
    weighed: Weighed,
    look: Look,
    *,
    now: Instant,
) -> Decision[None]:
    """The operation as the look finds it: known to the chain, undone, or proven and over."""
    operation = attempt.operation
    trigger = _trigger(operation, evidence, look.sighting)
    outcome: Decision[None] = Decision(None)
    if trigger is not None:
        operation, events = funding.step(
            operation, trigger, payment, now=now, transaction_hash=evidence.transaction_hash
        )
        outcome = Decision(None, events=events)
    if trigger == "reorg":  # the job that sends makes it `broadcast` again
        outgoing = _locked(tx, Outgoing, str(operation.outgoing_id))
        again = send_job(SEND, partition, outgoing, now)
        outcome = outcome.joined(Decision(None, jobs=(again,)))
    if look.asked is None:
        changed = () if operation == attempt.operation else (operation,)
        return outcome.joined(Decision(None, replaces=changed))
    confirmed, events = funding.step(  # by these bytes, of all that were signed for it
        operation, "confirm", payment, now=now, transaction_hash=evidence.transaction_hash
    )
    paid = attempt.option.paid + _paid(weighed)
    succeeded = options.step(attempt.option, "verify", now=now, paid=paid)
    done = Decision(None, replaces=(confirmed, succeeded), events=events)
    reservation = reservation_of(operation, payment)
    return outcome.joined(done, settled(tx, reservation, look.asked, succeeded=True))


def _paid(weighed: Weighed) -> int:
    """What the transaction has proven to bring, now or at a look before."""
    verified = [receipt for receipt in weighed.receipts if receipt.status == "verified"]
    return sum(receipt.amount for receipt in (*verified, *weighed.proven))


def _trigger(operation: FundingOperation, evidence: Evidence, sighting: Sighting) -> str | None:
    """The step of an operation that comes before its end, if any."""
    if sighting.view is not None and operation.status in ("authorized", "unknown"):
        return "broadcast"
    was_in_a_block = operation.status == "broadcast" and evidence.block_hash is not None
    if sighting.block is None and (was_in_a_block or operation.status == "unknown"):
        return "reorg"
    return None


def _failed(
    tx: Transaction,
    draw: Draw,
    partition: str,
    change: Change,
    attempt: _Attempt,
    asked: Asked,
    weighed: Weighed,
    look: Look,
    *,
    now: Instant,
) -> Decision[None]:
    """The transaction is final and proves nothing: what was reserved is free again."""
    reasons = [receipt.rejection_reason for receipt in weighed.receipts]
    has_failed = look.is_lost or look.sighting.has_failed
    failed = "transaction_failed" if has_failed else "wrong_recipient"
    reservation = reservation_of(attempt.operation, change.payment)
    assert attempt.operation.outgoing_id is not None
    void = failed_for_good(tx, attempt.operation.outgoing_id)
    nothing = come_to_nothing(
        tx,
        draw,
        partition,
        change,
        attempt.option,
        attempt.operation,
        "fail",
        lambda: settled(tx, reservation, asked, succeeded=False),
        reason=next((reason for reason in reasons if reason), failed),
        now=now,
    )
    return void.joined(nothing)


def _locked(tx: Transaction, kind: type[R], id: str) -> R:
    record = tx.get(kind, id, for_update=True)
    assert record is not None, f"no {kind.__name__} {id}"
    return record
