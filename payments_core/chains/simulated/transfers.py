"""Transactions of a simulated chain: how they get into a block, and move tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise

import attrs

from payments_core.addresses import NATIVE_ADDRESS
from payments_core.chains.simulated.addresses import is_contract
from payments_core.chains.simulated.blocks import UNLOGGED_COIN, add_transaction_block
from payments_core.chains.simulated.calls import SimulatedCall
from payments_core.chains.simulated.records import (
    SimulatedBalance,
    SimulatedChainState,
    SimulatedLog,
    SimulatedTransaction,
)
from payments_core.chains.typed_data import ZERO_ADDRESS
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.errors import AmountOutOfRange
from payments_core.evolve import evolve
from payments_core.money import MAX_ATOMIC, Atomic
from payments_core.storage.port import Snapshot, Transaction
from payments_core.storage.records import Record

FAUCET = "0x000000000000000000000000000000000000fA0c"
"""The source of new tokens; its balance is the negative sum of all that it has issued."""

RECENT_BLOCKS = 64
"""The number of past blocks with known balances: more than the deepest reorg removes."""


@attrs.frozen(kw_only=True)
class Movement:
    """A transaction that is to move a token; signed ones have a sender and a slot.

    With `payer` the token goes there first, and on from there.
    """

    hash: str
    token_address: str
    source: str
    recipient: str
    amount_atomic: int
    payer: str | None = None
    reverts: bool = False
    sender: str | None = None
    slot: int | None = None

    @property
    def is_coin_report(self) -> bool:
        """Whether it only makes a log of the native coin that is at an address of ours."""
        return self.source == self.recipient and self.token_address == NATIVE_ADDRESS

    @property
    def is_unlogged(self) -> bool:
        """Whether it brings native coin to an address of ours: a real chain has no log of it."""
        return (
            self.sender is None
            and self.token_address == NATIVE_ADDRESS
            and is_contract(self.recipient)
        )


def to_movement(call: SimulatedCall, hash: str, *, reverts: bool) -> Movement:
    """The transfer of a signed transaction."""
    return Movement(
        hash=hash,
        token_address=call.token_address,
        source=call.source,
        recipient=call.recipient,
        amount_atomic=int(call.amount),
        payer=call.payer,
        reverts=reverts,
        sender=call.sender,
        slot=call.slot,
    )


def to_stranger_movement(
    chain_id: int,
    token_address: str,
    source: str | None,
    recipient: str,
    amount_atomic: int,
    name: str,
    reverts: bool,
) -> Movement:
    """A stranger's transfer, whose hash is made of its name."""
    return Movement(
        hash="0x" + hashlib.sha256(f"{chain_id}/{name}".encode()).hexdigest(),
        token_address=token_address,
        source=FAUCET if source is None else source,
        recipient=recipient,
        amount_atomic=amount_atomic,
        reverts=reverts,
    )


def include(
    tx: Transaction, state: SimulatedChainState, movement: Movement, now: Instant
) -> Decision[SimulatedTransaction]:
    """The next block with the transaction: with its transfer, or reverted without one.

    `state` must be locked. Raises AmountOutOfRange if the faucet is to issue more than a
    token can carry in total.
    """
    after = add_transaction_block(state, now)
    logs = () if _must_revert(tx, state, movement) else _to_logs(movement)
    row = SimulatedTransaction(
        id=f"{state.id}:{movement.hash}",
        chain_id=int(state.id),
        hash=movement.hash,
        block_number=after.highest,
        included_at_ms=after.added[-1].at,
        succeeded=bool(logs),
        logs=logs,
        sender=movement.sender,
        slot=movement.slot,
    )
    included = Decision(row, inserts=(row,)).merge(insert_or_replace(after))
    amount = Atomic(movement.amount_atomic)
    if logs and movement.is_coin_report:
        unlogged = {movement.recipient: Atomic(-amount), FAUCET: amount}
        logged = {movement.recipient: amount, ZERO_ADDRESS: Atomic(-amount)}
        return included.merge(
            _move_balances(tx, state, UNLOGGED_COIN, unlogged, after.highest),
            _move_balances(tx, state, NATIVE_ADDRESS, logged, after.highest),
        )
    if not logs or movement.source == movement.recipient or not movement.amount_atomic:
        return included
    changes = {movement.recipient: amount, movement.source: Atomic(-amount)}
    if movement.is_unlogged:
        gone = {movement.source: Atomic(-amount), ZERO_ADDRESS: amount}
        come = {movement.recipient: amount, FAUCET: Atomic(-amount)}
        return included.merge(
            _move_balances(tx, state, NATIVE_ADDRESS, gone, after.highest),
            _move_balances(tx, state, UNLOGGED_COIN, come, after.highest),
        )
    return included.merge(_move_balances(tx, state, movement.token_address, changes, after.highest))


