"""How many nonces of a sender the transactions of a simulated chain have used."""

from __future__ import annotations

from payments_core.chains.port import Heads
from payments_core.chains.simulated.records import SimulatedSender
from payments_core.chains.simulated.scans import load_transactions
from payments_core.storage.port import Snapshot


def load_nonce(snapshot: Snapshot, chain_id: int, sender: str) -> int:
    """In all blocks: there is no pool."""
    row = snapshot.get(SimulatedSender, f"{chain_id}:{sender}")
    return row.next_slot if row is not None else 0


def load_final_nonce(snapshot: Snapshot, chain_id: int, sender: str, heads: Heads | None) -> int:
    """In final blocks; a chain that has not started has no heads."""
    if heads is None:
        return 0
    first, last = heads.final.number + 1, heads.latest.number
    recent = load_transactions(snapshot, chain_id, first, last)
    return load_nonce(snapshot, chain_id, sender) - sum(row.sender == sender for row in recent)
