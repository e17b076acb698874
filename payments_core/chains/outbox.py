"""The outbox: our own transactions, each sent exactly once whatever happens in between.

Insert the intent with the decision that needs it; reserve a slot of the environment's sender;
sign; store the signed bytes; only then broadcast those bytes, again and again if need be. A crash
before the bytes signs the same intent into the same slot. Until a slot is reserved an intent can
be withdrawn, and not after. Slot n + 1 is never signed before slot n has its bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Literal

import attrs

from payments_core.assets import Asset
from payments_core.chains.judge import Expectation, Reason, judge
from payments_core.chains.port import Chain, ChainUnavailable, Signed, TransferIntent
from payments_core.clock import Instant
from payments_core.decision import Decision, Follow, Ledger, Scope
from payments_core.identifiers import Draw
from payments_core.money import Atomic, atomic
from payments_core.storage.port import LOCATE_KEYS, Snapshot, Storage, Transaction
from payments_core.storage.records import Collection, Lookup, Record

_MOST_DROPPED = 100
"""So many slots back a gap is looked for; no reorg reaches further."""

OutgoingStatus = Literal["queued", "reserved", "signed", "failed", "withdrawn"]
Purpose = Literal["funding", "release", "refund", "sweep"]


@attrs.frozen(kw_only=True)
class Outgoing(Record):
    """A transfer of ours, from intent to signed bytes. What became of it its owner knows.

    `owner_id` is the operation, Payment, refund or deposit that it is for, `previous_id` the
    transfer in the slot before. It has `failed` when that was final: should a reorg drop it all the
    same, something that moves nothing takes its slot. `block_number` is where it was when its
    success was final, `reorgs` how often blocks were undone that it may have been in.
    """

    collection: ClassVar[Collection] = Collection(
        "outgoing",
        columns={"transaction_hash": str},
        lookups=(Lookup("by_transaction", ("transaction_hash",)),),
    )

    purpose: Purpose
    owner_id: str
    chain_id: int
    token_address: str
    source: str
    recipient: str
    amount: Atomic = attrs.field(converter=atomic)
    status: OutgoingStatus = "queued"
    slot: int | None = None
    previous_id: str | None = None
    transaction_hash: str | None = None
    raw: str | None = None
    block_number: int | None = None
    reorgs: int = 0
    created_at: Instant


@attrs.frozen(kw_only=True)
class Sender(Record):
    """The environment's sender on a chain: the next free slot, and who took the last one.

    The id is the chain's number.
    """

    collection: ClassVar[Collection] = Collection(
        "senders", columns={"chain_id": int}, lookups=(Lookup("by_chain", ("chain_id",)),)
    )

    chain_id: int
    next_slot: int = 0
    last_outgoing_id: str | None = None


@attrs.frozen
class Outcome:
    """What became of a transfer: no reason, it succeeded.

    `height` was final when it was asked, `block_number` is where the transfer is, and `reorgs` how
    often it had been undone until then.
    """

    reason: Reason | None
    height: int
    block_number: int | None
    reorgs: int

    @property
    def is_pending(self) -> bool:
        """Not final: it may still become anything."""
        return self.reason == "not_final"


class LookOutdated(Exception):
    """Blocks were undone since the chain was asked what became of a transfer: ask again."""


def transfer(
    id: str,
    asset: Asset,
    purpose: Purpose,
    owner_id: str,
    *,
    source: str,
    recipient: str,
    amount: int,
    now: Instant,
) -> Outgoing:
    """The intent of a transfer, to be inserted with the decision that needs it."""
    return Outgoing(
        id=id,
        purpose=purpose,
        owner_id=owner_id,
        chain_id=asset.chain_id,
        token_address=asset.address,
        source=source,
        recipient=recipient,
        amount=Atomic(amount),
        created_at=now,
    )


class _SlotBefore(Exception):
    """The slot before has no bytes yet; sign that first."""

    def __init__(self, outgoing_id: str) -> None:
        super().__init__(outgoing_id)
        self.outgoing_id = outgoing_id


def send_job(kind: str, partition: str, outgoing: Outgoing, now: Instant) -> Follow:
    """The job that sends an outgoing transfer for its owner, in its sender's lane."""
    lane = f"sender:{partition}:{outgoing.chain_id}"
    return Follow("chain", kind, lane, now, outgoing.owner_id)


