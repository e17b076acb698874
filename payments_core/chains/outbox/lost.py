"""Our transactions that the storage does not know: it was restored to an older state.

They have still happened, or wait in a pool. A transfer that had no bytes yet when the backup
was made may be among them; signed again with another nonce, it would pay twice. So before
anything is signed, the sender's nonces are compared with the chain, including the pool:

1. The chain has used no nonce that is not known here: nothing is lost, and the transfer is signed.
2. It has used more. Nothing is signed until all of those transactions are final; an alarm names
   the sender. A dropped transaction may still be mined, so the highest number of nonces that was
   seen is stored, and counts until their transactions are final (`payments admin restored fill`).
3. They are final. The blocks since the last known transaction are searched for the
   transfer, in stored steps. A transaction that has moved the money closes the transfer: its hash
   is stored, and its owner continues as if we had sent it, which we had. A transfer that is not
   found gets the next nonce that is free on the chain.
4. Transfers created within `LOST_TTL_MS` are searched in the same blocks: a receipt that is found
   again after a restore is released again, by a different transfer than before.
5. Before a key signs for the first time, the senders with earlier keys are compared in the
   same way: their lost transactions may have moved the money that the new key is to move.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from payments_core.chains.outbox.record import (
    LostBlocks,
    OutboundTransfer,
    Sender,
    find_own_hashes,
    load_transfer,
    lock_transfer,
    new_return_address,
    to_intent,
)
from payments_core.chains.port import Chain, ChainUnavailable, ScannedTransfer
from payments_core.clock import DAY, MINUTE, Instant
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.storage.port import Storage, Transaction
from payments_core.storage.records import Record

LOST_TTL_MS = 1 * DAY
"""After a restore the scanner finds lost transactions within minutes; a day allows for outages."""

SCANS_PER_LOOK = 10
"""One look ends well before the lease of its job: a slow node takes some seconds for a scan."""

_ALARM_INTERVAL_MS = 15 * MINUTE

_log = logging.getLogger(__name__)


class SearchUnfinished(ChainUnavailable):
    """Some of the blocks were searched, and the position is stored: the next look continues."""


class LostTransactions:
    """Compares a sender with the chain before a transfer of it is signed."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._alarmed_at: dict[str, Instant] = {}

    def compare(
        self,
        authority: WorkerAuthority,
        chain: Chain,
        outgoing: OutboundTransfer,
        sender: Sender,
        former: Sequence[Sender],
    ) -> OutboundTransfer:
        """The transfer with a nonce that may be signed, or with the transaction that has moved it.

        It has a nonce of `sender` reserved, and `former` are the environment's senders on the chain
        with other keys, at that time. Raises ChainUnavailable while it is unknown.
        """
        assert outgoing.slot is not None
        if outgoing.previous_id is None:
            former = [self._compare_former(authority, chain, one) for one in former]
        used = chain.pending_nonce(sender.address)
        if max(used, sender.seen_nonce) > outgoing.slot:
            # Bytes are stored before they are sent: they may be another worker's.
            current = load_transfer(self._storage, authority.partition, outgoing.id)
            if current.status != "reserved" or current.slot != outgoing.slot:
                return current
            sender = self._find_lost_blocks(
                authority, chain, sender, used, outgoing.slot, outgoing.previous_id
            )
        lost = _find_blocks_to_search(outgoing, outgoing.slot, sender, former)
        return outgoing if lost is None else self._search(authority, chain, lost, outgoing)

    def _compare_former(self, authority: WorkerAuthority, chain: Chain, former: Sender) -> Sender:
        """A sender whose key was in use before, with the blocks of its lost transactions.

        Lost transactions were sent before the first look. Later ones are not awaited: somebody who
        has stolen the key could send endlessly, and nothing would ever be signed.
        """
        used = chain.pending_nonce(former.address)
        sender = self._load_sender(authority, former.id)  # a process with that key may continue
        last_id, known = sender.last_outgoing_id, sender.next_slot
        if last_id is not None:
            last = load_transfer(self._storage, authority.partition, last_id)
            if last.raw is None:
                last_id, known = last.previous_id, known - 1
        if max(used, sender.seen_nonce) <= known:
            return sender
        if sender.seen_nonce > known:
            used = sender.seen_nonce
        return self._find_lost_blocks(authority, chain, sender, used, known, last_id)

    def _find_lost_blocks(
        self,
        authority: WorkerAuthority,
        chain: Chain,
        sender: Sender,
        used: int,
        known: int,
        last_id: str | None,
    ) -> Sender:
        """The sender with the blocks that its lost transactions are in, once they are final.

        The storage knows `known` of its nonces, and `last_id` is the transfer of the last of them.
        """
        seen = max(used, sender.seen_nonce)
        if seen > sender.seen_nonce:
            sender = self._change_sender(authority, sender, seen, None)
        if sender.lost is not None and sender.lost.nonce >= seen:
            return sender
        final = chain.final_nonce(sender.address)
        self._alarm(authority, sender, known, final)
        if final < seen:
            raise ChainUnavailable(f"transactions of {sender.id} are not final and not known here")
        lost = LostBlocks(
            nonce=seen,
            first=self._find_block_before(authority, last_id),
            last=chain.heads().final.number,
            until=self._clock.now() + LOST_TTL_MS,
        )
        return self._change_sender(authority, sender, seen, lost)

    def _search(
        self,
        authority: WorkerAuthority,
        chain: Chain,
        lost: LostBlocks,
        outgoing: OutboundTransfer,
    ) -> OutboundTransfer:
        """The transfer with the transaction that has moved it, or with a nonce that is free."""
        searched = max(outgoing.searched_to, lost.first)
        if outgoing.module is not None:  # a completed step fails if it is repeated
            searched = lost.last
        for _ in range(SCANS_PER_LOOK):
            if searched >= lost.last:
                break
            last = min(searched + chain.max_scan_blocks, lost.last)
            found = chain.scan([outgoing.token_address], [outgoing.recipient], searched + 1, last)
            moved = find_moved(self._storage, authority, chain, outgoing, found)
            if moved is not None:
                _log.warning(
                    "%s of %s was sent before the storage was restored: %s",
                    outgoing.id, authority.partition, moved.transaction_hash,
                )  # fmt: skip
                return self._close(authority, lost, outgoing, moved)
            searched = last
        stored = self._store_search(authority, lost, outgoing, searched)
        if searched < lost.last:
            raise SearchUnfinished(f"blocks up to {lost.last} are searched for {outgoing.id}")
        return stored

    def _close(
        self,
        authority: WorkerAuthority,
        lost: LostBlocks,
        outgoing: OutboundTransfer,
        moved: ScannedTransfer,
    ) -> OutboundTransfer:
        """Store the transaction as the transfer's own. The nonce that it had reserved stays free,
        if it is free on the chain.
        """

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[OutboundTransfer]:
            sender = _lock_sender(tx, outgoing)
            current = lock_transfer(tx, outgoing.id)
            if current.status != "reserved" or current.slot != outgoing.slot:
                return Decision(current)
            assert current.slot is not None
            free = max(current.slot, lost.nonce)
            closed = evolve(
                current,
                status="signed",
                slot=free - 1,
                transaction_hash=moved.transaction_hash,
                raw="",
                signed_at_ms=self._clock.now(),
                signed_above=lost.first,
            )
            now = self._clock.now()
            id = id_sequence.issue("deposit_address")
            watched = new_return_address(id, current, moved.sender, now=now)
            return Decision(
                closed,
                inserts=(watched,) if watched else (),
                replaces=(evolve(sender, next_slot=free), closed),
            )

        return self._committer.commit(authority, decide)

    def _store_search(
        self,
        authority: WorkerAuthority,
        lost: LostBlocks,
        outgoing: OutboundTransfer,
        searched: int,
    ) -> OutboundTransfer:
        """Store how far the search got, and after its end the nonce that is free on the chain."""

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[OutboundTransfer]:
            sender = _lock_sender(tx, outgoing)
            current = lock_transfer(tx, outgoing.id)
            if current.status != "reserved" or current.slot != outgoing.slot:
                return Decision(current)
            assert current.slot is not None
            stored = evolve(current, searched_to=max(current.searched_to, searched))
            changed: tuple[Record, ...] = ()
            if searched >= lost.last and current.slot < lost.nonce:
                stored = evolve(stored, slot=lost.nonce)
                changed = (evolve(sender, next_slot=lost.nonce + 1),)
            if stored != current:
                changed += (stored,)
            return Decision(stored, replaces=changed)

        return self._committer.commit(authority, decide)

    def _change_sender(
        self, authority: WorkerAuthority, known: Sender, seen: int, lost: LostBlocks | None
    ) -> Sender:
        """Store what was seen of a sender; the progress of the search is kept."""

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Sender]:
            sender = tx.get(Sender, known.id, for_update=True)
            assert sender is not None
            merged = _merge(sender.lost, lost, self._clock.now())
            changed = evolve(sender, seen_nonce=max(sender.seen_nonce, seen), lost=merged)
            return Decision(changed, replaces=(changed,) if changed != sender else ())

        return self._committer.commit(authority, decide)

    def _find_block_before(self, authority: WorkerAuthority, last_id: str | None) -> int:
        """A block before all lost transactions: the newest block when the last bytes that
        are known were signed; 0 if no bytes are known.
        """
        if last_id is None:
            return 0
        return load_transfer(self._storage, authority.partition, last_id).signed_above

    def _alarm(self, authority: WorkerAuthority, sender: Sender, known: int, final: int) -> None:
        now = self._clock.now()
        last = self._alarmed_at.get(sender.id)
        if last is not None and 0 <= now - last < _ALARM_INTERVAL_MS:
            return
        self._alarmed_at[sender.id] = now
        _log.critical(
            "ALARM: sender %s of %s has used %d nonces, %d of them final, and the storage knows "
            "%d: it was restored to an older state, or the key is used elsewhere. Nothing is "
            "signed until all are final and compared (docs/how-to/back-up-and-restore.md)",
            sender.id, authority.partition, sender.seen_nonce, final, known,
        )  # fmt: skip

    def _load_sender(self, authority: WorkerAuthority, id: str) -> Sender:
        sender = self._storage.read(authority.partition, lambda snapshot: snapshot.get(Sender, id))
        assert sender is not None, f"no sender {id}"
        return sender


