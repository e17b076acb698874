"""The outbox: our own transactions, each sent exactly once whatever happens in between.

Insert the intent with the decision that needs it; reserve a nonce of the environment's sender;
sign; store the signed bytes; only then broadcast those bytes, again and again if need be. A crash
before the bytes are stored signs the same intent again for the same nonce. An intent can be
withdrawn until a nonce is reserved, and one whose funds are gone until its bytes are stored; not
after. Nonce n + 1 is never signed before nonce n has its bytes: a transfer takes the nonce of
one before it that was never signed. Nothing is signed while the
chain knows transactions of the sender that the storage does not know (`lost.py`), or while the
transfer that brought its funds is not final (`OutboundTransfer.funded_by`).

What is in no block for long is signed again with higher fees, for the same nonce
(`rebroadcast.py`). Of all versions for a nonce the chain takes one; which one, only the chain can
say (`inclusion.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

import attrs

from payments_core.chains.judge import ExpectedTransfer, Reason, judge, with_confirmations
from payments_core.chains.outbox.inclusion import (
    NonceSearch,
    NonceView,
    encode_signed,
    load_signed_versions,
    look_up_versions,
    search_nonce,
)
from payments_core.chains.outbox.lost import LostTransactions
from payments_core.chains.outbox.nonces import (
    NonceContested,
    SignerKeyChanged,
    get_sender_id,
    load_senders,
    reserve_nonce,
)
from payments_core.chains.outbox.rebroadcast import Rebroadcaster, broadcast
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    TransferOutcome,
    load_transfer,
    lock_transfer,
    new_return_address,
    to_intent,
)
from payments_core.chains.port import (
    Chain,
    ChainUnavailable,
    SignedTransaction,
    SignerRefused,
)
from payments_core.chains.scanner import get_scanned_height
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.storage.port import Snapshot, Transaction

_log = logging.getLogger(__name__)


@attrs.frozen
class Inclusion:
    """The hash of the version that is in a block, or that another's transaction has the nonce."""

    hash: str | None
    nonce_was_taken: bool = False


