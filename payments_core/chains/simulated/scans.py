"""What happened in some blocks of a simulated chain."""

from __future__ import annotations

from collections.abc import Collection

from payments_core.chains.port import ScannedTransfer
from payments_core.chains.simulated import blocks
from payments_core.chains.simulated.records import SimulatedChainState, SimulatedTransaction
from payments_core.storage.port import Position, Snapshot

_PAGE = 1_000


def load_transfers(
    snapshot: Snapshot,
    state: SimulatedChainState,
    tokens: Collection[str],
    recipients: Collection[str] | None,
    first: int,
    last: int,
) -> tuple[ScannedTransfer, ...]:
    """The transfers of those tokens in those blocks, to all recipients or to these."""
    return tuple(
        ScannedTransfer(
            row.hash,
            blocks.block(state, row.block_number),
            log.log_index,
            log.token_address,
            log.sender,
            log.recipient,
            log.amount_atomic,
        )
        for row in load_transactions(snapshot, int(state.id), first, last)
        for log in blocks.logs(row)
        if log.token_address in tokens and (recipients is None or log.recipient in recipients)
    )


def load_transactions(
    snapshot: Snapshot, chain_id: int, first: int, last: int
) -> tuple[SimulatedTransaction, ...]:
    """The transactions of those blocks, in the chain's order."""
    found: list[SimulatedTransaction] = []
    after: Position = (first, -1, "")  # before the first log of the first block
    while True:
        page = snapshot.find(
            SimulatedTransaction, "by_block", (chain_id,), after=after, limit=_PAGE
        )
        found += (row for row in page.records if row.block_number <= last)
        if page.next is None or (page.records and page.records[-1].block_number > last):
            return tuple(found)
        after = page.next
