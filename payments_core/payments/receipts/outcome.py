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
from payments_core.engine.step import Step
from payments_core.payments import lifecycle as payments
from payments_core.payments.details import locked_option, locked_payment
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.funding.failing import come_to_nothing, reservation_of
from payments_core.payments.funding.operations import SEND
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options import lifecycle as options
from payments_core.payments.options.record import DirectOption, Option
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
class _Case:
    """All that the meaning of a look depends on: the look, and the records it is about, locked.

    `option` is the direct option that a stranger's transaction pays by, and `receipts` are those
    of the evidence, as they were before.
    """

    tx: Transaction
    draw: Draw
    partition: str
    look: Look
    now: Instant
    payment: Payment
    evidence: Evidence
    attempt: _Attempt | None
    option: DirectOption | None
    receipts: tuple[Receipt, ...]

    @property
    def live(self) -> _Attempt | None:
        """The attempt, where the look may still decide it."""
        return self.attempt if self.attempt is not None and self.attempt.is_live else None


@attrs.frozen
class _Counted:
    """The receipts after the look, what they changed of the Payment, and a release stopped."""

    change: Step[Payment]
    receipts: tuple[Receipt, ...]
    stopped: Decision[None]


def decide(
    tx: Transaction, draw: Draw, partition: str, known: Evidence, look: Look, *, now: Instant
) -> Decision[None]:
    """What a look means; `known` is the evidence that it was made for. Raises BalanceOutdated."""
    payment = locked_payment(tx, known.payment_id)  # 1
    found = _locked(tx, Evidence, known.id)
    if not found.watched:
        return Decision(None)
    if found.version != known.version:
        return poll_again(now)
    attempt = _attempt(tx, found)  # 2
    instead = _follow_included(tx, found, look, now=now)  # 3
    if look.included_as is not None and not found.receipt_ids:
        return instead.joined(Decision(None, replaces=(attrs.evolve(found, watched=False),)))
    option = direct_option_of(tx, payment, found, look.sighting)  # 4
    evidence = attrs.evolve(found, direct_option_id=option.id) if option else found
    receipts = tuple(_locked(tx, Receipt, id) for id in evidence.receipt_ids)
    case = _Case(tx, draw, partition, look, now, payment, evidence, attempt, option, receipts)
    weighed = _weigh(case)  # 5
    if is_mere_hint(evidence, weighed):
        return hinted(evidence, look.sighting, now=now)
    counted = _count(case, weighed)  # 6
    ends = _ends(case)  # 7
    change = counted.change
    if ends or look.sighting.view is None or case.live is not None:
        change = change.then(payments.end_attempt, evidence.id, now=now, reason="reorged")
    again_at = _again_at(look, ends=ends, now=now)  # 8
    noted = _noted(evidence, counted.receipts, look.sighting, watched=again_at is not None)
    base = Decision(None, again_at=again_at).joined(
        _stored((*receipts, found), (*counted.receipts, noted)),
        counted.stopped,
        instead,
        _write_option(case, change.record, counted.receipts),  # 9
    )
    live = case.live
    if live is None:
        return base.joined(_write_payment(case, change, ended=option.id if option else None))
    if look.asked is None:  # 10
        moved = _moved_on(case, live, change.record)
        return base.joined(moved, _write_payment(case, change, ended=None))
    if not _paid(weighed):
        return base.joined(_failed(case, live, look.asked, change, weighed))
    confirmed = _confirmed(case, live, look.asked, change.record, weighed)
    done = change.then(payments.end_attempt, live.operation.id, now=now, reason="confirmed")
    return base.joined(confirmed, _write_payment(case, done, ended=live.option.id))


def _attempt(tx: Transaction, evidence: Evidence) -> _Attempt | None:
    if evidence.option_id is None:
        return None
    return _Attempt(*locked_option(tx, evidence.option_id))


def _follow_included(
    tx: Transaction, evidence: Evidence, look: Look, *, now: Instant
) -> Decision[None]:
    """Have the transaction looked at that is in a block instead of this one."""
    if look.included_as is None:
        return Decision(None)
    return watched(
        tx, evidence.payment_id, evidence.chain_id, look.included_as,
        now=now, due_at=now, option_id=evidence.option_id,
    )  # fmt: skip


def _ends(case: _Case) -> bool:
    """Whether what the transaction brings is decided.

    A stranger's transaction that is gone may be on another fork: not every node has switched yet.
    It is looked for until the height at which it was is final without it. Our own is sent again
    until it is in a block, or can never be in one.
    """
    look, sighting, evidence, attempt = case.look, case.look.sighting, case.evidence, case.attempt
    if look.included_as is not None or look.is_lost or sighting.is_final:
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


# The receipts, the Payment and the direct option.


def _weigh(case: _Case) -> Weighed:
    payment = case.payment
    assert payment.escrow_address is not None
    return weigh(
        case.evidence,
        case.receipts,
        case.look.sighting,
        Expectation(payment.chain_id, payment.asset.address, payment.escrow_address),
        lambda: case.draw.id("receipt"),
        now=case.now,
    )


