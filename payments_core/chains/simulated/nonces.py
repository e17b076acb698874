"""What a simulated chain knows of senders: the nonces that they have used, and their coins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from payments_core.chains.port import Heads
from payments_core.chains.simulated.records import SimulatedSender
from payments_core.chains.simulated.scans import load_transactions
from payments_core.storage.port import Snapshot
from payments_core.storage.reads import Get


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


def load_coins(
    snapshot: Snapshot, chain_id: int, senders: Sequence[str]
) -> Mapping[str, int | None]:
    """For how many transactions each has coins; None for any number."""
    found = {one: snapshot.get(SimulatedSender, f"{chain_id}:{one}") for one in senders}
    return {sender: None if row is None else row.coins for sender, row in found.items()}


def sender_reads(chain_id: int, senders: Sequence[str]) -> Sequence[Get]:
    """The queries of `load_coins`."""
    return [Get(SimulatedSender, f"{chain_id}:{one}") for one in senders]