def balance_id(chain_id: int | str, token_address: str, holder: str) -> str:
    """The id of a holder's balance."""
    return f"{chain_id}:{token_address}:{holder}"


def balance_at(row: SimulatedBalance | None, number: int) -> int:
    """The holder's balance when that block, one of the last, was the newest."""
    if row is None:
        return 0
    return row.total_atomic - sum(change for block, change in row.recent if block > number)


def load_amounts(
    snapshot: Snapshot, chain_id: int, token_address: str, holders: Sequence[str], number: int
) -> dict[str, int]:
    """Each holder's balance of a token when that block, one of the last, was the newest."""
    ids = {holder: balance_id(chain_id, token_address, holder) for holder in holders}
    return {
        holder: balance_at(snapshot.get(SimulatedBalance, id), number) for holder, id in ids.items()
    }


def insert_or_replace(record: Record) -> Decision[None]:
    """Insert a new record, or replace a stored one."""
    if record.version == 0:
        return Decision(None, inserts=(record,))
    return Decision(None, replaces=(record,))


def _must_revert(tx: Transaction, state: SimulatedChainState, movement: Movement) -> bool:
    if movement.reverts or movement.source == FAUCET:
        return movement.reverts
    token = UNLOGGED_COIN if movement.is_coin_report else movement.token_address
    id = balance_id(state.id, token, movement.source)
    payer = tx.get(SimulatedBalance, id, for_update=True)
    return (payer.total_atomic if payer else 0) < movement.amount_atomic


def _to_logs(movement: Movement) -> tuple[SimulatedLog, ...]:
    if movement.is_coin_report:
        ways = [
            (NATIVE_ADDRESS, ZERO_ADDRESS, movement.recipient),
            (UNLOGGED_COIN, movement.recipient, FAUCET),
        ]
    elif movement.is_unlogged:
        ways = [
            (NATIVE_ADDRESS, movement.source, ZERO_ADDRESS),
            (UNLOGGED_COIN, FAUCET, movement.recipient),
        ]
    else:
        ways = [(movement.token_address, *way) for way in pairwise(_stops(movement))]
    return tuple(
        SimulatedLog(
            token_address=token,
            sender=sender,
            recipient=recipient,
            amount_atomic=movement.amount_atomic,
        )
        for token, sender, recipient in ways
    )


def _stops(movement: Movement) -> list[str]:
    """The addresses at which a transfer stops, from the first to the last."""
    stops = [movement.source, movement.payer, movement.recipient]
    return [place for place in stops if place is not None]


def _move_balances(
    tx: Transaction,
    state: SimulatedChainState,
    token_address: str,
    changes: Mapping[str, Atomic],
    number: int,
) -> Decision[None]:
    moved: Decision[None] = Decision(None)
    for holder, change in changes.items():
        id = balance_id(state.id, token_address, holder)
        row = tx.get(SimulatedBalance, id, for_update=True) or SimulatedBalance(id=id)
        recent = tuple(item for item in row.recent if item[0] > number - RECENT_BLOCKS)
        changed = evolve(
            row, total_atomic=row.total_atomic + change, recent=(*recent, (number, change))
        )
        if -changed.total_atomic > MAX_ATOMIC:
            raise AmountOutOfRange("the total is larger than any token supports")
        moved = moved.merge(insert_or_replace(changed))
    return moved
