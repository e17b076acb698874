"""Reorganisations of a simulated chain: its last blocks are replaced by empty ones.

Their transactions leave the chain, or come back at once in a block on top, in the old order and
at another place: a service must tolerate this on a real chain.
"""

from __future__ import annotations

import hashlib

import attrs

from payments_core.chains.simulated.blocks import add_blocks, add_fork, height
from payments_core.chains.simulated.records import (
    SimulatedBalance,
    SimulatedChainState,
    SimulatedReorg,
    SimulatedSender,
    SimulatedTransaction,
)
from payments_core.chains.simulated.scans import load_transactions
from payments_core.chains.simulated.transfers import balance_id, insert_or_replace
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.storage.port import Snapshot, Transaction

MAX_REORG_DEPTH = 50
"""The maximum number of blocks that one reorg removes; balances are known for more blocks."""


@attrs.frozen
class Tail:
    """The last blocks of a chain as a snapshot saw them, and the transactions in them.

    Every transaction changes the state: at the same version, these are still all of them.
    """

    state: SimulatedChainState
    first: int
    last: int
    rows: tuple[SimulatedTransaction, ...]


def load_tail(snapshot: Snapshot, state: SimulatedChainState, depth: int, now: Instant) -> Tail:
    """The last `depth` blocks; block 0 stays."""
    last = height(state, now)
    first = max(1, last - depth + 1)
    return Tail(state, first, last, load_transactions(snapshot, int(state.id), first, last))


def decide_reorg(
    tx: Transaction,
    state: SimulatedChainState,
    seen: Tail,
    *,
    name: str,
    reinclude: bool,
    now: Instant,
) -> Decision[SimulatedChainState]:
    """Replace the blocks that were seen. `state` must be locked, at the version that was seen."""
    nonce = hashlib.sha256(name.encode()).hexdigest()[:16]
    after = add_fork(state, now, seen.first, nonce)
    back_in = None
    if reinclude and seen.rows:
        after = add_blocks(after, now, 1)
        back_in = after.highest
    done = SimulatedReorg(
        id=reorg_id(state, name),
        chain_id=int(state.id),
        first_block=seen.first,
        last_block=seen.last,
        dropped=len(seen.rows),
        included_in=back_in,
    )
    outcome = Decision(after, inserts=(done,)).merge(insert_or_replace(after))
    if back_in is None:
        outcome = outcome.merge(Decision(None, deletes=seen.rows), _rewind_nonces(tx, state, seen))
    else:
        outcome = outcome.merge(_move_transactions(seen, back_in, after.added[-1].at))
    return outcome.merge(_revert_balances(tx, state, seen, back_in))


def reorg_id(state: SimulatedChainState, name: str) -> str:
    """The id of the row that records a reorg."""
    return f"{state.id}:{name}"


def _move_transactions(seen: Tail, block_number: int, at: Instant) -> Decision[None]:
    """Move the transactions to one block, each log to another place than before."""
    log_index = 1 + max(row.log_index for row in seen.rows)
    moved = []
    for row in seen.rows:
        moved.append(evolve(row, block_number=block_number, included_at_ms=at, log_index=log_index))
        log_index += max(1, len(row.logs))
    return Decision(None, replaces=tuple(moved))


def _rewind_nonces(tx: Transaction, state: SimulatedChainState, seen: Tail) -> Decision[None]:
    """Each sender continues with the first slot that was dropped, and has the coins again."""
    first: dict[str, int] = {}
    for row in seen.rows:
        if row.sender is not None and row.slot is not None:
            first[row.sender] = min(row.slot, first.get(row.sender, row.slot))
    senders = []
    for address, slot in sorted(first.items()):
        sender = tx.get(SimulatedSender, f"{state.id}:{address}", for_update=True)
        assert sender is not None
        coins = None if sender.coins is None else sender.coins + sender.next_slot - slot
        senders.append(evolve(sender, next_slot=slot, coins=coins))
    return Decision(None, replaces=tuple(senders))


def _revert_balances(
    tx: Transaction, state: SimulatedChainState, seen: Tail, back_in: int | None
) -> Decision[None]:
    """The balances without the changes of those blocks, or with them at the block on top."""
    ids = {
        balance_id(state.id, log.token_address, holder)
        for row in seen.rows
        for log in row.logs
        for holder in (log.sender, log.recipient)
    }
    changed = []
    for id in sorted(ids):
        row = tx.get(SimulatedBalance, id, for_update=True)
        if row is None:  # a sender that moved nothing
            continue
        kept = tuple(item for item in row.recent if item[0] < seen.first)
        change = Atomic(sum(change for block, change in row.recent if block >= seen.first))
        if back_in is None:
            row = evolve(row, total_atomic=row.total_atomic - change, recent=kept)
        else:
            row = evolve(row, recent=(*kept, (back_in, change)))
        changed.append(row)
    return Decision(None, replaces=tuple(changed))
