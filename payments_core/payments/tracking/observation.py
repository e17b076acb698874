"""The meaning of one look at a transaction, committed in one step.

Receipts, the operation that sent the transaction, its option, the Payment with its journal, the
vault's balance: all of them move together or not at all (contract §6 "In step"). No other decision
moves so much at once, so this docstring walks through one look, in the order of
`apply_observation`. `case.py` has its inputs, `counting.py` the receipts of steps 5 and 6, and
`attempts.py` the operation of step 10.

Before. A job (`jobs.py`) has asked the chain, outside any transaction: the heads first, then
the transaction, then, if the answer ends a reservation, the vault's balance. A state judged
final is therefore contained in that balance. The answers are an Observation. Its `view` is None
if the node does not know the transaction; the view's block is None if it is in no block. When
`apply_observation` runs, an Observation is already old, and the rows that it reads may be newer.

1. Lock. Everything that changes a Payment locks it first. So two looks, a cancellation or an expiry
wait for each other here, and the Payment's other rows may be locked in any order. Of the rows
locked later, only a mandate and a balance belong to several Payments; the mandate comes first.

Evidence that is no longer `watched` was decided by another job: a scan that finds a transaction
after a payer's hint adds a job, and does not wait for the slow one of the hint. Evidence in another
version than the job has read was written meanwhile: found in another block, or known to be ours.
The Observation is too old for that, so the job asks the chain again.

2. The sender. The attempt is the operation that sent the transaction; a stranger's has none. It is
`live` while its vault's balance is reserved, and only then does the look decide it. A transfer
of an ended operation still counts, like a stranger's: the money is there.

3. The same transfer under another hash. All versions signed for one transfer have its nonce,
so at most one of them gets into a block. `included_hash` is its hash, if it is not this one. It
is watched from this commit on, so that the money is followed at every moment. If this hash never
had a receipt, that is all. If it had, its block was undone: the look continues and reverses them.

4. The public option. A stranger's transfer may be what a payer has announced. Its option is chosen
when a transfer is first seen and kept in the evidence: a later offer must not take the receipts
of an earlier one.

A stranger's transfer in a block later than the expiry is late. If the Payment has not expired yet,
since its chain must be read first, the look is repeated until it has.

5. Weigh. `evaluation.py` compares the transaction's logs with the known receipts. If there is no
receipt, and only a payer has reported the transaction, then the evidence is only a hint: it is
checked less and less often, and finally dropped.

6. Count. Undone receipts are reversed before anything is counted: a log may come back with another
amount, and then needs the room that it had. A receipt keeps the part of it that counted towards the
escrow, so the journal reverses exactly what it had posted. A release that relied on the receipt is
stopped, if it is not signed yet. If it is, a node may have it: it continues, the escrow is short,
and the books show it.

A transfer that is valid but not final makes the Payment wait for it (`add_pending_transfer`),
unless it already waits for the live operation. `apply_receipt` ends that wait in the same step, so
that no Payment waits for a transfer that it has received. A transfer that is rejected as another
token, or as one on another chain, is misdirected: the Payment reports it (`misdirected.py`).

7. Is it decided? `_is_decided` says whether another look could bring anything else. If not, the
Payment stops waiting for the transaction. It also stops if the node does not know it now, or
invisible dust would block payers; a returning transfer is sighted again. And it stops if
the sender turns out to be a live operation, for which it already waits.

8. When to look again. A decided transaction may still be undone, also before it is final if the
Payment accepts it sooner. A scan notices a reorg of the blocks that it remembers, and may have
asked a node that saw others: so the job stays until the block is final and scanned. After that
`next_run_at` is None: the job ends with this commit, and evidence that is not `watched` gets a new
job when its block is undone. Refunds that waited for that are sent (`refunds/waiting.py`). Only
rows that changed are written: a look that saw nothing new sends no other look back to step 1.

9. The public option follows the counted Payment, and succeeds with what covers it.

10. The operation. `reading` is the vault's balance at a final height. It is None until the
transaction is final, or its nonce was taken by a foreign transaction (`nonce_was_taken`). Until
then the operation stays live, and an undone transaction is sent again. With the balance the
operation ends:

- It has proven its transfer: operation and option succeed, and the reservation is spent.
- It has proven nothing: the operation fails, its transaction is never sent again, and its share of
  the mandate and the balance is released.

In both cases one write has the new total and the end of the reservation. If the reservation were
given back against the old total, the same funds could be authorized twice. If an authorization has
read a newer balance meanwhile, the vault refuses the old one with StaleBalance: nothing of this
look is committed, and the job looks again.

11. The Payment is last, since its next step depends on all of the above: `advance_payment`
adds the release of a covered Payment, which ends its other open options except `ended`, which this
decision already writes: two writes of one row would collide. Or it wakes the job that expires one
whose time is over.
"""