def withdraw(outgoing: Outgoing) -> Outgoing | None:
    """The intent withdrawn, or None where a slot is reserved and it can no longer be stopped."""
    if outgoing.status != "queued":
        return None
    return attrs.evolve(outgoing, status="withdrawn")


def concluded(tx: Transaction, outgoing_id: str, outcome: Outcome) -> Decision[None]:
    """Note that what became of a transfer is final. Raises LookOutdated."""
    outgoing = _locked(tx, outgoing_id)
    if outgoing.reorgs != outcome.reorgs:
        raise LookOutdated
    if outcome.reason is not None:
        return failed_for_good(tx, outgoing_id)
    done = attrs.evolve(outgoing, block_number=outcome.block_number)
    return Decision(None, replaces=(done,))


def failed_for_good(tx: Transaction, outgoing_id: str) -> Decision[None]:
    """Note that a transfer's failure is final: its bytes must never be sent again."""
    outgoing = _locked(tx, outgoing_id)
    return Decision(None, replaces=(attrs.evolve(outgoing, status="failed"),))


def our_own(storage: Storage, hashes: Iterable[str]) -> frozenset[str]:
    """Those of some transactions that this deployment itself has signed."""
    keys = [(hash,) for hash in sorted(hashes)]
    found: set[str] = set()
    for start in range(0, len(keys), LOCATE_KEYS):
        batch = keys[start : start + LOCATE_KEYS]
        located = storage.locate(Outgoing, "by_transaction", batch, limit=LOCATE_KEYS)
        found.update(str(item.record.transaction_hash) for item in located)
    return frozenset(found)


