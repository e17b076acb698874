"""The slots of a sender: one after the other, and none without its bytes.

A chain includes what a sender signed in the order of its slots (an EVM account's nonces), so a slot
that stays empty holds up all after it.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from payments_core.chains.outgoing import Outgoing, Sender, locked_outgoing
from payments_core.decision import Decision
from payments_core.storage.port import Snapshot, Transaction

MOST_SENDERS = 100
"""So many keys an environment may have had on a chain."""


class SlotBefore(Exception):
    """The slot before has no bytes yet; sign that first."""

    def __init__(self, outgoing_id: str) -> None:
        super().__init__(outgoing_id)
        self.outgoing_id = outgoing_id


def senders(snapshot: Snapshot, chain_id: int) -> Sequence[Sender]:
    """The environment's senders on a chain: one, and those whose keys were in use before."""
    return snapshot.find(Sender, "of_chain", (chain_id,), limit=MOST_SENDERS).records


def reserve(tx: Transaction, chain_id: int, sender_id: str, outgoing_id: str) -> Decision[Outgoing]:
    """The transfer with the sender's next slot, if it needs one. Raises SlotBefore."""
    sender = tx.get(Sender, sender_id, for_update=True)
    outgoing = locked_outgoing(tx, outgoing_id)
    if not _needs_slot(outgoing, sender_id):
        return Decision(outgoing)
    if sender is not None and sender.last_outgoing_id is not None:
        last = locked_outgoing(tx, sender.last_outgoing_id)
        if last.raw is None:
            raise SlotBefore(last.id)
    slot = sender.next_slot if sender else 0
    previous_id = sender.last_outgoing_id if sender else None
    reserved = attrs.evolve(
        outgoing, status="reserved", sender_id=sender_id, slot=slot, previous_id=previous_id
    )
    taken = attrs.evolve(
        sender or Sender(id=sender_id, chain_id=chain_id),
        next_slot=slot + 1,
        last_outgoing_id=outgoing_id,
    )
    if sender is None:
        return Decision(reserved, inserts=(taken,), replaces=(reserved,))
    return Decision(reserved, replaces=(taken, reserved))


def _needs_slot(outgoing: Outgoing, sender_id: str) -> bool:
    """Whether a slot is to be reserved, or was with a key that is no longer in use.

    In the latter case nothing was signed with that key, and nothing comes after it.
    """
    if outgoing.status == "reserved":
        return outgoing.sender_id != sender_id
    return outgoing.status == "queued"