from __future__ import annotations

from payments_core.chains.backoff import POLL_MS, REORG_RECHECK_MS, poll_again
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.payments import lifecycle as payments
from payments_core.payments.details import lock_payment
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.progress import advance_payment
from payments_core.payments.receipts.discovery import track_transaction
from payments_core.payments.receipts.evaluation import ObservedTransaction
from payments_core.payments.receipts.record import Receipt, TrackedTransaction
from payments_core.payments.record import Payment
from payments_core.payments.refunds.waiting import end_wait
from payments_core.payments.tracking.attempts import (
    advance_operation,
    confirm_operation,
    fail_operation,
    verified_amount,
)
from payments_core.payments.tracking.attribution import (
    find_public_option,
    is_only_hint,
    recheck_hint,
    update_public_option,
)
from payments_core.payments.tracking.case import Case, Observation, lock_attempt, lock_row
from payments_core.payments.tracking.counting import apply_receipts, note_unsettled, weigh
from payments_core.storage.port import Transaction
from payments_core.storage.records import Record


def apply_observation(
    tx: Transaction,
    id_sequence: IdSequence,
    partition: str,
    known: TrackedTransaction,
    observation: Observation,
    *,
    now: Instant,
) -> Decision[None]:
    """The decision of a look; `known` is the evidence that it was made for. Raises StaleBalance."""
    payment = lock_payment(tx, known.payment_id)  # 1. Lock.
    found = lock_row(tx, TrackedTransaction, known.id)
    if not found.watched:
        return Decision(None)
    if found.version != known.version:
        return poll_again(now)
    attempt = lock_attempt(tx, found)  # 2. The sender.
    instead = _follow_included(tx, found, observation, now)  # 3. The same under another hash.
    if observation.included_hash is not None and not found.receipt_ids:
        return instead.merge(Decision(None, replaces=(evolve(found, watched=False),)))
    option = find_public_option(  # 4. The public option.
        tx, partition, payment, found, observation.observed
    )
    tracked = evolve(found, option_id=option.id) if option else found
    receipts = tuple(lock_row(tx, Receipt, id) for id in tracked.receipt_ids)
    case = Case(
        tx, id_sequence, partition, observation, now, payment, tracked, attempt, option, receipts
    )
    if case.is_too_late:
        return _wait_for_expiry(case).merge(instead)
    evaluation = weigh(case)  # 5. Weigh.
    if is_only_hint(tracked, evaluation):
        return recheck_hint(tracked, observation.observed, now=now)
    counted = apply_receipts(case, evaluation)  # 6. Count.
    step, live, ends = counted.step, case.live, _is_decided(case)  # 7. Is it decided?
    if ends or observation.observed.view is None or live is not None:
        step = step.then(payments.end_attempt, tracked.id, now=now, reason="reorged")
    next_run_at = _next_check_at(observation, ends=ends, now=now)  # 8. When to look again.
    step = step.then(note_unsettled, case, counted.receipts, is_followed=next_run_at is not None)
    noted = _update_tracked(
        tracked,
        counted.receipts,
        observation.observed,
        evaluation.amount_atomic,
        watched=next_run_at is not None,
    )
    base = Decision(None, next_run_at=next_run_at).merge(
        _save_changes((*receipts, found), (*counted.receipts, noted)),
        counted.stopped,
        instead,
    )
    if next_run_at is None and not evaluation.reorged:
        base = base.merge(end_wait(tx, partition, payment, found.transaction_hash, now=now))
    if option is not None:  # 9. The public option.
        base = base.merge(
            update_public_option(
                option, payment, step.record, tracked, receipts, counted.receipts, now=now
            )
        )
    if live is None:  # 10. The operation; 11. and the Payment last.
        return base.merge(_write_payment(case, step, ended=option.id if option else None))
    if observation.reading is None:
        moved = advance_operation(case, live, step.record)
        return base.merge(moved, _write_payment(case, step, ended=None))
    if not verified_amount(evaluation):
        return base.merge(fail_operation(case, live, observation.reading, step, evaluation))
    confirmed = confirm_operation(case, live, observation.reading, step.record, evaluation)
    done = step.then(payments.end_attempt, live.operation.id, now=now, reason="confirmed")
    return base.merge(confirmed, _write_payment(case, done, ended=live.option.id))


