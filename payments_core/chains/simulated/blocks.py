"""The blocks of a simulated chain: computed from its state and the time, none of them stored."""

from __future__ import annotations

import hashlib

from payments_core.chains.port import Block, Heads, TransactionView, TransferLog
from payments_core.chains.simulated.records import (
    AddedBlocks,
    SimulatedChainState,
    SimulatedTransaction,
)
from payments_core.clock import SECOND, Instant
from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import IdSequence
from payments_core.evolve import evolve
from payments_core.storage.port import Transaction

UNLOGGED_COIN = "native coin without a log"
"""The token of the books for native coin that has come to an address of ours, and has no log."""

SAFE_CONFIRMATIONS = 2
CONFIRMATIONS = 3
"""A block is safe, and final, when this many blocks are on top of it."""

COMMIT_MS = 900
"""How long the commit of a transaction may take before readers see its block empty."""

MAX_ADDED = 32
"""The number of additions by which blocks have exact times; those before are final."""

MAX_FORKS = 64
"""The number of forks that are distinguished; blocks of older ones have long been final."""


def decide_beginning(
    chain_id: int, instant: Instant, tx: Transaction, id_sequence: IdSequence
) -> Decision[SimulatedChainState]:
    """The chain as it is stored, or else a new one that begins at `instant`."""
    stored = tx.get(SimulatedChainState, str(chain_id), for_update=True)
    if stored is not None:
        return Decision(stored)
    begun = SimulatedChainState(id=str(chain_id), began_at_ms=instant)
    return Decision(begun, inserts=(begun,))


def height(state: SimulatedChainState, now: Instant) -> int:
    """The number of the newest block."""
    grown = (now - state.began_at_ms) // SECOND + state.extra_blocks
    return max(grown, state.highest)  # a clock that steps back removes no block


def add_blocks(state: SimulatedChainState, now: Instant, blocks: int) -> SimulatedChainState:
    """The chain with more blocks."""
    return _add(state, now, blocks, height(state, now) + blocks)


def add_transaction_block(state: SimulatedChainState, now: Instant) -> SimulatedChainState:
    """The chain with a block for a transaction, as its newest.

    Blocks come with time, and a reader during the commit of the transaction may see
    those of the next moments. They must stay as empty as they were seen.
    """
    return _add(state, now, 1, height(state, now + COMMIT_MS) + 1)


def _add(
    state: SimulatedChainState, now: Instant, blocks: int, highest: int
) -> SimulatedChainState:
    newest = height(state, now)
    added = AddedBlocks(
        first=newest + 1,
        last=highest,
        at=max(now, block_time(state, newest)),  # a clock may step back
        extra_before=state.extra_blocks,
    )
    return evolve(
        state,
        extra_blocks=state.extra_blocks + blocks,
        highest=highest,
        added=(*state.added, added)[-MAX_ADDED:],
    )


def add_fork(
    state: SimulatedChainState, now: Instant, first: int, nonce: str
) -> SimulatedChainState:
    """The chain with other blocks from `first` on. It stays as high as it is."""
    kept = tuple(fork for fork in state.forks if fork[0] < first)
    return evolve(state, forks=(*kept, (first, nonce))[-MAX_FORKS:], highest=height(state, now))


def heads(state: SimulatedChainState, now: Instant) -> Heads:
    """The newest block, the newest final one, and how high the newest safe one is."""
    latest = height(state, now)
    final = block(state, max(0, latest - CONFIRMATIONS))
    return Heads(block(state, latest), final, max(0, latest - SAFE_CONFIRMATIONS))


def block(state: SimulatedChainState, number: int) -> Block:
    """The block of that height; its hash identifies the fork."""
    nonces = (nonce for first, nonce in reversed(state.forks) if first <= number)
    text = ":".join((state.id, str(number), *(nonce for nonce in [next(nonces, "")] if nonce)))
    hash = "0x" + hashlib.sha256(text.encode()).hexdigest()
    return Block(number, hash, block_time(state, number))


def block_time(state: SimulatedChainState, number: int) -> Instant:
    """When the block of that height came: with an addition, or by the second after it."""
    extra_blocks = state.extra_blocks
    earliest = state.began_at_ms
    for added in reversed(state.added):
        if number > added.last:
            earliest = added.at
            break
        if number >= added.first:
            return added.at
        extra_blocks = added.extra_before
    return max(earliest, state.began_at_ms + (number - extra_blocks) * SECOND)


def view(state: SimulatedChainState, row: SimulatedTransaction) -> TransactionView:
    """A transaction as the chain shows it."""
    shown = block(state, row.block_number)
    if row.included_at_ms is not None:
        shown = evolve(shown, time=row.included_at_ms)
    return TransactionView(row.hash, shown, row.succeeded, logs(row))


def logs(row: SimulatedTransaction) -> tuple[TransferLog, ...]:
    """The logs of a transaction, at their places in it and in its block.

    The books keep native coin without a log as a token of its own, which nobody is shown.
    """
    return tuple(
        TransferLog(
            position,
            row.log_index + position,
            log.token_address,
            log.sender,
            log.recipient,
            log.amount_atomic,
        )
        for position, log in enumerate(row.logs)
        if log.token_address != UNLOGGED_COIN
    )
