"""What a simulated chain does with a signed transaction: it is in a block at once, or refused."""

from __future__ import annotations

from payments_core.chains.simulated.calls import SimulatedCall
from payments_core.chains.simulated.failures import FaultInjection
from payments_core.chains.simulated.modules import decide_step
from payments_core.chains.simulated.records import (
    SimulatedChainState,
    SimulatedSender,
    SimulatedTransaction,
)
from payments_core.chains.simulated.transfers import include, insert_or_replace, to_movement
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.evolve import evolve
from payments_core.storage.port import Transaction

INJECTED_FAILURE = "the sandbox makes this call fail"


def decide_broadcast(
    tx: Transaction,
    state: SimulatedChainState,
    faults: FaultInjection,
    hash: str,
    call: SimulatedCall,
    now: Instant,
) -> Decision[str | None]:
    """Why a transaction is refused, or None. `state` must be locked.

    One that is in the chain is accepted again, and changes nothing.
    """
    outcome: Decision[str | None] = Decision(None)
    sender_id = f"{state.id}:{call.sender}"
    sender = tx.get(SimulatedSender, sender_id, for_update=True)
    next_slot = sender.next_slot if sender else 0
    if tx.get(SimulatedTransaction, f"{state.id}:{hash}", for_update=True) is None:
        if call.slot != next_slot:
            return evolve(outcome, result=f"slot {call.slot} is not the next slot of the sender")
        if sender is not None and sender.coins == 0:
            return evolve(outcome, result="the sender has too few coins for the fee")
        done: Decision[bool] = Decision(True)
        reverts = faults.take("transfer")
        if call.module is not None and not reverts:
            done = decide_step(tx, call.chain_id, call.module, hash)
        movement = to_movement(call, hash, reverts=reverts or not done.result)
        used = _pay_fee(sender or SimulatedSender(id=sender_id), next_slot + 1)
        included = include(tx, state, movement, now)
        outcome = outcome.merge(included, insert_or_replace(used), done)
    if faults.take("lost_answer"):
        outcome = evolve(outcome, result=INJECTED_FAILURE)
    return outcome.merge(faults.as_decision())


def decide_coins(tx: Transaction, sender_id: str, coins: int | None) -> Decision[None]:
    """Give a sender coins for so many transactions from now on."""
    sender = tx.get(SimulatedSender, sender_id, for_update=True) or SimulatedSender(id=sender_id)
    return insert_or_replace(evolve(sender, coins=coins))


def _pay_fee(sender: SimulatedSender, next_slot: int) -> SimulatedSender:
    left = None if sender.coins is None else sender.coins - 1
    return evolve(sender, next_slot=next_slot, coins=left)