def _wait_for_expiry(case: Case) -> Decision[None]:
    """Look again: the Payment expires first, and then the transfer is late.

    A reorg may have moved the transfer here from a block that was in time: nothing waits for it
    any longer.
    """
    tracked, block = case.tracked, case.observation.observed.block
    assert block is not None
    noted = evolve(tracked, block_number=block.number, block_hash=block.hash, block_time=block.time)
    step = Step(case.payment).then(payments.end_attempt, tracked.id, now=case.now, reason="reorged")
    return poll_again(case.now).merge(
        _save_changes((tracked,), (noted,)), _write_payment(case, step, ended=None)
    )


def _follow_included(
    tx: Transaction, found: TrackedTransaction, observation: Observation, now: Instant
) -> Decision[None]:
    """Have the transaction checked that is in a block instead of this one."""
    if observation.included_hash is None:
        return Decision(None)
    return track_transaction(
        tx, found.payment_id, found.chain_id, observation.included_hash,
        now=now, due_at=now, option_id=found.sending_option_id,
    )  # fmt: skip


def _is_decided(case: Case) -> bool:
    """Whether the amount of the transaction is decided.

    A missing stranger's transaction may be on another fork: not every node has switched yet.
    It is looked for until the height at which it was is final without it. Our own is sent again
    until it is in a block, or can never be in one.
    """
    observation, observed, tracked, attempt = (
        case.observation,
        case.observation.observed,
        case.tracked,
        case.attempt,
    )
    if observation.included_hash is not None or observation.nonce_was_taken or observed.is_final:
        return True
    if observed.view is not None:
        return False
    if attempt is not None and attempt.operation.status in (*funding.LIVE, "confirmed"):
        return False
    return tracked.block_number is None or observed.final_height >= tracked.block_number


def _next_check_at(observation: Observation, *, ends: bool, now: Instant) -> Instant | None:
    """When to look again: even if decided, until it is final and a scan would notice a reorg."""
    if not ends:
        return now + POLL_MS
    block = observation.observed.block
    return (
        None if block is None or block.number <= observation.settled_to else now + REORG_RECHECK_MS
    )


def _update_tracked(
    tracked: TrackedTransaction,
    receipts: tuple[Receipt, ...],
    observed: ObservedTransaction,
    amount: int,
    *,
    watched: bool,
) -> TrackedTransaction:
    block = observed.block
    return evolve(
        tracked,
        receipt_ids=tuple(receipt.id for receipt in receipts),
        block_number=block.number if block else tracked.block_number,
        block_hash=block.hash if block else None,
        block_time=block.time if block else None,
        amount_atomic=Atomic(amount),
        watched=watched,
    )


def _save_changes(before: tuple[Record, ...], after: tuple[Record, ...]) -> Decision[None]:
    """Insert the new receipts, replace the changed ones."""
    return Decision(
        None,
        inserts=tuple(record for record in after if record.version == 0),
        replaces=tuple(record for record in after if record.version and record not in before),
    )


def _write_payment(case: Case, step: Step[Payment], *, ended: str | None) -> Decision[None]:
    """The Payment with its next step, unless the look has changed nothing of it."""
    if step == Step(case.payment):
        return Decision(None)
    return advance_payment(
        case.tx, case.id_sequence, case.partition, step, now=case.now, ended=ended
    )
