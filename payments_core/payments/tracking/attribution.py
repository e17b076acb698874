"""Attributes strangers' transfers and payers' hints to options.

A Payment has one escrow, whichever option a payer uses: a transfer is attributed to the option
whose provider or payer names its transaction, else to an option of its sender, the selected one, or
the newest.
"""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.chains.backoff import POLL_MS
from payments_core.clock import MINUTE, Instant
from payments_core.engine.decision import Decision
from payments_core.evolve import evolve
from payments_core.payments.details import lock_option
from payments_core.payments.options import lifecycle
from payments_core.payments.options.lifecycle import is_open
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.options.submissions import has_submitted
from payments_core.payments.receipts.evaluation import Evaluation, ObservedTransaction
from payments_core.payments.receipts.record import Receipt, TrackedTransaction
from payments_core.payments.record import Payment
from payments_core.payments.transitions import OPEN
from payments_core.storage.damaged_records import lock_readable
from payments_core.storage.port import Transaction

HINT_TTL_MS = 10 * MINUTE
"""How long a transaction is looked for that only a payer has reported."""


# Options.


def find_public_option(
    tx: Transaction,
    partition: str,
    payment: Payment,
    tracked: TrackedTransaction,
    observed: ObservedTransaction,
) -> PaymentOption | None:
    """The public option of a transaction, locked; None if it pays by no such option.

    After the first transfer it stays the same. An option whose row is damaged is not chosen: the
    transfer counts towards the Payment by whichever option.
    """
    if tracked.is_ours:
        return None
    if tracked.option_id is not None:
        return lock_option(tx, tracked.option_id)
    logs = observed.view.logs if observed.view is not None else ()
    senders = [log.sender for log in logs if log.recipient == payment.escrow_address]
    if not senders:
        return None
    options = lock_readable(tx, partition, PaymentOption, payment.option_ids)
    public = [options[id] for id in payment.option_ids if id in options and options[id].is_public]
    return _choose_option(public, payment, tracked, senders[0]) if public else None


def update_public_option(
    option: PaymentOption,
    before: Payment,
    after: Payment,
    tracked: TrackedTransaction,
    known: Sequence[Receipt],
    receipts: Sequence[Receipt],
    *,
    now: Instant,
) -> Decision[None]:
    """The option after an observation that turned `known` into `receipts`, with Payment `after`."""
    gained = _verified_amount(receipts, option) - _verified_amount(known, option)
    moved = lifecycle.apply_observation(option, before, after, tracked.id, gained, now)
    if after.status not in OPEN:  # it takes no more funds
        moved = moved.then(lifecycle.close, "cancel", now=now)
    return Decision(None) if moved.record == option else moved.as_decision()


def name_payer(receipt: Receipt, option: PaymentOption | None) -> Receipt:
    """The receipt with the payer's own address, if the router of its option has sent it.

    Its sender is then the router's wallet, or nobody if the token was minted.
    """
    if option is None or option.refund_address is None or receipt.refund_to is not None:
        return receipt
    if receipt.transaction_hash not in option.deliveries:
        return receipt
    return evolve(receipt, refund_to=option.refund_address)


def _choose_option(
    options: Sequence[PaymentOption], payment: Payment, tracked: TrackedTransaction, sender: str
) -> PaymentOption:
    chain_id, hash = tracked.chain_id, tracked.transaction_hash
    rules = (
        [option for option in options if hash in option.deliveries][:1],
        [option for option in options if has_submitted(option, chain_id, hash)][:1],
        [option for option in options if option.payer_address == sender and is_open(option)],
        [option for option in options if option.payer_address == sender],
        [option for option in options if option.id == payment.selected_option_id],
        [option for option in options if is_open(option)],
        options,
    )
    return next(fitting[-1] for fitting in rules if fitting)


def _verified_amount(receipts: Sequence[Receipt], option: PaymentOption) -> int:
    own = (receipt for receipt in receipts if receipt.option_id == option.id)
    return sum(receipt.amount_atomic for receipt in own if receipt.status == "verified")


# Hints.


def is_only_hint(tracked: TrackedTransaction, evaluation: Evaluation) -> bool:
    """Whether only a payer reported the transaction, and it brings the Payment nothing yet."""
    return tracked.hinted_until_ms is not None and not tracked.is_ours and not evaluation.receipts


def recheck_hint(
    tracked: TrackedTransaction, observed: ObservedTransaction, *, now: Instant
) -> Decision[None]:
    """Look for it again, less and less often, until its time is over or it is in a block.

    In a block without a transfer to the escrow it is dropped: a scan sees any later
    change. So an invented transaction is looked for only about a dozen times.
    """
    assert tracked.hinted_until_ms is not None
    if observed.block is None and now < tracked.hinted_until_ms:
        waited_ms = min(
            abs(now - tracked.created_at_ms), HINT_TTL_MS
        )  # the clock may have been ahead
        return Decision(None, next_run_at=now + max(POLL_MS, waited_ms))
    return Decision(None, replaces=(evolve(tracked, watched=False),))
