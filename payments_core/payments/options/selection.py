"""The option by which a Payment is to be paid: one at a time, of any kind."""

from __future__ import annotations

from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.errors import OptionLocked
from payments_core.payments.details import lock_direct_option, lock_option
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.options import direct_lifecycle as direct
from payments_core.payments.options import lifecycle
from payments_core.payments.options.record import DirectOption
from payments_core.payments.receipts.record import TrackedTransaction
from payments_core.payments.record import Payment
from payments_core.storage.port import Snapshot, Transaction


def require_no_pending_submission(tx: Transaction, payment: Payment, *, now: Instant) -> None:
    """Raise OptionLocked while a submitted transfer of the selected option may arrive."""
    selected = payment.selected_option_id
    if selected is None or selected not in payment.direct_option_ids:
        return
    option = lock_direct_option(tx, selected)
    sighted = direct.list_sighted_submissions(option, payment)
    coming = tx.get_many(TrackedTransaction, sighted, for_update=True).values()
    if coming and sum(one.amount for one in coming) >= direct.min_locking_amount(payment):
        raise OptionLocked(selected)
    if not direct.has_new_submission(option, now=now):
        return
    options = tx.get_many(DirectOption, payment.direct_option_ids, for_update=True).values()
    named = [id for each in options for id in direct.list_submissions(each)]
    tracked = tx.get_many(TrackedTransaction, named, for_update=True)
    locking = direct.list_locking_submissions(options, tracked, payment, now=now)
    if not locking.isdisjoint(direct.list_submissions(option)):
        raise OptionLocked(selected)


def has_locking_submission(snapshot: Snapshot, payment: Payment, *, now: Instant) -> bool:
    """Whether the payer has just submitted a transfer that is in no block yet, to any option.

    A second payment would be excess; an invented transfer prevents payment only briefly.
    """
    options = snapshot.get_many(DirectOption, payment.direct_option_ids).values()
    if not any(direct.has_new_submission(option, now=now) for option in options):
        return False
    named = [id for option in options for id in direct.list_submissions(option)]
    tracked = snapshot.get_many(TrackedTransaction, named)
    return bool(direct.list_locking_submissions(options, tracked, payment, now=now))


def supersede_selected(tx: Transaction, payment: Payment, now: Instant) -> Decision[None]:
    """The previously selected option is superseded; its unused operation is cancelled."""
    selected = payment.selected_option_id
    if selected is None:
        return Decision(None)
    if selected in payment.direct_option_ids:
        option = lock_direct_option(tx, selected)
        return direct.supersede(option, now=now).as_decision()
    vault_option, operation = lock_option(tx, selected)
    given_way = lifecycle.supersede(vault_option, now=now).as_decision()
    ended = funding.close(operation, "cancel", payment, now=now)
    return given_way if ended.record == operation else given_way.merge(ended.as_decision())
