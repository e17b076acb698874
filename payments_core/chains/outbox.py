"""The outbox: our own transactions, each sent exactly once whatever happens in between.

Insert the intent with the decision that needs it; reserve a slot of the environment's sender;
sign; store the signed bytes; only then broadcast those bytes, again and again if need be. A crash
before the bytes signs the same intent into the same slot. Until a slot is reserved an intent can
be withdrawn, and not after. Slot n + 1 is never signed before slot n has its bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping

import attrs

from payments_core.chains.judge import Expectation, deepened, judge
from payments_core.chains.outgoing import Outcome, Outgoing, Sender, locked_outgoing
from payments_core.chains.port import Chain, ChainUnavailable, Signed, TransferIntent
from payments_core.chains.scanner import scanned_to
from payments_core.decision import Decision, Scope
from payments_core.identifiers import Draw
from payments_core.ledger import Ledger
from payments_core.storage.port import Snapshot, Storage, Transaction

_MOST_DROPPED = 100
"""So many slots back a gap is looked for; no reorg reaches further."""


class _SlotBefore(Exception):
    """The slot before has no bytes yet; sign that first."""

    def __init__(self, outgoing_id: str) -> None:
        super().__init__(outgoing_id)
        self.outgoing_id = outgoing_id


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

    def outcome(self, scope: Scope, outgoing_id: str, *, confirmations: int = 0) -> Outcome:
        """What became of a transfer that was sent, to be `concluded` unless it is pending.

        `confirmations` asks for more blocks on top than the chain's own finality may have.

        One that the chain does not know is sent again. Raises ChainUnavailable.
        """
        outgoing = self._read(scope, outgoing_id)
        chain = self._chains[outgoing.chain_id]
        signed = _bytes_of(outgoing)
        scanned = scanned_to(self._storage, scope.mode, chain.chain_id)  # before the chain is asked
        heads = deepened(chain.heads(), confirmations)
        view = chain.transaction(signed.hash)
        if view is None:
            self.broadcast(scope, signed, outgoing_id)
        final = heads.final.number
        if view is None or view.block is None or view.block.number > final:
            return Outcome("not_final", final, -1, outgoing.reorgs, scanned)  # may yet show another
        expectation = Expectation(outgoing.chain_id, outgoing.token_address, outgoing.recipient)
        verdicts = judge(expectation, chain.chain_id, view, heads, consumed=frozenset())
        reasons = [verdict.reason for verdict in verdicts]
        reason = None if None in reasons else reasons[0]
        return Outcome(reason, final, view.block.number, outgoing.reorgs, scanned)

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
            current = locked_outgoing(tx, outgoing.id)
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
    outgoing = locked_outgoing(tx, outgoing_id)
    if outgoing.status != "queued":
        return Decision(outgoing)
    if sender is not None and sender.last_outgoing_id is not None:
        last = locked_outgoing(tx, sender.last_outgoing_id)
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