def _count(case: _Case, weighed: Weighed) -> _Counted:
    """Take back what was undone, note what is coming, count what is proven."""
    change, stopped, now = Step(case.payment), Decision(None), case.now
    for receipt in weighed.undone:
        release = _stoppable_release(case.tx, change.record, receipt)
        change = change.then(payments.undo, receipt, now=now, release_stopped=release is not None)
        if release is not None:
            stopped = stopped.joined(Decision(None, replaces=(release,)))
    brought_by = case.live.operation.id if case.live is not None else case.evidence.id
    if weighed.is_promising and case.live is None:
        change = change.then(payments.sight, brought_by, now=now)
    receipts = {receipt.id: receipt for receipt in weighed.receipts}
    for receipt in weighed.proven:
        before = change.record.counted
        change = change.then(payments.count, receipt, brought_by, now=now)
        kept = change.record.counted - before
        receipts[receipt.id] = lifecycle.verified(receipt, kept, now).record
    return _Counted(change, tuple(receipts.values()), stopped)


def _stoppable_release(tx: Transaction, payment: Payment, receipt: Receipt) -> Outgoing | None:
    """The release that misses this receipt, withdrawn; None if it cannot be, or need not."""
    if payment.status != "accepted" or payment.release_id is None or not receipt.counted:
        return None
    return withdraw(_locked(tx, Outgoing, payment.release_id))


def _write_option(case: _Case, after: Payment, receipts: tuple[Receipt, ...]) -> Decision[None]:
    """The direct option as the look leaves it, if the transaction pays by one."""
    if case.option is None:
        return Decision(None)
    return carried(
        case.option, case.payment, after, case.evidence, case.receipts, receipts, now=case.now
    )


def _write_payment(case: _Case, change: Step[Payment], *, ended: str | None) -> Decision[None]:
    """The Payment with what follows for it, unless the look has changed nothing of it."""
    if change == Step(case.payment):
        return Decision(None)
    return carry_on(case.tx, case.draw, case.partition, change, now=case.now, ended=ended)


# The operation that sent the transaction, with its option and its reservation.


def _moved_on(case: _Case, attempt: _Attempt, payment: Payment) -> Decision[None]:
    """The operation while its transaction is not final; undone, it is handed to its sender."""
    moved = _noticed(case, attempt.operation, payment)
    if moved.record == attempt.operation:
        return Decision(None)
    if moved.record.status != "authorized":
        return moved.as_decision()
    outgoing = _locked(case.tx, Outgoing, str(attempt.operation.outgoing_id))
    again = send_job(SEND, case.partition, outgoing, case.now)
    return moved.as_decision().joined(Decision(None, jobs=(again,)))


def _confirmed(
    case: _Case, attempt: _Attempt, asked: Asked, payment: Payment, weighed: Weighed
) -> Decision[None]:
    """The operation and its option at their end, and the reservation spent."""
    confirmed = _noticed(case, attempt.operation, payment).then(
        funding.step,
        "confirm",
        payment,
        now=case.now,
        transaction_hash=case.evidence.transaction_hash,  # of all that were signed for it
    )
    paid = attempt.option.paid + _paid(weighed)
    succeeded = options.step(attempt.option, "verify", now=case.now, paid=paid)
    reservation = reservation_of(confirmed.record, payment)
    return confirmed.as_decision().joined(
        succeeded.as_decision(), settled(case.tx, reservation, asked, succeeded=True)
    )


def _noticed(case: _Case, operation: FundingOperation, payment: Payment) -> Step[FundingOperation]:
    """The operation as far as the chain knows its transaction; unchanged where that is no news."""
    sighting, trigger = case.look.sighting, None
    was_in_a_block = operation.status == "broadcast" and case.evidence.block_hash is not None
    if sighting.view is not None and operation.status in ("authorized", "unknown"):
        trigger = "broadcast"
    elif sighting.block is None and (was_in_a_block or operation.status == "unknown"):
        trigger = "reorg"
    if trigger is None:
        return Step(operation)
    hash = case.evidence.transaction_hash
    return funding.step(operation, trigger, payment, now=case.now, transaction_hash=hash)


def _paid(weighed: Weighed) -> int:
    """What the transaction has proven to bring, now or at a look before."""
    verified = [receipt for receipt in weighed.receipts if receipt.status == "verified"]
    return sum(receipt.amount for receipt in (*verified, *weighed.proven))


def _failed(
    case: _Case, attempt: _Attempt, asked: Asked, change: Step[Payment], weighed: Weighed
) -> Decision[None]:
    """The transaction is final and proves nothing: what was reserved is free again."""
    reasons = [receipt.rejection_reason for receipt in weighed.receipts]
    has_failed = case.look.is_lost or case.look.sighting.has_failed
    failed = "transaction_failed" if has_failed else "wrong_recipient"
    reservation = reservation_of(attempt.operation, change.record)
    assert attempt.operation.outgoing_id is not None
    return failed_for_good(case.tx, attempt.operation.outgoing_id).joined(
        come_to_nothing(
            case.tx,
            case.draw,
            case.partition,
            change,
            attempt.option,
            attempt.operation,
            "fail",
            lambda: settled(case.tx, reservation, asked, succeeded=False),
            reason=next((reason for reason in reasons if reason), failed),
            now=case.now,
        )
    )


def _locked(tx: Transaction, kind: type[R], id: str) -> R:
    record = tx.get(kind, id, for_update=True)
    assert record is not None, f"no {kind.__name__} {id}"
    return record
