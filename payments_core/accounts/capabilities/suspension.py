"""An account's capabilities are suspended and reactivated with it (contract §7)."""

from __future__ import annotations

from collections.abc import Iterable

from payments_core.accounts.capabilities import lifecycle
from payments_core.accounts.capabilities.record import CapabilityActivation
from payments_core.accounts.record import Account
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.evolve import evolve
from payments_core.storage.port import Transaction


def decide_suspension(
    tx: Transaction,
    known: Iterable[CapabilityActivation],
    account: Account,
    *,
    now: Instant,
) -> Decision[tuple[CapabilityActivation, ...]]:
    """The capabilities of an account whose status has changed.

    The account is locked, so none begins now; when the bank decides one later, the account's status
    is checked again.
    """
    outcome: Decision[tuple[CapabilityActivation, ...]] = Decision(())
    for id in sorted(activation.id for activation in known):
        activation = tx.get(CapabilityActivation, id, for_update=True)
        if activation is None:
            continue
        step = lifecycle.follow_account(activation, account, now=now)
        outcome = evolve(outcome, result=(*outcome.result, step.record))
        if step.events:
            outcome = outcome.merge(step.as_decision())
    return outcome
