"""Signs a transfer, and stores its bytes before they are broadcast.

If this process has stored the bytes of a sender's last transfer itself, and nothing of it is
lost, the next one is signed first: one commit then reserves its nonce and stores the bytes, if it
is still the sender's next. Otherwise the nonce is reserved by a separate commit, and the transfer
signed for it. Nobody has seen bytes that were not stored.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import attrs

from payments_core.chains.outbox.inclusion import encode_signed
from payments_core.chains.outbox.nonces import (
    NonceContested,
    SignerKeyChanged,
    nonce_reads,
    reserve_nonce,
)
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    Sender,
    lock_transfer,
    new_return_address,
    to_intent,
)
from payments_core.chains.port import (
    Chain,
    ChainUnavailable,
    SignedTransaction,
    SignerRefused,
    TransferIntent,
)
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.storage.bulk import Get
from payments_core.storage.port import Transaction

MAX_REMEMBERED_SENDERS = 10_000

_log = logging.getLogger(__name__)


@attrs.frozen
class _SignedIntent:
    """Bytes for a transfer; `above` was the newest block when they were signed."""

    intent: TransferIntent
    signed: SignedTransaction
    above: int


class TransferSigner:
    """Signs transfers, and stores their bytes."""

    def __init__(self, ports: Ports, chains: Mapping[int, Chain]) -> None:
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._stored_last: dict[str, str] = {}
        """The transfer of each sender whose bytes were stored last by this process."""

    def sign_next(
        self, authority: WorkerAuthority, known: OutboundTransfer, sender: Sender | None
    ) -> OutboundTransfer | None:
        """The transfer with its bytes, at the sender's next nonce.

        None if anything is unusual, or changed meanwhile, or the signer refused:
        its nonce must be reserved first. Raises ChainUnavailable.
        """
        if sender is None or not _is_ordinary(known, sender):
            return None
        if sender.last_outgoing_id != self._stored_last.get(sender.id):
            return None  # it may have no bytes: this one would take its nonce
        slot = sender.next_slot
        expected = attrs.evolve(
            known,
            status="reserved",
            sender_id=sender.id,
            slot=slot,
            previous_id=sender.last_outgoing_id,
        )
        try:
            if self._chains[known.chain_id].pending_nonce(sender.address) > slot:
                return None  # transactions that are not known here
            signed = self._prepare(authority, expected)
        except SignerRefused:
            return None

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[OutboundTransfer | None]:
            nothing: Decision[OutboundTransfer | None] = Decision(None)
            try:
                reserving = reserve_nonce(tx, known.chain_id, sender.id, known, takes_over=False)
            except (SignerKeyChanged, NonceContested):
                return nothing
            reserved = reserving.result
            if reserved.outgoing != expected or any(it.lost for it in reserved.former):
                return nothing
            if reserved.sender is None or not _has_lost_nothing(reserved.sender, slot):
                return nothing
            stored = self._store(id_sequence, reserved.outgoing, signed)
            others = tuple(one for one in reserving.replaces if one != reserved.outgoing)
            return Decision(
                stored.result,
                inserts=(*reserving.inserts, *stored.inserts),
                replaces=(*others, *stored.replaces),
            )

        return self._note_stored(
            self._committer.commit(authority, decide, reads=nonce_reads(sender.id, known, sender))
        )

    def sign(self, authority: WorkerAuthority, outgoing: OutboundTransfer) -> OutboundTransfer:
        """A transfer whose nonce is reserved with its bytes, or as another worker has left it.

        Raises ChainUnavailable, also if the signer refuses.
        """
        try:
            signed = self._prepare(authority, outgoing)
        except SignerRefused as error:  # its nonce waits for it, and all after it
            _log.critical(
                "ALARM: the signer refused %s of %s: %s", outgoing.id, authority.partition, error
            )
            raise ChainUnavailable("the signer refused") from error

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[OutboundTransfer]:
            current = lock_transfer(tx, outgoing.id)
            slot = (outgoing.sender_id, outgoing.slot)
            if current.status != "reserved" or (current.sender_id, current.slot) != slot:
                # Another worker was faster, and its bytes count; or the transfer was withdrawn.
                return Decision(current)
            if current.funded_by and lock_transfer(tx, current.funded_by).block_number is None:
                raise ChainUnavailable("a reorg undid the transfer that brought its funds")
            return self._store(id_sequence, current, signed)

        funded_by = (outgoing.funded_by,) if outgoing.funded_by else ()
        locks = [Get(OutboundTransfer, id, "exclusive") for id in (outgoing.id, *funded_by)]
        outgoing = self._committer.commit(authority, decide, reads=locks)
        self._note_stored(outgoing)
        return outgoing

    def _note_stored(self, outgoing: OutboundTransfer | None) -> OutboundTransfer | None:
        if outgoing is not None and outgoing.raw and outgoing.sender_id is not None:
            if len(self._stored_last) >= MAX_REMEMBERED_SENDERS:
                self._stored_last.clear()
            self._stored_last[outgoing.sender_id] = outgoing.id
        return outgoing

    def _prepare(self, authority: WorkerAuthority, outgoing: OutboundTransfer) -> _SignedIntent:
        assert outgoing.slot is not None
        chain = self._chains[outgoing.chain_id]
        above = chain.heads().latest.number
        intent = to_intent(authority.partition, outgoing)
        return _SignedIntent(intent, chain.prepare(intent, outgoing.slot), above)

    def _store(
        self, id_sequence: IdSequence, current: OutboundTransfer, bytes: _SignedIntent
    ) -> Decision[OutboundTransfer]:
        now = self._clock.now()
        stored = attrs.evolve(
            current,
            status="signed",
            transaction_hash=bytes.signed.hash,
            raw=encode_signed(bytes.signed),
            signed_at=now,
            signed_above=bytes.above,
        )
        watched = new_return_address(
            id_sequence.issue("deposit_address"),
            current,
            self._chains[current.chain_id].find_payer(bytes.intent),
            now=now,
        )
        return Decision(stored, inserts=(watched,) if watched else (), replaces=(stored,))


def _is_ordinary(known: OutboundTransfer, sender: Sender) -> bool:
    """Whether a transfer waits for its first nonce, and nothing else must be checked first."""
    if known.status != "queued" or known.sender_id is not None or known.funded_by is not None:
        return False
    return _has_lost_nothing(sender, sender.next_slot)


def _has_lost_nothing(sender: Sender, slot: int) -> bool:
    return sender.lost is None and sender.seen_nonce <= slot
