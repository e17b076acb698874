"""The slots of a sender: one after the other, and none without its bytes.

A chain includes what a sender signed in the order of its slots (an EVM account's nonces), so a slot
that stays empty holds up all after it. `signing.py` gives slots to the transfers that are signed
together, and `lost.py` to one whose transaction was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import attrs

from payments_core.chains.outbox.record import OutboundTransfer, Sender, lock_transfer
from payments_core.chains.port import AddressSpec, Chain, ChainError
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.evolve import evolve
from payments_core.storage.port import Snapshot, Storage, Transaction
from payments_core.storage.reads import Find, Get, Read
from payments_core.storage.records import Record

MAX_SENDERS = 100
"""The maximum number of keys that an environment may have had on a chain."""


class SignerKeyChanged(Exception):
    """Another worker, with another key, was faster; read again."""


class NonceContested(Exception):
    """Another worker is about to sign for the nonce, and this one yields."""


def get_sender_id(authority: WorkerAuthority, chain: Chain) -> str:
    """The id of the environment's sender on a chain, by the key that is configured now."""
    operator = chain.derive(AddressSpec(authority.partition, "operator", "operator"))
    return f"{chain.chain_id}:{operator}"


def load_senders(snapshot: Snapshot, chain_id: int) -> Sequence[Sender]:
    """The environment's senders on a chain: the present one, and those with earlier keys."""
    return snapshot.find(Sender, "of_chain", (chain_id,), limit=MAX_SENDERS).records


def find_present_senders(storage: Storage, chain: Chain, limit: int) -> Sequence[str]:
    """The addresses of a chain that send now, of any environment; not those of former keys.

    At most so many, and each has sent before. Rows that cannot be read are left out.
    """
    located = storage.locate(
        Sender, "by_chain", [(chain.chain_id,)], limit=limit, on_damaged=lambda partition, id: None
    )
    present = []
    for found in located:
        operator = AddressSpec(found.partition, "operator", "operator")
        with suppress(ChainError):  # no key is configured for the environment
            if found.record.address == chain.derive(operator):
                present.append(found.record.address)
    return present


@attrs.frozen
class ReservedNonce:
    """A transfer with its slot, if it needs one, and the sender, as they are now.

    `former` are the environment's senders on the chain with other keys.
    """

    outgoing: OutboundTransfer
    sender: Sender | None
    former: Sequence[Sender]


def nonce_reads(sender_id: str, known: OutboundTransfer, sender: Sender | None) -> Sequence[Read]:
    """The locks and reads of `reserve_nonce`, from an earlier read of the transfer and sender."""
    former_id = known.sender_id if known.sender_id != sender_id else None
    last_id = sender.last_outgoing_id if sender is not None else None
    return (
        *(
            Get(Sender, id, "exclusive", is_optional=sender is None)
            for id in _lock_order(sender_id, former_id)
        ),
        *(
            Get(OutboundTransfer, id, "exclusive")
            for id in dict.fromkeys((known.id, last_id))
            if id is not None
        ),
        Find(Sender, "of_chain", (known.chain_id,), MAX_SENDERS),
    )


def reserve_nonce(
    tx: Transaction,
    chain_id: int,
    sender_id: str,
    known: OutboundTransfer,
    *,
    takes_over: bool = True,
) -> Decision[ReservedNonce]:
    """The transfer with the sender's next slot, if it needs one. Raises SignerKeyChanged.

    `known` is the transfer as it was read before, which decides the order of locks. A slot that
    was reserved with a key no longer in use, and never signed, is returned to that key: it is
    its last, and a later transfer that takes it must not wait for it.

    So is the sender's last slot if it has no bytes: its transfer was withdrawn, or its worker
    did not sign it. That transfer gets another slot in its own turn. Signed in this turn it
    would have bytes that no node was offered, and could be neither withdrawn nor skipped.

    Unless it `takes_over`, another worker's reservation is respected, and NonceContested is
    raised: two live workers would take one slot from each other forever, and neither would sign.
    """
    former_id = known.sender_id if known.sender_id != sender_id else None
    locked = {id: tx.get(Sender, id, for_update=True) for id in _lock_order(sender_id, former_id)}
    outgoing = lock_transfer(tx, known.id)
    if outgoing.sender_id not in (sender_id, known.sender_id):
        raise SignerKeyChanged
    former = [one for one in load_senders(tx, chain_id) if one.id != sender_id]
    if not _needs_nonce(outgoing, sender_id):
        return Decision(ReservedNonce(outgoing, locked[sender_id], former))
    if outgoing.status == "reserved" and not takes_over:
        raise NonceContested
    sender, returned = locked[sender_id], Decision(None)
    if sender is not None and sender.last_outgoing_id is not None:
        last = lock_transfer(tx, sender.last_outgoing_id)
        if last.raw is None:
            if not (takes_over or last.status == "withdrawn"):
                raise NonceContested
            sender = _return_nonce(sender, last)
            returned = Decision(None, replaces=(_without_slot(last),))
    slot = sender.next_slot if sender else 0
    previous_id = sender.last_outgoing_id if sender else None
    reserved = evolve(
        outgoing, status="reserved", sender_id=sender_id, slot=slot, previous_id=previous_id
    )
    taken = evolve(
        sender or Sender(id=sender_id, chain_id=chain_id),
        next_slot=slot + 1,
        last_outgoing_id=outgoing.id,
    )
    replaces: tuple[Record, ...] = (reserved,) if sender is None else (taken, reserved)
    if former_id is not None:
        replaces += (_return_nonce(locked[former_id], outgoing),)
    made = Decision(
        ReservedNonce(reserved, taken, former),
        inserts=(taken,) if sender is None else (),
        replaces=replaces,
    )
    return made.merge(returned)


def _lock_order(*ids: str | None) -> list[str]:
    """The order of locking senders, for code that locks two."""
    return sorted(id for id in ids if id is not None)


def _return_nonce(former: Sender | None, outgoing: OutboundTransfer) -> Sender:
    assert former is not None
    assert former.last_outgoing_id == outgoing.id, "only the last slot may have no bytes"
    return evolve(former, next_slot=former.next_slot - 1, last_outgoing_id=outgoing.previous_id)


def _without_slot(outgoing: OutboundTransfer) -> OutboundTransfer:
    """An unsigned transfer as it was before it had a slot, or still withdrawn."""
    freed = evolve(outgoing, slot=None, previous_id=None)
    if outgoing.status == "withdrawn":
        return freed
    return evolve(freed, status="queued", sender_id=None)


def _needs_nonce(outgoing: OutboundTransfer, sender_id: str) -> bool:
    """Whether a slot is to be reserved, or was reserved with a key that is no longer in use."""
    if outgoing.status == "reserved":
        return outgoing.sender_id != sender_id
    return outgoing.status == "queued"
