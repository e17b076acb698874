"""Which option a Payment is to be paid by: one at a time, whatever its kind."""

from __future__ import annotations

from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.errors import OptionLocked
from payments_core.payments.details import lock_direct_option, lock_option
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.options import direct_lifecycle as direct
from payments_core.payments.options import lifecycle
from payments_core.payments.receipts.record import TrackedTransaction
from payments_core.payments.record import Payment
from payments_core.storage.port import Transaction


def require_no_pending_submission(tx: Transaction, payment: Payment, *, now: Instant) -> None:
    """Raise OptionLocked while a transfer that was submitted to the selected option may come."""
    selected = payment.selected_option_id
    if selected is None or selected not in payment.direct_option_ids:
        return
    option = lock_direct_option(tx, selected)
    if direct.is_locked(option, payment):
        raise OptionLocked(selected)
    for tracked_id in direct.list_new_submissions(option, now=now):
        tracked = tx.get(TrackedTransaction, tracked_id, for_update=True)
        if tracked is not None and tracked.watched and not tracked.receipt_ids:
            raise OptionLocked(selected)


def supersede_selected(tx: Transaction, payment: Payment, now: Instant) -> Decision[None]:
    """The option selected until now gives way; its unused operation is cancelled."""
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
