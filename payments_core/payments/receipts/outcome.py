"""What a look at a transaction means, committed in one step.

Receipts, the operation that sent the transaction, its option, the Payment with its journal, the
vault's balance: all of them move together or not at all (contract §6 "In step"). No other file
moves so much at once, so this page goes through one look, in the order of `decide`.

Before. A job (`watching.py`) has asked the chain, outside any transaction: the heads first, then
the transaction, then, where the answer ends a reservation, the vault's balance. What is judged
final is therefore contained in that balance. The answers are a Look. Its `view` is None where the
node does not know the transaction; the view's block is None where it is in no block. When `decide`
runs, a Look is already old, and the rows that it meets may be newer.

1. Lock. Everything that changes a Payment locks it first. So two looks, a cancellation or an expiry
wait for each other here, and the Payment's other rows may be locked in any order. Of what is locked
later, only a mandate and a balance belong to several Payments; the mandate comes first.

Evidence that is not `watched` any more was decided by another job: a scan that finds a transaction
after a payer's hint adds a job, and does not wait for the slow one of the hint. Evidence in another
version than the job has read was written meanwhile: found in another block, or known to be ours.
The Look does not answer that, so the job asks the chain once more.

2. Who sent it. The attempt is the operation that sent the transaction; a stranger's has none. It is
`live` while its vault's balance is reserved, and only then does the look decide it. What arrives
from an operation that has ended still counts, like a stranger's: the money is there.

3. The same transfer under another hash. All bytes that are signed for one transfer have its nonce,
so one of them at most gets into a block. `included_as` is its hash, where it is not this one. It is
watched from this commit on, so that the money is followed at every moment. If this hash never had
a receipt, that is all. If it had, its block was undone: the look goes on and takes them back.

4. The direct option. A stranger's transfer may be what a payer has announced. Its option is chosen
at the first sight of a transfer and kept in the evidence: a later offer must not draw the receipts
of an earlier one to itself.

5. Weigh. `evidence.py` compares the transaction's logs with the known receipts. If there is no
receipt, and only a payer has told of the transaction, then the evidence is a mere hint: it is
looked at less and less often, and dropped in the end.

6. Count. What was undone is taken back before anything is counted: a log may come back with another
amount, and then needs the room that it had. A receipt keeps the part of it that counted towards the
escrow, so the journal reverses exactly what it had posted. A release that relied on the receipt is
stopped, if it has no nonce yet. If it has one, its bytes may be out: it goes on, the escrow is
short, and the books say so.

A transfer that is right but not final makes the Payment wait for it (`sight`), unless it waits for
the live operation already. `count` ends that wait in the same step, so that no Payment waits for
what it has received.

7. Is it decided? `_ends` says whether another look could bring anything else. If not, the Payment
stops waiting for the transaction. It also stops where the node does not know it now, or dust that
nobody sees would keep payers out; what comes back is sighted again. And it stops where the sender
turns out to be a live operation, for which it waits by that name.

8. When to look again. What is decided may still be undone beyond finality. A scan notices that for
blocks that it has passed, so until then the job stays. After that `again_at` is None: the job ends
with this commit, and evidence that is not `watched` gets a new job when its block is undone. Only
rows that changed are written: a look that saw nothing new sends no other look back to step 1.

9. The direct option follows the Payment as counting left it, and succeeds by what covers that.

10. The operation. `asked` is the vault's balance at a final height. It is None until the
transaction is final, or its nonce was taken by one that is not ours (`is_lost`). Until then the
operation stays live, and what was undone is sent again. With the balance the operation ends:

- It has proven its transfer: operation and option succeed, and the reservation is spent.
- It has proven nothing: the operation fails, its bytes are never sent again, and what it took of
  the mandate and the balance is free.

In both cases one write has the new total and the end of the reservation. Were the reservation given
back against the old total, the same funds could be authorized twice. Where an authorization has
read a newer balance meanwhile, the vault refuses the old one with BalanceOutdated: nothing of this
look is committed, and the job looks again.

11. The Payment is last, since what follows for it depends on all of the above: `carry_on` adds the
release of what is covered, or the expiry of what is late. An expiry ends every open option but
`ended`, which this decision writes already: two writes of one row would collide.
"""

from __future__ import annotations

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
from payments_core.storage.records import R, Record


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
        is_live = self.attempt is not None and self.attempt.operation.status in funding.LIVE
        return self.attempt if is_live else None


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
    payment = locked_payment(tx, known.payment_id)  # 1. Lock.
    found = _locked(tx, Evidence, known.id)
    if not found.watched:
        return Decision(None)
    if found.version != known.version:
        return poll_again(now)
    attempt = _attempt(tx, found)  # 2. Who sent it.
    instead = _follow_included(tx, found, look, now)  # 3. The same under another hash.
    if look.included_as is not None and not found.receipt_ids:
        return instead.joined(Decision(None, replaces=(attrs.evolve(found, watched=False),)))
    option = direct_option_of(tx, payment, found, look.sighting)  # 4. The direct option.
    evidence = attrs.evolve(found, direct_option_id=option.id) if option else found
    receipts = tuple(_locked(tx, Receipt, id) for id in evidence.receipt_ids)
    case = _Case(tx, draw, partition, look, now, payment, evidence, attempt, option, receipts)
    weighed = _weigh(case)  # 5. Weigh.
    if is_mere_hint(evidence, weighed):
        return hinted(evidence, look.sighting, now=now)
    counted = _count(case, weighed)  # 6. Count.
    change, live, ends = counted.change, case.live, _ends(case)  # 7. Is it decided?
    if ends or look.sighting.view is None or live is not None:
        change = change.then(payments.end_attempt, evidence.id, now=now, reason="reorged")
    again_at = _again_at(look, ends=ends, now=now)  # 8. When to look again.
    noted = _noted(evidence, counted.receipts, look.sighting, watched=again_at is not None)
    base = Decision(None, again_at=again_at).joined(
        _stored((*receipts, found), (*counted.receipts, noted)), counted.stopped, instead
    )
    if option is not None:  # 9. The direct option.
        base = base.joined(
            carried(option, payment, change.record, evidence, receipts, counted.receipts, now=now)
        )
    if live is None:  # 10. The operation; 11. and the Payment last.
        return base.joined(_write_payment(case, change, ended=option.id if option else None))
    if look.asked is None:
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


def _follow_included(tx: Transaction, found: Evidence, look: Look, now: Instant) -> Decision[None]:
    """Have the transaction looked at that is in a block instead of this one."""
    if look.included_as is None:
        return Decision(None)
    return watched(
        tx, found.payment_id, found.chain_id, look.included_as,
        now=now, due_at=now, option_id=found.option_id,
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
    if attempt is not None and attempt.operation.status in (*funding.LIVE, "confirmed"):
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


# The receipts and the Payment.


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
    hash = case.evidence.transaction_hash  # of all that were signed for it, the one that moved it
    confirmed = _noticed(case, attempt.operation, payment).then(
        funding.step, "confirm", payment, now=case.now, transaction_hash=hash
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
    void = failed_for_good(case.tx, attempt.operation.outgoing_id)
    nothing = come_to_nothing(
        case.tx, case.draw, case.partition, change, attempt.option, attempt.operation, "fail",
        lambda: settled(case.tx, reservation, asked, succeeded=False),
        reason=next((reason for reason in reasons if reason), failed), now=case.now,
    )  # fmt: skip
    return void.joined(nothing)


def _locked(tx: Transaction, kind: type[R], id: str) -> R:
    record = tx.get(kind, id, for_update=True)
    assert record is not None, f"no {kind.__name__} {id}"
    return record