class Outbox:
    """Turns intents into signed transactions, sends them, and reports what became of them."""

    def __init__(
        self,
        ports: Ports,
        chains: Mapping[int, Chain],
        on_sent: Callable[[WorkerAuthority, int], None] = lambda authority, chain_id: None,
    ) -> None:
        """`on_sent` is called after every broadcast, with the chain's number."""
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._on_sent = on_sent
        self._rebroadcaster = Rebroadcaster(ports)
        self._lost = LostTransactions(ports)

    def broadcast(self, authority: WorkerAuthority, outgoing_id: str) -> SignedTransaction:
        """Send a transfer's newest version, now or once more: it is harmless.

        Where nodes refuse it, what is missing before it is sent first, and its fees may rise.
        Raises ChainUnavailable where no node takes it. It is not raised where a final transaction
        that is not ours has the nonce: the job that watches the transfer will see that.
        """
        outgoing = self._load_transfer(authority, outgoing_id)
        chain = self._chains[outgoing.chain_id]
        versions = load_signed_versions(self._storage, authority, outgoing)
        try:
            broadcast(chain, versions[-1].signed)
        except ChainUnavailable:
            view = look_up_versions(chain, versions)
            if view.knows(view.newest):
                raise  # it was the answer that was lost: the owner notes that first
            if self._search_nonce(authority, chain, outgoing, view).status == "open":
                self._rebroadcaster.push(authority, chain, outgoing, view, is_refused=True)
        self._on_sent(authority, outgoing.chain_id)
        return versions[-1].signed

    def check_outcome(
        self, authority: WorkerAuthority, outgoing_id: str, *, confirmations: int = 0
    ) -> TransferOutcome:
        """What became of a transfer that was sent, to be `mark_final` unless it is pending.

        `confirmations` asks for more blocks on top than the chain's own finality may have.

        One that is in no block is offered again. Raises ChainUnavailable.
        """
        outgoing = self._load_transfer(authority, outgoing_id)
        chain = self._chains[outgoing.chain_id]
        # What was scanned is read before the chain is asked.
        scanned = get_scanned_height(self._storage, authority.mode, chain.chain_id)
        heads = with_confirmations(chain.heads(), confirmations)
        view = self._look_up(authority, chain, outgoing)
        final = heads.final.number
        outcome = partial(
            TransferOutcome, height=final, reorgs=outgoing.reorgs, scanned_height=scanned
        )
        included = view.included
        if included is None:
            has_failed = self._find_or_push(authority, chain, outgoing, view).nonce_was_taken
            why: Reason = "transaction_failed" if has_failed else "not_final"
            return outcome(why, block_number=-1, hash=view.newest.signed.hash)
        outcome = partial(outcome, hash=included.version.signed.hash)
        if included.block_number > final:
            return outcome("not_final", block_number=-1)  # may yet show another
        if not included.version.moves:
            return outcome("transaction_failed", block_number=included.block_number)
        if outgoing.module is not None:  # what it did, its owner asks the contracts
            reason = None if included.view.succeeded else "transaction_failed"
            return outcome(reason, block_number=included.block_number)
        expectation = ExpectedTransfer(
            outgoing.chain_id, outgoing.token_address, outgoing.recipient
        )
        verdicts = judge(expectation, chain.chain_id, included.view, heads, consumed=frozenset())
        reasons = [verdict.reason for verdict in verdicts]
        reason = None if None in reasons else reasons[0]
        return outcome(reason, block_number=included.block_number)

    def find_inclusion(self, authority: WorkerAuthority, outgoing_id: str) -> Inclusion:
        """Which version of a transfer is in a block; where none is, it is offered again.

        Raises ChainUnavailable.
        """
        outgoing = self._load_transfer(authority, outgoing_id)
        chain = self._chains[outgoing.chain_id]
        view = self._look_up(authority, chain, outgoing)
        return self._find_or_push(authority, chain, outgoing, view)

    def is_known(self, authority: WorkerAuthority, outgoing_id: str) -> bool:
        """Whether the chain knows any version of a transfer. Raises ChainUnavailable."""
        outgoing = self._load_transfer(authority, outgoing_id)
        return self._look_up(authority, self._chains[outgoing.chain_id], outgoing).is_known

    def rebroadcast_dropped(self, authority: WorkerAuthority, chain_id: int) -> int:
        """Send again what a reorg dropped of the environment's transactions; how many they were.

        Raises ChainUnavailable.
        """
        return self._rebroadcaster.rebroadcast_dropped(authority, self._chains[chain_id])

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
                        break  # so are all before it: blocks take nonces in order
                    found.append(outgoing)
                    id = outgoing.previous_id
            return tuple(found)

        return self._storage.read(authority.partition, read)

    def ensure_signed(
        self, authority: WorkerAuthority, chain_id: int, outgoing_id: str
    ) -> SignedTransaction | None:
        """The newest signed version of an intent that moves money; None if it was withdrawn.

        Where another worker took its nonce while it was signed, it takes none that is being signed
        for: it waits for its next turn. Raises ChainUnavailable, SignerRefused.
        """
        sender_id = get_sender_id(authority, self._chains[chain_id])
        takes_over = True
        while True:
            known = self._load_transfer(authority, outgoing_id)
            if known.raw is None and known.funded_by is not None:
                self._require_final(authority, known.funded_by)
            try:
                outgoing = self._committer.commit(
                    authority,
                    lambda tx, id_sequence, known=known, takes_over=takes_over: reserve_nonce(  # type: ignore[misc]
                        tx, chain_id, sender_id, known, takes_over=takes_over
                    ),
                )
            except SignerKeyChanged:
                continue
            except NonceContested as error:
                raise ChainUnavailable(f"another worker signs for {sender_id}") from error
            if outgoing.status == "withdrawn":
                return None
            if outgoing.raw is None:
                outgoing = self._lost.compare(authority, self._chains[chain_id], outgoing)
            if outgoing.status == "reserved":
                outgoing = self._sign(authority, outgoing)
            if outgoing.raw is not None:
                break
            takes_over = False
        versions = load_signed_versions(self._storage, authority, outgoing)
        return [version for version in versions if version.moves][-1].signed

    def _sign(self, authority: WorkerAuthority, outgoing: OutboundTransfer) -> OutboundTransfer:
        assert outgoing.slot is not None
        chain = self._chains[outgoing.chain_id]
        newest = chain.heads().latest.number
        intent = to_intent(authority.partition, outgoing)
        try:
            signed = chain.prepare(intent, outgoing.slot)
        except SignerRefused as error:  # its nonce waits for it, and all after it
            _log.critical(
                "ALARM: the signer refused %s of %s: %s", outgoing.id, authority.partition, error
            )
            raise ChainUnavailable("the signer refused") from error

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[OutboundTransfer]:
            current = lock_transfer(tx, outgoing.id)
            slot = (outgoing.sender_id, outgoing.slot)
            if current.status != "reserved" or (current.sender_id, current.slot) != slot:
                # Another worker was faster, and its bytes are the ones; or it was withdrawn.
                return Decision(current)
            if current.funded_by and lock_transfer(tx, current.funded_by).block_number is None:
                raise ChainUnavailable("a reorg undid the transfer that brought its funds")
            stored = attrs.evolve(
                current,
                status="signed",
                transaction_hash=signed.hash,
                raw=encode_signed(signed),
                signed_at=self._clock.now(),
                signed_above=newest,
            )
            watched = new_return_address(
                id_sequence.issue("deposit_address"),
                current,
                chain.find_payer(intent),
                now=self._clock.now(),
            )
            return Decision(stored, inserts=(watched,) if watched else (), replaces=(stored,))

        return self._committer.commit(authority, decide)

    def _require_final(self, authority: WorkerAuthority, outgoing_id: str) -> None:
        """Raise ChainUnavailable where a transfer has moved nothing in a final block, whatever was
        noted of it before: nobody may have noticed yet that a reorg undid it, or that it has failed
        since."""
        outgoing = self._load_transfer(authority, outgoing_id)
        chain = self._chains[outgoing.chain_id]
        final = chain.heads().final.number
        included = self._look_up(authority, chain, outgoing).included
        if included is None or included.block_number > final:
            raise ChainUnavailable("the transfer that brought its funds is not final")
        if not (included.version.moves and included.view.succeeded):
            raise ChainUnavailable("the transfer that brought its funds has failed")

    def _look_up(
        self, authority: WorkerAuthority, chain: Chain, outgoing: OutboundTransfer
    ) -> NonceView:
        return look_up_versions(chain, load_signed_versions(self._storage, authority, outgoing))

    def _find_or_push(
        self,
        authority: WorkerAuthority,
        chain: Chain,
        outgoing: OutboundTransfer,
        view: NonceView,
    ) -> Inclusion:
        if view.included is not None:
            return Inclusion(view.included.version.signed.hash)
        search = self._search_nonce(authority, chain, outgoing, view)
        if search.status == "open":
            self._rebroadcaster.push(authority, chain, outgoing, view)
        return Inclusion(search.moved_by, nonce_was_taken=search.status == "taken")

    def _search_nonce(
        self,
        authority: WorkerAuthority,
        chain: Chain,
        outgoing: OutboundTransfer,
        view: NonceView,
    ) -> NonceSearch:
        """The status of the transfer's nonce. How far a search came is stored: the next look, or
        the next worker, goes on from there. So is a transaction that has moved the money.
        """
        search = search_nonce(self._storage, authority, chain, outgoing, view)
        if search.moved_by is not None:
            self._rebroadcaster.store_lost_version(authority, outgoing, search.moved_by)
        if search.status != "searching":
            return search

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            current = lock_transfer(tx, outgoing.id)
            if current.reorgs != outgoing.reorgs or current.searched_to >= search.searched_to:
                return Decision(None)
            return Decision(None, replaces=(attrs.evolve(current, searched_to=search.searched_to),))

        self._committer.commit(authority, decide)
        return search

    def _load_transfer(self, authority: WorkerAuthority, outgoing_id: str) -> OutboundTransfer:
        return load_transfer(self._storage, authority.partition, outgoing_id)
