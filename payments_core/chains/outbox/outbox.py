"""The outbox: our own transactions, each sent exactly once whatever happens in between.

Insert the intent with the decision that needs it; reserve a slot of the environment's sender;
sign; store the signed bytes; only then broadcast those bytes, again and again if need be. A crash
before the bytes signs the same intent into the same slot. Until a slot is reserved an intent can
be withdrawn, and not after. Slot n + 1 is never signed before slot n has its bytes.

What is in no block for long is signed again with higher fees, into the same slot. Of all bytes that
a slot ever had the chain takes one; which one, only the chain can say.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import attrs

from payments_core.chains.judge import ExpectedTransfer, judge, with_confirmations
from payments_core.chains.outbox.inclusion import (
    SignedVersion,
    find_included_version,
    load_signed_versions,
    nonce_was_taken,
)
from payments_core.chains.outbox.nonces import (
    PreviousNonceUnsigned,
    SignerKeyChanged,
    load_senders,
    reserve_nonce,
)
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    Replacement,
    Sender,
    TransferOutcome,
    lock_transfer,
    replacement_id,
)
from payments_core.chains.port import (
    AddressSpec,
    Chain,
    ChainUnavailable,
    SignedTransaction,
    SignerRefused,
    TransferIntent,
)
from payments_core.chains.scanner import get_scanned_height
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.storage.port import Snapshot, Transaction

_MAX_DROPPED = 100
"""So many slots back a gap is looked for; no reorg reaches further."""

_log = logging.getLogger(__name__)


class Outbox:
    """Turns intents into signed bytes, in slots; sends them, and tells what became of them."""

    def __init__(
        self,
        ports: Ports,
        chains: Mapping[int, Chain],
        on_sent: Callable[[WorkerAuthority, int], None] = lambda authority, chain_id: None,
    ) -> None:
        """`on_sent` hears of every broadcast, with the chain's number."""
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._on_sent = on_sent

    def broadcast(
        self, authority: WorkerAuthority, signed: SignedTransaction, outgoing_id: str
    ) -> None:
        """Send signed bytes, now or once more: it is harmless. Raises ChainUnavailable.

        A reorg can drop what stood in the slots before; those bytes are then sent again first, or
        nothing of this sender would ever be included. Nothing is sent, and nothing raised, where a
        final transaction has taken the slot: whoever follows the transfer will see which.
        """
        outgoing = self._load_transfer(authority, outgoing_id)
        chain = self._chains[outgoing.chain_id]
        try:
            chain.broadcast(signed)
        except ChainUnavailable:
            dropped = self._find_dropped(authority, chain, outgoing)
            if not dropped and self.nonce_was_taken(authority, outgoing_id):
                return
            if not dropped:
                raise
            for before in reversed(dropped):
                chain.broadcast(before)
            chain.broadcast(signed)
        self._on_sent(authority, outgoing.chain_id)

    def check_outcome(
        self, authority: WorkerAuthority, outgoing_id: str, *, confirmations: int = 0
    ) -> TransferOutcome:
        """What became of a transfer that was sent, to be `mark_final` unless it is pending.

        `confirmations` asks for more blocks on top than the chain's own finality may have.

        One that is in no block is pushed. Raises ChainUnavailable.
        """
        outgoing = self._load_transfer(authority, outgoing_id)
        chain = self._chains[outgoing.chain_id]
        all_known = load_signed_versions(self._storage, authority, outgoing)
        scanned = get_scanned_height(
            self._storage, authority.mode, chain.chain_id
        )  # before the chain is asked
        heads = with_confirmations(chain.heads(), confirmations)
        taken, view = find_included_version(chain, all_known)
        final = heads.final.number
        outcome = partial(
            TransferOutcome,
            height=final,
            reorgs=outgoing.reorgs,
            scanned_height=scanned,
            hash=taken.signed.hash,
        )
        if view is None and nonce_was_taken(chain, outgoing, all_known):
            return outcome("transaction_failed", block_number=-1)
        if view is None or view.block is None:
            self._push(authority, chain, outgoing, all_known[-1], is_known=view is not None)
        if view is None or view.block is None or view.block.number > final:
            return outcome("not_final", block_number=-1)  # may yet show another
        if not taken.moves:
            return outcome("transaction_failed", block_number=view.block.number)
        expectation = ExpectedTransfer(
            outgoing.chain_id, outgoing.token_address, outgoing.recipient
        )
        verdicts = judge(expectation, chain.chain_id, view, heads, consumed=frozenset())
        reasons = [verdict.reason for verdict in verdicts]
        reason = None if None in reasons else reasons[0]
        return outcome(reason, block_number=view.block.number)

    def find_included_hash(self, authority: WorkerAuthority, outgoing_id: str) -> str | None:
        """The hash of those bytes of a transfer that are in a block; where none is, it is pushed.

        Raises ChainUnavailable.
        """
        outgoing = self._load_transfer(authority, outgoing_id)
        chain = self._chains[outgoing.chain_id]
        all_known = load_signed_versions(self._storage, authority, outgoing)
        taken, view = find_included_version(chain, all_known)
        if view is not None and view.block is not None:
            return taken.signed.hash
        self._push(authority, chain, outgoing, all_known[-1], is_known=view is not None)
        return None

    def is_known(self, authority: WorkerAuthority, outgoing_id: str) -> bool:
        """Whether the chain knows any of a transfer's bytes. Raises ChainUnavailable."""
        outgoing = self._load_transfer(authority, outgoing_id)
        chain = self._chains[outgoing.chain_id]
        return (
            find_included_version(chain, load_signed_versions(self._storage, authority, outgoing))[
                1
            ]
            is not None
        )

    def nonce_was_taken(self, authority: WorkerAuthority, outgoing_id: str) -> bool:
        """Whether what took a transfer's slot is final and none of its bytes.

        Somebody else has used the sender's key, then. Raises ChainUnavailable.
        """
        outgoing = self._load_transfer(authority, outgoing_id)
        chain = self._chains[outgoing.chain_id]
        return nonce_was_taken(
            chain, outgoing, load_signed_versions(self._storage, authority, outgoing)
        )

    def rebroadcast_dropped(self, authority: WorkerAuthority, chain_id: int) -> int:
        """Send again what a reorg dropped of the environment's transactions; how many they were.

        Raises ChainUnavailable.
        """
        chain = self._chains[chain_id]
        count = 0
        for sender in self._load_senders(authority, chain_id):
            if sender.last_outgoing_id is None:
                continue
            last = self._load_transfer(authority, sender.last_outgoing_id)
            newest = self._find_missing(authority, chain, last)
            dropped = self._find_dropped(authority, chain, last)
            missing = [newest, *dropped] if newest else dropped
            for signed in reversed(missing):
                chain.broadcast(signed)
            count += len(missing)
        return count

    def find_possibly_reorged(
        self, authority: WorkerAuthority, chain_id: int, first: int
    ) -> tuple[OutboundTransfer, ...]:
        """The environment's transfers that may have been in the blocks from `first` on."""

        def read(snapshot: Snapshot) -> tuple[OutboundTransfer, ...]:
            found: list[OutboundTransfer] = []
            for sender in load_senders(snapshot, chain_id):
                id = sender.last_outgoing_id
                while id is not None:
                    outgoing = snapshot.get(OutboundTransfer, id)
                    assert outgoing is not None, f"no outgoing {id}"
                    if outgoing.block_number is not None and outgoing.block_number < first:
                        break  # so are all before it: slots go into blocks in their order
                    found.append(outgoing)
                    id = outgoing.previous_id
            return tuple(found)

        return self._storage.read(authority.partition, read)

    def ensure_signed(
        self, authority: WorkerAuthority, chain_id: int, outgoing_id: str
    ) -> SignedTransaction | None:
        """The signed transaction of an intent, the newest of its bytes; None if withdrawn.

        Raises ChainUnavailable, SignerRefused.
        """
        sender_id = _sender_id(authority, self._chains[chain_id])
        while True:
            known = self._load_transfer(authority, outgoing_id)
            try:
                outgoing = self._committer.commit(
                    authority,
                    lambda tx, id_sequence, known=known: reserve_nonce(  # type: ignore[misc]
                        tx, chain_id, sender_id, known
                    ),
                )
            except PreviousNonceUnsigned as before:
                self.ensure_signed(authority, chain_id, before.outgoing_id)
                continue
            except SignerKeyChanged:
                continue
            if outgoing.status == "withdrawn":
                return None
            if outgoing.raw is None:
                outgoing = self._sign(authority, outgoing)
            if outgoing.raw is not None:
                break
        moving = [
            bytes
            for bytes in load_signed_versions(self._storage, authority, outgoing)
            if bytes.moves
        ]
        return moving[-1].signed

    def _sign(self, authority: WorkerAuthority, outgoing: OutboundTransfer) -> OutboundTransfer:
        assert outgoing.slot is not None
        intent = TransferIntent(
            outgoing.id,
            authority.partition,
            outgoing.token_address,
            outgoing.source,
            outgoing.recipient,
            outgoing.amount,
            outgoing.escrow_of,
        )
        chain = self._chains[outgoing.chain_id]
        newest = chain.heads().latest.number
        try:
            signed = chain.prepare(intent, outgoing.slot)
        except SignerRefused as error:  # its slot waits for it, and all after it
            _log.critical(
                "ALARM: the signer refused %s of %s: %s", outgoing.id, authority.partition, error
            )
            raise ChainUnavailable("the signer refused") from error

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[OutboundTransfer]:
            current = lock_transfer(tx, outgoing.id)
            slot = (outgoing.sender_id, outgoing.slot)
            if current.raw is not None or (current.sender_id, current.slot) != slot:
                return Decision(current)  # another worker was faster; its bytes are the ones
            stored = attrs.evolve(
                current,
                status="signed",
                transaction_hash=signed.hash,
                raw=_to_base64(signed.raw),
                signed_at=self._clock.now(),
                signed_above=newest,
            )
            return Decision(stored, replaces=(stored,))

        return self._committer.commit(authority, decide)

    def _push(
        self,
        authority: WorkerAuthority,
        chain: Chain,
        outgoing: OutboundTransfer,
        newest: SignedVersion,
        *,
        is_known: bool,
    ) -> None:
        """See that what fills a slot gets into a block: send it again, in time with higher fees."""
        if not is_known:
            self.broadcast(authority, newest.signed, outgoing.id)
        patience_ms = chain.bump_after_ms
        if patience_ms is None or self._clock.now() < newest.signed_at + patience_ms:
            return
        try:
            bumped = chain.bump(authority.partition, newest.signed)
        except SignerRefused as error:
            _log.critical(
                "ALARM: %s is not in a block, and the signer refused the replacement: %s",
                outgoing.id,
                error,
            )
            return
        if bumped is None:
            _log.warning("%s is not in a block, and its fees are at their maximum", outgoing.id)
        elif self._store_replacement(authority, outgoing, bumped, moves=newest.moves):
            self.broadcast(authority, bumped, outgoing.id)

    def _store_replacement(
        self,
        authority: WorkerAuthority,
        outgoing: OutboundTransfer,
        signed: SignedTransaction,
        *,
        moves: bool,
    ) -> bool:
        """Store bytes for a slot beside those that it had; False if others came first."""

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[bool]:
            current = lock_transfer(tx, outgoing.id)
            if current.replacements != outgoing.replacements:
                return Decision(False)
            number = current.replacements + 1
            replacement = Replacement(
                id=replacement_id(current.id, number),
                outgoing_id=current.id,
                transaction_hash=signed.hash,
                raw=_to_base64(signed.raw),
                moves=moves,
                signed_at=self._clock.now(),
            )
            counted = attrs.evolve(current, replacements=number)
            return Decision(True, inserts=(replacement,), replaces=(counted,))

        return self._committer.commit(authority, decide)

    def _load_senders(self, authority: WorkerAuthority, chain_id: int) -> Sequence[Sender]:
        return self._storage.read(
            authority.partition, lambda snapshot: load_senders(snapshot, chain_id)
        )

    def _load_transfer(self, authority: WorkerAuthority, outgoing_id: str) -> OutboundTransfer:
        outgoing = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(OutboundTransfer, outgoing_id)
        )
        assert outgoing is not None, f"no outgoing {outgoing_id}"
        return outgoing

    def _find_dropped(
        self, authority: WorkerAuthority, chain: Chain, outgoing: OutboundTransfer
    ) -> list[SignedTransaction]:
        """What fills the slots before that the chain does not know, the newest first."""
        dropped: list[SignedTransaction] = []
        while outgoing.previous_id is not None and len(dropped) < _MAX_DROPPED:
            outgoing = self._load_transfer(authority, outgoing.previous_id)
            missing = self._find_missing(authority, chain, outgoing)
            if missing is None:
                break
            dropped.append(missing)
        return dropped

    def _find_missing(
        self, authority: WorkerAuthority, chain: Chain, outgoing: OutboundTransfer
    ) -> SignedTransaction | None:
        """What must fill the transfer's slot, if the chain knows nothing that does.

        What is final there without being ours fills it for good.
        """
        if outgoing.raw is None:
            return None
        all_known = load_signed_versions(self._storage, authority, outgoing)
        if find_included_version(chain, all_known)[1] is not None or nonce_was_taken(
            chain, outgoing, all_known
        ):
            return None
        if outgoing.status != "failed" or not all_known[-1].moves:
            return all_known[-1].signed
        assert outgoing.slot is not None
        if outgoing.sender_id != _sender_id(authority, chain):
            _log.critical(
                "ALARM: the nonce of %s is unused, and its key is no longer configured", outgoing.id
            )
            return None
        nothing = chain.prepare_noop(authority.partition, outgoing.slot)
        if self._store_replacement(authority, outgoing, nothing, moves=False):
            return nothing
        return load_signed_versions(
            self._storage, authority, self._load_transfer(authority, outgoing.id)
        )[-1].signed


def _sender_id(authority: WorkerAuthority, chain: Chain) -> str:
    """The environment's sender on a chain, by the key that is in use now."""
    operator = chain.derive(AddressSpec(authority.partition, "operator", "operator"))
    return f"{chain.chain_id}:{operator}"


def _to_base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
