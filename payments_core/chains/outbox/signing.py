"""Signs a transfer, and stores its bytes before they are broadcast.

If this process has stored the bytes of a sender's last transfer itself, and nothing of it is
lost, the next ones are signed first: one commit then takes their nonces and stores the bytes, if
these are still the sender's next. Otherwise the nonce is reserved by a separate commit, and one
transfer signed for it. Nobody has seen bytes that were not stored.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

import attrs

from payments_core.chains.outbox.inclusion import encode_signed
from payments_core.chains.outbox.nonces import MAX_SENDERS, load_senders
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
from payments_core.engine.jobs.parking import describe_error
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Find, Get, Read
from payments_core.storage.records import Record

MAX_REMEMBERED_SENDERS = 10_000
MAX_TOGETHER_S = 1.0
"""How many seconds transfers are signed, or broadcast, before those that are done are committed."""

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
        self, authority: WorkerAuthority, known: Sequence[OutboundTransfer], sender: Sender | None
    ) -> Sequence[OutboundTransfer]:
        """The first of some transfers with its bytes, at the sender's next nonce, then others.

        One commit stores all bytes. Those that are not in the result, and all if it is empty, have
        no bytes yet: anything is unusual, or has changed meanwhile, the signer refused, or
        signing took too long. Raises ChainUnavailable if the first cannot be signed.
        """
        if sender is None or not _is_ordinary(known[0], sender):
            return ()
        last_id = sender.last_outgoing_id
        if last_id is None or last_id != self._stored_last.get(sender.id):
            return ()  # it may have no bytes: the first would take its nonce
        chain_id, first_slot = sender.chain_id, sender.next_slot
        if self._chains[chain_id].pending_nonce(sender.address) > first_slot:
            return ()  # transactions that are not known here
        ordinary = [one for one in known if _is_ordinary(one, sender)]
        signed = self._sign_in_order(authority, ordinary, sender)
        if not signed:
            return ()
        outgoings = [outgoing for outgoing, _ in signed]
        locked_ids = [one.id for one in outgoings]
        taken = evolve(sender, next_slot=first_slot + len(signed), last_outgoing_id=locked_ids[-1])

        def decide(
            tx: Transaction, id_sequence: IdSequence
        ) -> Decision[Sequence[OutboundTransfer]]:
            by_id = sorted(outgoings, key=lambda outgoing: outgoing.id)
            if not all(_is_current(tx, one) for one in (sender, *by_id)):
                return Decision(())
            if lock_transfer(tx, last_id).raw is None:
                return Decision(())
            if any(one.lost for one in load_senders(tx, chain_id)):
                return Decision(())
            stored = [self._store(id_sequence, *one) for one in signed]
            return Decision(
                [one.result for one in stored],
                inserts=tuple(record for one in stored for record in one.inserts),
                replaces=(taken, *(record for one in stored for record in one.replaces)),
            )

        reads: Sequence[Read] = (
            Get(Sender, sender.id, "exclusive"),
            *[Get(OutboundTransfer, id, "exclusive") for id in sorted({*locked_ids, last_id})],
            Find(Sender, "of_chain", (chain_id,), MAX_SENDERS),
        )
        result = self._committer.commit(authority, decide, reads=reads)
        if result:
            self._note_stored(result[-1])
        return result

    def _sign_in_order(
        self, authority: WorkerAuthority, ordinary: Sequence[OutboundTransfer], sender: Sender
    ) -> Sequence[tuple[OutboundTransfer, _SignedIntent]]:
        """Transfers as they will be with the sender's next nonces, and their bytes.

        The first, and as many of the others in their order as can be signed within a second.
        """
        began = time.monotonic()
        signed: list[tuple[OutboundTransfer, _SignedIntent]] = []
        previous_id = sender.last_outgoing_id
        for slot, one in enumerate(ordinary, sender.next_slot):
            reserved = evolve(
                one, status="reserved", sender_id=sender.id, slot=slot, previous_id=previous_id
            )
            try:
                signed.append((reserved, self._prepare(authority, reserved)))
            except SignerRefused:
                break
            except Exception as error:
                if not signed:
                    raise
                if not isinstance(error, ChainUnavailable):
                    _log.warning("%s is signed alone: %s", one.id, describe_error(error))
                break
            if time.monotonic() - began > MAX_TOGETHER_S:
                break
            previous_id = one.id
        return signed

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
        stored = evolve(
            current,
            status="signed",
            transaction_hash=bytes.signed.hash,
            raw=encode_signed(bytes.signed),
            signed_at_ms=now,
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
    if known.chain_id != sender.chain_id:
        return False
    return _has_lost_nothing(sender, sender.next_slot)


def _is_current(tx: Transaction, known: Record) -> bool:
    """Whether a record, which is locked here, is as it was read."""
    locked = tx.get(type(known), known.id, for_update=True)
    return locked is not None and locked.version == known.version


def _has_lost_nothing(sender: Sender, slot: int) -> bool:
    return sender.lost is None and sender.seen_nonce <= slot
