"""The outbox: our own transactions, each sent exactly once despite crashes.

Insert the intent with the decision that needs it; reserve a nonce of the environment's sender;
sign; store the signed bytes; only then broadcast those bytes, repeatedly if necessary. (For a
busy sender the nonce is reserved with the bytes: `signing.py`.) A crash before the bytes are stored
signs the same intent again, for the same nonce if it was reserved. An intent can be withdrawn
until a nonce is reserved, and one whose funds are gone, until its bytes are stored; not afterwards.
Nonce n + 1 is never signed before nonce n has its bytes: a transfer takes the nonce of an earlier
one that was never signed. Nothing is signed while the chain knows transactions of the sender that
the storage does not know (`lost.py`), or while the transfer that brought its funds is not final
(`OutboundTransfer.funded_by`).

What is in no block for long is signed again with higher fees, for the same nonce
(`rebroadcast.py`). Of all versions for a nonce the chain includes one; only the chain can
say which (`inclusion.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import attrs

from payments_core.chains.judge import (
    ExpectedTransfer,
    Reason,
    apply_acceptance,
    judge,
    lacks_transfer,
)
from payments_core.chains.outbox.inclusion import (
    NonceSearch,
    NonceView,
    load_signed_versions,
    look_up_each,
    look_up_versions,
    search_nonce,
)
from payments_core.chains.outbox.lost import LostTransactions
from payments_core.chains.outbox.nonces import (
    NonceContested,
    ReservedNonce,
    SignerKeyChanged,
    get_sender_id,
    load_senders,
    nonce_reads,
    reserve_nonce,
)
from payments_core.chains.outbox.rebroadcast import Rebroadcaster, broadcast
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    Sender,
    TransferOutcome,
    TransferToWatch,
    load_transfer,
    lock_transfer,
)
from payments_core.chains.outbox.signing import TransferSigner
from payments_core.chains.port import (
    Chain,
    ChainUnavailable,
    Heads,
    SignedTransaction,
)
from payments_core.chains.scanner import get_scanned_height
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.storage.port import Snapshot, Transaction
from payments_core.storage.reads import Get

_log = logging.getLogger(__name__)


@attrs.frozen
class Inclusion:
    """The hash of the version in a block, or the fact that a foreign transaction has the nonce."""

    hash: str | None
    nonce_was_taken: bool = False


class Outbox:
    """Turns intents into signed transactions, sends them, and reports their outcomes."""

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
        self._signer = TransferSigner(ports, chains)

    def broadcast(
        self, authority: WorkerAuthority, outgoing_id: str, known: OutboundTransfer | None = None
    ) -> SignedTransaction:
        """Send a transfer's newest version, for the first time or again: it is harmless.

        `known` is the transfer as it was read a moment ago.

        If nodes refuse it, missing transactions before it are sent first, and its fees may rise.
        Raises ChainUnavailable if no node accepts it. It is not raised if a final transaction
        that is not ours has the nonce: the job that watches the transfer will see that.
        """
        outgoing = known or self._load_transfer(authority, outgoing_id)
        chain = self._chains[outgoing.chain_id]
        versions = load_signed_versions(self._storage, authority, outgoing)
        try:
            broadcast(chain, versions[-1].signed)
        except ChainUnavailable as refusal:
            view = look_up_versions(chain, versions)
            if view.knows(view.newest):
                raise  # an answer was lost: the owner notes that first
            if self._search_nonce(authority, chain, outgoing, view).status == "open":
                try:
                    self._rebroadcaster.push(authority, chain, outgoing, view, is_refused=True)
                except ChainUnavailable as error:
                    raise refusal from error  # it has a node's words
        self._on_sent(authority, outgoing.chain_id)
        return versions[-1].signed

    def check_outcomes(
        self, authority: WorkerAuthority, transfers: Sequence[TransferToWatch]
    ) -> list[TransferOutcome | ChainUnavailable]:
        """The outcomes of sent transfers, to be `mark_final` unless they are pending.

        A transfer in no block is rebroadcast. A chain is asked once for all of its transfers;
        ChainUnavailable takes the place of an unknown outcome.
        """
        wanted = {transfer.id for transfer in transfers}
        known = self._storage.read_apart(
            authority.partition,
            lambda snapshot: snapshot.get_many(OutboundTransfer, wanted),
        )
        found: dict[str, TransferOutcome | ChainUnavailable] = {}
        for chain_id in sorted({outgoing.chain_id for outgoing in known.values()}):
            asked = [one for one in transfers if known[one.id].chain_id == chain_id]
            outgoings = [known[one.id] for one in asked]
            try:
                # The scanned height is read before the chain is asked.
                scanned = get_scanned_height(self._storage, authority.mode, chain_id)
                heads = self._chains[chain_id].heads()
                settled = min(scanned, heads.final.number)
                views = look_up_each(
                    self._chains[chain_id],
                    [load_signed_versions(self._storage, authority, one) for one in outgoings],
                )
            except ChainUnavailable as error:
                found.update((one.id, error) for one in asked)
                continue
            for one, outgoing, view in zip(asked, outgoings, views, strict=True):
                try:
                    if isinstance(view, ChainUnavailable):
                        raise view
                    at = apply_acceptance(heads, one.early_acceptance, one.confirmations)
                    outcome = self._judge(authority, outgoing, view, at, settled)
                    if outcome.reason is not None and outcome.block_number > heads.final.number:
                        # A reorg may yet let it succeed: what follows a failure would pay again.
                        outcome = self._judge(authority, outgoing, view, heads, settled)
                    found[one.id] = outcome
                except ChainUnavailable as error:
                    found[one.id] = error
        return [found[one.id] for one in transfers]

    def _judge(
        self,
        authority: WorkerAuthority,
        outgoing: OutboundTransfer,
        view: NonceView,
        heads: Heads,
        settled: int,
    ) -> TransferOutcome:
        chain, final = self._chains[outgoing.chain_id], heads.final.number
        outcome = partial(
            TransferOutcome, height=final, reorgs=outgoing.reorgs, settled_height=settled
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
        if outgoing.module is not None:  # its owner asks the contracts for its effect
            reason = None if included.view.succeeded else "transaction_failed"
            return outcome(reason, block_number=included.block_number)
        if lacks_transfer(included.view, outgoing.recipient):  # our contracts would have reverted
            _log.warning(
                "chain %d shows no logs of %s, which succeeded", chain.chain_id, outgoing.id
            )
            raise ChainUnavailable("a node does not show the logs of a transaction")
        expectation = ExpectedTransfer(
            outgoing.chain_id, outgoing.token_address, outgoing.recipient
        )
        verdicts = judge(expectation, chain.chain_id, included.view, heads, consumed=frozenset())
        reasons = [verdict.reason for verdict in verdicts]
        reason = None if None in reasons else reasons[0]
        return outcome(reason, block_number=included.block_number)

    def find_inclusion(self, authority: WorkerAuthority, outgoing_id: str) -> Inclusion:
        """The version of a transfer that is in a block; if none is, it is rebroadcast.

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
        """Resend the environment's transactions that a reorg dropped; return how many.

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
                    outgoing = _get_transfer(snapshot, id)
                    if outgoing.block_number is not None and outgoing.block_number < first:
                        break  # so are all before it: blocks take nonces in order
                    found.append(outgoing)
                    id = outgoing.previous_id
            return tuple(found)

        return self._storage.read(authority.partition, read)

    def ensure_signed(
        self, authority: WorkerAuthority, chain_id: int, outgoing_id: str
    ) -> SignedTransaction | None:
        """The newest version that moves money, signed if necessary; else as `sign`."""
        outgoing = self.sign(authority, chain_id, outgoing_id)
        if outgoing is None:
            return None
        versions = load_signed_versions(self._storage, authority, outgoing)
        return [version for version in versions if version.moves][-1].signed

    def sign(
        self, authority: WorkerAuthority, chain_id: int, outgoing_id: str
    ) -> OutboundTransfer | None:
        """The transfer with its bytes; None if it was withdrawn.

        If another worker took its nonce while it was signed, it takes no nonce that is being signed
        for: it waits for its next turn. Raises ChainUnavailable, SignerRefused.
        """
        sender_id = get_sender_id(authority, self._chains[chain_id])
        takes_over = True
        while True:
            known, sender = self._load_with_sender(authority, outgoing_id, sender_id)
            if known.status == "signed":  # its bytes are never changed
                return known
            if known.raw is None and known.funded_by is not None:
                self._require_final(authority, known.funded_by)
            elif takes_over and (signed := self._signer.sign_next(authority, [known], sender)):
                return signed[0]
            try:
                reserved = self._reserve(authority, sender_id, known, sender, takes_over)
            except SignerKeyChanged:
                continue
            except NonceContested as error:
                raise ChainUnavailable(f"another worker signs for {sender_id}") from error
            outgoing = reserved.outgoing
            if outgoing.status == "withdrawn":
                return None
            if outgoing.raw is None:
                assert reserved.sender is not None
                outgoing = self._lost.compare(
                    authority, self._chains[chain_id], outgoing, reserved.sender, reserved.former
                )
            if outgoing.status == "reserved":
                outgoing = self._signer.sign(authority, outgoing)
            if outgoing.raw is not None:
                return outgoing
            takes_over = False

    def sign_next(
        self, authority: WorkerAuthority, chain_id: int, outgoing_ids: Sequence[str]
    ) -> Sequence[OutboundTransfer]:
        """The first of some transfers of a chain with its bytes, then as many others as possible.

        Nothing, if the first must be signed by `sign`. Raises ChainUnavailable.
        """
        sender_id = get_sender_id(authority, self._chains[chain_id])

        def load(snapshot: Snapshot) -> tuple[Sequence[OutboundTransfer], Sender | None]:
            gets = (Get(OutboundTransfer, id) for id in outgoing_ids)
            snapshot.read_ahead(Get(Sender, sender_id), *gets)
            sender = snapshot.get(Sender, sender_id)
            return [_get_transfer(snapshot, id) for id in outgoing_ids], sender

        known, sender = self._storage.read_apart(authority.partition, load)
        return self._signer.sign_next(authority, known, sender)

    def _load_with_sender(
        self, authority: WorkerAuthority, outgoing_id: str, sender_id: str
    ) -> tuple[OutboundTransfer, Sender | None]:
        outgoing, sender = self._storage.fetch(
            authority.partition,
            Get(OutboundTransfer, outgoing_id),
            Get(Sender, sender_id),
        )
        assert outgoing is not None, f"no outgoing {outgoing_id}"
        return outgoing, sender

    def _reserve(
        self,
        authority: WorkerAuthority,
        sender_id: str,
        known: OutboundTransfer,
        sender: Sender | None,
        takes_over: bool,
    ) -> ReservedNonce:
        return self._committer.commit(
            authority,
            lambda tx, id_sequence: reserve_nonce(
                tx, known.chain_id, sender_id, known, takes_over=takes_over
            ),
            reads=nonce_reads(sender_id, known, sender),
        )

    def _require_final(self, authority: WorkerAuthority, outgoing_id: str) -> None:
        """Raise ChainUnavailable if a transfer has moved nothing in a final block, whatever was
        recorded before: a reorg that undid it, or its failure since, may be
        unnoticed yet."""
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
        """The status of the transfer's nonce. The progress of a search is stored: the next look, or
        the next worker, continues there. So is a transaction that has moved the money.
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
            return Decision(None, replaces=(evolve(current, searched_to=search.searched_to),))

        self._committer.commit(authority, decide)
        return search

    def _load_transfer(self, authority: WorkerAuthority, outgoing_id: str) -> OutboundTransfer:
        return load_transfer(self._storage, authority.partition, outgoing_id)


def _get_transfer(snapshot: Snapshot, id: str) -> OutboundTransfer:
    outgoing = snapshot.get(OutboundTransfer, id)
    assert outgoing is not None, f"no outgoing {id}"
    return outgoing
