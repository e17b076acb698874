"""The option by which a Payment is to be paid: one at a time, of any method."""

from __future__ import annotations

from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.errors import InvalidState, OptionLocked
from payments_core.payments.details import lock_operation, lock_option
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.options import lifecycle, submissions
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.receipts.record import TrackedTransaction
from payments_core.payments.record import Payment
from payments_core.payments.transitions import OPEN
from payments_core.storage.port import Snapshot, Transaction


def require_no_pending_submission(tx: Transaction, payment: Payment, *, now: Instant) -> None:
    """Raise OptionLocked while a submitted transfer of the selected option may arrive."""
    if payment.selected_option_id is None:
        return
    option = lock_option(tx, payment.selected_option_id)
    if is_with_provider(option):
        raise OptionLocked(option.id)
    if not option.submissions:
        return
    sighted = submissions.list_sighted_submissions(option, payment)
    coming = tx.get_many(TrackedTransaction, sighted, for_update=True).values()
    if coming and sum(one.amount_atomic for one in coming) >= submissions.min_locking_amount(
        payment
    ):
        raise OptionLocked(option.id)
    if not submissions.has_new_submission(option, now=now):
        return
    options = tx.get_many(PaymentOption, payment.option_ids, for_update=True).values()
    named = [id for each in options for id in submissions.list_submissions(each)]
    tracked = tx.get_many(TrackedTransaction, named, for_update=True)
    locking = submissions.list_locking_submissions(options, tracked, payment, now=now)
    if not locking.isdisjoint(submissions.list_submissions(option)):
        raise OptionLocked(option.id)


def require_no_pending_funds(
    tx: Transaction, payment: Payment, action: str, *, now: Instant
) -> None:
    """Raise OptionLocked if funds are already on their way, InvalidState if none may come."""
    if payment.authorized:
        raise OptionLocked(None)  # a vault's option belongs to its payer only
    require_no_pending_submission(tx, payment, now=now)
    if payment.status not in OPEN:
        raise InvalidState("payment", payment.status, action)


def is_with_provider(option: PaymentOption) -> bool:
    """Whether a provider says that it has been paid and has not delivered or returned it yet."""
    return option.has_provider and option.status == "processing" and not option.sighted


def has_locking_submission(snapshot: Snapshot, payment: Payment, *, now: Instant) -> bool:
    """Whether the payer has just submitted a transfer that is in no block yet, to any option, or
    a provider has been paid.

    A second payment would be excess; an invented transfer prevents payment only briefly.
    """
    options = snapshot.get_many(PaymentOption, payment.option_ids).values()
    if any(map(is_with_provider, options)):
        return True
    if not any(submissions.has_new_submission(option, now=now) for option in options):
        return False
    named = [id for option in options for id in submissions.list_submissions(option)]
    tracked = snapshot.get_many(TrackedTransaction, named)
    return bool(submissions.list_locking_submissions(options, tracked, payment, now=now))


def supersede_selected(tx: Transaction, payment: Payment, now: Instant) -> Decision[None]:
    """The previously selected option is superseded; its unused operation is cancelled."""
    if payment.selected_option_id is None:
        return Decision(None)
    option = lock_option(tx, payment.selected_option_id)
    superseded = lifecycle.supersede(option, now=now).as_decision()
    operation = lock_operation(tx, option)
    if operation is None:
        return superseded
    ended = funding.close(operation, "cancel", payment, now=now)
    return superseded if ended.record == operation else superseded.merge(ended.as_decision())
