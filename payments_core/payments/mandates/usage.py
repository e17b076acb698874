"""Drawing on a mandate within a decision, and giving back the amount of a failed collect."""

from __future__ import annotations

from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.errors import NotFound
from payments_core.payments.mandates import lifecycle
from payments_core.payments.mandates.record import Mandate
from payments_core.payments.record import Payment
from payments_core.storage.port import Transaction


def charge_mandate(
    tx: Transaction, mandate_id: str, amount: int, *, now: Instant
) -> Decision[Mandate]:
    """Count an amount against the mandate's period. Raises NotFound, InvalidState, PolicyDenied."""
    mandate = tx.get(Mandate, mandate_id, for_update=True)
    if mandate is None:
        raise NotFound("mandate")
    after = lifecycle.charge(mandate, amount, now=now)
    return after.as_decision(after.record)


def void_mandate_charge(tx: Transaction, payment: Payment, amount: int) -> Decision[None]:
    """Take an amount off the mandate of a collect whose transfer failed."""
    source = payment.source
    if source is None or source.mandate_id is None:
        return Decision(None)
    mandate = tx.get(Mandate, source.mandate_id, for_update=True)
    assert mandate is not None
    after = lifecycle.void_charge(mandate, amount, charged_at=source.reserved_at_ms)
    return Decision(None) if after.record == mandate else after.as_decision()