def find_moved(
    storage: Storage,
    authority: WorkerAuthority,
    chain: Chain,
    outgoing: OutboundTransfer,
    found: tuple[ScannedTransfer, ...],
) -> ScannedTransfer | None:
    """The transfer that has moved the money of `outgoing`; None if there is none.

    It comes from the payer that the logs of `outgoing` would show, with the same amount unless that
    payer belongs to this transfer only, and in a transaction that no transfer here has signed. Two
    such transfers have the same effect: it does not matter which is matched.
    """
    payer = chain.find_payer(to_intent(authority.partition, outgoing))
    alike = [
        transfer
        for transfer in found
        if (transfer.sender, transfer.recipient) == (payer, outgoing.recipient)
        and (payer != outgoing.source.address or transfer.amount_atomic == outgoing.amount_atomic)
    ]
    known = find_own_hashes(storage, {transfer.transaction_hash for transfer in alike})
    return next((it for it in alike if it.transaction_hash not in known), None)


def _find_blocks_to_search(
    outgoing: OutboundTransfer, slot: int, sender: Sender, former: Sequence[Sender]
) -> LostBlocks | None:
    """The blocks to search for a transfer; None if all lost transactions came before it.

    Lost transactions of former senders have used no nonce of this one.
    """
    found = [
        evolve(one.lost, nonce=0)
        for one in former
        if one.lost is not None and outgoing.created_at_ms < one.lost.until
    ]
    own = sender.lost
    if own is not None and (slot < own.nonce or outgoing.created_at_ms < own.until):
        found.append(own)
    if not found:
        return None
    return LostBlocks(
        nonce=max(one.nonce for one in found),
        first=min(one.first for one in found),
        last=max(one.last for one in found),
        until=max(one.until for one in found),
    )


def _merge(before: LostBlocks | None, lost: LostBlocks | None, now: Instant) -> LostBlocks | None:
    if before is None or lost is None or now >= before.until:
        return lost or before
    return evolve(lost, first=min(before.first, lost.first), nonce=max(before.nonce, lost.nonce))


def _lock_sender(tx: Transaction, outgoing: OutboundTransfer) -> Sender:
    sender = tx.get(Sender, str(outgoing.sender_id), for_update=True)
    assert sender is not None, f"no sender {outgoing.sender_id}"
    return sender