class Outbox:
    """Turns intents into signed bytes, in slots; sends them, and tells what became of them."""

    def __init__(
        self,
        storage: Storage,
        ledger: Ledger,
        chains: Mapping[int, Chain],
        sent: Callable[[Scope, int], None] = lambda scope, chain_id: None,
    ) -> None:
        """`sent` hears of every broadcast, with the chain's number."""
        self._storage = storage
        self._ledger = ledger
        self._chains = chains
        self._sent = sent

    def broadcast(self, scope: Scope, signed: Signed, outgoing_id: str) -> None:
        """Send signed bytes, now or once more: it is harmless. Raises ChainUnavailable.

        A reorg can drop what stood in the slots before; those bytes are then sent again first, or
        nothing of this sender would ever be included.
        """
        outgoing = self._read(scope, outgoing_id)
        chain = self._chains[outgoing.chain_id]
        try:
            chain.broadcast(signed)
        except ChainUnavailable:
            dropped = self._dropped(scope, chain, outgoing)
            if not dropped:
                raise
            for before in reversed(dropped):
                chain.broadcast(before)
            chain.broadcast(signed)
        self._sent(scope, outgoing.chain_id)

    def outcome(self, scope: Scope, outgoing_id: str) -> Outcome:
        """What became of a transfer that was sent, to be `concluded` unless it is pending.

        One that the chain does not know is sent again. Raises ChainUnavailable.
        """
        outgoing = self._read(scope, outgoing_id)
        chain = self._chains[outgoing.chain_id]
        signed = _bytes_of(outgoing)
        heads = chain.heads()
        view = chain.transaction(signed.hash)
        if view is None:
            self.broadcast(scope, signed, outgoing_id)
        final = heads.final.number
        if view is None or view.block is None or view.block.number > final:
            return Outcome("not_final", final, None, outgoing.reorgs)  # it may yet show another
        expectation = Expectation(outgoing.chain_id, outgoing.token_address, outgoing.recipient)
        verdicts = judge(expectation, chain.chain_id, view, heads, consumed=frozenset())
        reasons = [verdict.reason for verdict in verdicts]
        reason = None if None in reasons else reasons[0]
        return Outcome(reason, final, view.block.number, outgoing.reorgs)

    def send_dropped(self, scope: Scope, chain_id: int) -> int:
        """Send again what a reorg dropped of the environment's transactions; how many they were.

        Raises ChainUnavailable.
        """
        sender = self._storage.read(
            scope.partition, lambda snapshot: snapshot.get(Sender, str(chain_id))
        )
        if sender is None or sender.last_outgoing_id is None:
            return 0
        chain = self._chains[chain_id]
        last = self._read(scope, sender.last_outgoing_id)
        dropped = self._dropped(scope, chain, last)
        newest = self._missing(scope, chain, last)
        for signed in reversed([newest, *dropped] if newest else dropped):
            chain.broadcast(signed)
        return len(dropped) + (newest is not None)

    def maybe_undone(self, scope: Scope, chain_id: int, first: int) -> tuple[Outgoing, ...]:
        """The environment's transfers that may have been in the blocks from `first` on."""

        def read(snapshot: Snapshot) -> tuple[Outgoing, ...]:
            sender = snapshot.get(Sender, str(chain_id))
            found: list[Outgoing] = []
            id = sender.last_outgoing_id if sender else None
            while id is not None:
                outgoing = snapshot.get(Outgoing, id)
                assert outgoing is not None, f"no outgoing {id}"
                if outgoing.block_number is not None and outgoing.block_number < first:
                    break  # so are all before it: slots go into blocks in their order
                found.append(outgoing)
                id = outgoing.previous_id
            return tuple(found)

        return self._storage.read(scope.partition, read)

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
        return _bytes_of(outgoing)

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

    def _read(self, scope: Scope, outgoing_id: str) -> Outgoing:
        outgoing = self._storage.read(
            scope.partition, lambda snapshot: snapshot.get(Outgoing, outgoing_id)
        )
        assert outgoing is not None, f"no outgoing {outgoing_id}"
        return outgoing

    def _dropped(self, scope: Scope, chain: Chain, outgoing: Outgoing) -> list[Signed]:
        """What fills the slots before that the chain does not know, the newest first."""
        dropped: list[Signed] = []
        while outgoing.previous_id is not None and len(dropped) < _MOST_DROPPED:
            outgoing = self._read(scope, outgoing.previous_id)
            missing = self._missing(scope, chain, outgoing)
            if missing is None:
                break
            dropped.append(missing)
        return dropped

    def _missing(self, scope: Scope, chain: Chain, outgoing: Outgoing) -> Signed | None:
        """What must fill the transfer's slot, if the chain does not know what was there."""
        if outgoing.raw is None or chain.transaction(_bytes_of(outgoing).hash) is not None:
            return None
        if outgoing.status != "failed":
            return _bytes_of(outgoing)
        assert outgoing.slot is not None
        nothing = TransferIntent(
            f"{outgoing.id}/nothing",
            scope.partition,
            outgoing.token_address,
            outgoing.source,
            outgoing.source,
            0,
        )
        signed = chain.prepare(nothing, outgoing.slot)
        return signed if chain.transaction(signed.hash) is None else None


def _bytes_of(outgoing: Outgoing) -> Signed:
    assert outgoing.raw is not None
    assert outgoing.transaction_hash is not None
    return Signed(outgoing.transaction_hash, base64.b64decode(outgoing.raw))


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
    previous_id = sender.last_outgoing_id if sender else None
    reserved = attrs.evolve(outgoing, status="reserved", slot=slot, previous_id=previous_id)
    taken = attrs.evolve(
        sender or Sender(id=sender_id, chain_id=chain_id),
        next_slot=slot + 1,
        last_outgoing_id=outgoing_id,
    )
    if sender is None:
        return Decision(reserved, inserts=(taken,), replaces=(reserved,))
    return Decision(reserved, replaces=(taken, reserved))


def _locked(tx: Transaction, outgoing_id: str) -> Outgoing:
    outgoing = tx.get(Outgoing, outgoing_id, for_update=True)
    assert outgoing is not None, f"no outgoing {outgoing_id}"
    return outgoing
