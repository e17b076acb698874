"""The outbox: our own transactions, each sent exactly once whatever happens in between.

Insert the intent with the decision that needs it; reserve a slot of the environment's sender;
sign; store the signed bytes; only then broadcast those bytes, again and again if need be. A crash
before the bytes signs the same intent into the same slot. Until a slot is reserved an intent can
be withdrawn, and not after. Slot n + 1 is never signed before slot n has its bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import ClassVar, Literal

import attrs

from payments_core.chains.port import Chain, Signed, TransferIntent
from payments_core.clock import Instant
from payments_core.decision import Decision, Follow, Ledger, Scope
from payments_core.identifiers import Draw
from payments_core.money import Atomic, atomic
from payments_core.storage.port import Transaction
from payments_core.storage.records import Collection, Record

OutgoingStatus = Literal["queued", "reserved", "signed", "withdrawn"]


@attrs.frozen(kw_only=True)
class Outgoing(Record):
    """A transfer of ours, from intent to signed bytes. What became of it its owner knows."""

    collection: ClassVar[Collection] = Collection("outgoing")

    chain_id: int
    token_address: str
    source: str
    recipient: str
    amount: Atomic = attrs.field(converter=atomic)
    status: OutgoingStatus = "queued"
    slot: int | None = None
    transaction_hash: str | None = None
    raw: str | None = None
    created_at: Instant


@attrs.frozen(kw_only=True)
class Sender(Record):
    """The environment's sender on a chain: the next free slot, and who took the last one."""

    collection: ClassVar[Collection] = Collection("senders")

    next_slot: int = 0
    last_outgoing_id: str | None = None


class _SlotBefore(Exception):
    """The slot before has no bytes yet; sign that first."""

    def __init__(self, outgoing_id: str) -> None:
        super().__init__(outgoing_id)
        self.outgoing_id = outgoing_id


def send_job(kind: str, subject: str, partition: str, outgoing: Outgoing, now: Instant) -> Follow:
    """The job that sends an outgoing transfer, in its sender's lane, for its owner `subject`."""
    lane = f"sender:{partition}:{outgoing.chain_id}"
    return Follow("chain", kind, lane, now, subject)


def withdraw(outgoing: Outgoing) -> Outgoing | None:
    """The intent withdrawn, or None where a slot is reserved and it can no longer be stopped."""
    if outgoing.status != "queued":
        return None
    return attrs.evolve(outgoing, status="withdrawn")


class Outbox:
    """Turns intents into signed bytes, in slots."""

    def __init__(self, ledger: Ledger, chains: Mapping[int, Chain]) -> None:
        self._ledger = ledger
        self._chains = chains

    def signed(self, scope: Scope, chain_id: int, outgoing_id: str) -> Signed | None:
        """The signed transaction of an intent, the same at every call; None if withdrawn.

        Raises ChainUnavailable.
        """
        while True:
            try:
                outgoing = self._ledger.commit(
                    scope, lambda tx, draw: _reserve(tx, chain_id, outgoing_id)
                )
                break
            except _SlotBefore as before:
                self.signed(scope, chain_id, before.outgoing_id)
        if outgoing.status == "withdrawn":
            return None
        if outgoing.raw is None:
            outgoing = self._sign(scope, outgoing)
        assert outgoing.raw is not None
        assert outgoing.transaction_hash is not None
        return Signed(outgoing.transaction_hash, base64.b64decode(outgoing.raw))

    def _sign(self, scope: Scope, outgoing: Outgoing) -> Outgoing:
        assert outgoing.slot is not None
        intent = TransferIntent(
            outgoing.id,
            scope.partition,
            outgoing.token_address,
            outgoing.source,
            outgoing.recipient,
            outgoing.amount,
        )
        signed = self._chains[outgoing.chain_id].prepare(intent, outgoing.slot)

        def decide(tx: Transaction, draw: Draw) -> Decision[Outgoing]:
            current = _locked(tx, outgoing.id)
            if current.raw is not None:  # another worker was faster; its bytes are the ones
                return Decision(current)
            stored = attrs.evolve(
                current,
                status="signed",
                transaction_hash=signed.hash,
                raw=base64.b64encode(signed.raw).decode(),
            )
            return Decision(stored, replaces=(stored,))

        return self._ledger.commit(scope, decide)


def _reserve(tx: Transaction, chain_id: int, outgoing_id: str) -> Decision[Outgoing]:
    sender_id = str(chain_id)
    sender = tx.get(Sender, sender_id, for_update=True)
    outgoing = _locked(tx, outgoing_id)
    if outgoing.status != "queued":
        return Decision(outgoing)
    if sender is not None and sender.last_outgoing_id is not None:
        last = _locked(tx, sender.last_outgoing_id)
        if last.raw is None:
            raise _SlotBefore(last.id)
    slot = sender.next_slot if sender else 0
    reserved = attrs.evolve(outgoing, status="reserved", slot=slot)
    taken = attrs.evolve(
        sender or Sender(id=sender_id), next_slot=slot + 1, last_outgoing_id=outgoing_id
    )
    if sender is None:
        return Decision(reserved, inserts=(taken,), replaces=(reserved,))
    return Decision(reserved, replaces=(taken, reserved))


def _locked(tx: Transaction, outgoing_id: str) -> Outgoing:
    outgoing = tx.get(Outgoing, outgoing_id, for_update=True)
    assert outgoing is not None, f"no outgoing {outgoing_id}"
    return outgoing
