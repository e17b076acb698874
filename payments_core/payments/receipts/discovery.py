"""Transactions found: whoever finds one writes its evidence, and the job that looks at it.

Finding moves nothing. A scan, our own sending, a reorg or a client's hint may all find the same
transaction, more than once and in any order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import attrs

from payments_core.chains.outbox.record import find_own_hashes
from payments_core.chains.port import Block, ScannedTransfer
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, NewJob, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.payments.receipts.record import TrackedTransaction, tracked_transaction_id
from payments_core.payments.record import Payment
from payments_core.storage.port import MAX_LOCATE_KEYS, LocatedRecord, Transaction
from payments_core.tenants.modes import is_of_mode

WATCH_TRANSACTION = "receipts.watch"


def track_transaction(
    tx: Transaction,
    payment_id: str,
    chain_id: int,
    transaction_hash: str,
    *,
    now: Instant,
    due_at: Instant,
    option_id: str | None = None,
    block: Block | None = None,
    hinted_until: Instant | None = None,
) -> Decision[None]:
    """Have a transaction looked at for a Payment, unless a job does so already.

    `option_id` is the option whose operation sent it, and `block` where it was found, where that
    is known. A hint is followed until `hinted_until`; what a scan finds is no mere hint any more.
    """
    id = tracked_transaction_id(payment_id, chain_id, transaction_hash)
    job = NewJob("chain", WATCH_TRANSACTION, f"payment:{payment_id}", due_at, id)
    known = tx.get(TrackedTransaction, id, for_update=True)
    if known is None:
        found = TrackedTransaction(
            id=id,
            payment_id=payment_id,
            chain_id=chain_id,
            transaction_hash=transaction_hash,
            option_id=option_id,
            block_number=block.number if block else None,
            block_hash=block.hash if block else None,
            hinted_until=hinted_until,
            created_at=now,
        )
        return Decision(None, inserts=(found,), jobs=(job,))
    # Its version rises in any case: a look that is under way may have been too early.
    again = attrs.evolve(known, watched=True, option_id=option_id or known.option_id)
    if block is not None:
        again = attrs.evolve(
            again, block_number=block.number, block_hash=block.hash, hinted_until=None
        )
    # A hint is looked at more and more seldom: what was found is looked at now.
    is_followed = known.watched and again.hinted_until == known.hinted_until
    return Decision(None, replaces=(again,), jobs=() if is_followed else (job,))


class ReceiptDiscovery:
    """What a scan of a chain means for Payments: transfers to escrows, and blocks undone."""

    def __init__(self, ports: Ports, mode: str) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._mode = mode

    def filter_known(self, recipients: set[str]) -> set[str]:
        """Those of the recipients that are escrows."""
        return {str(located.record.escrow_address) for located in self._find_by_escrow(recipients)}

    def on_transfers(self, chain_id: int, transfers: Sequence[ScannedTransfer]) -> None:
        """Have every transfer to an escrow looked at, whatever chain or token it is on.

        Our own are watched by the job that sends them, with their operation; they are looked at
        again where they are not in the block that they were in.
        """
        by_recipient: dict[str, dict[str, Block]] = defaultdict(dict)
        for transfer in transfers:
            by_recipient[transfer.recipient][transfer.transaction_hash] = transfer.block
        for located in self._find_by_escrow(by_recipient):
            payment = located.record
            assert payment.escrow_address is not None
            hashes = by_recipient[payment.escrow_address]
            ours = find_own_hashes(self._storage, hashes)
            for hash, block in sorted(hashes.items()):
                self._track(
                    located.partition,
                    payment.id,
                    chain_id,
                    hash,
                    block,
                    is_ours=hash in ours,
                    may_be_purged=payment.status == "expired",
                )

    def on_reorg(self, chain_id: int, first: int, last: int) -> None:
        """Have every transaction looked at again that was seen in these blocks."""
        for start in range(first, last + 1, MAX_LOCATE_KEYS):
            heights = range(start, min(start + MAX_LOCATE_KEYS, last + 1))
            after: tuple[str, str] | None = None
            while page := self._storage.locate(
                TrackedTransaction,
                "by_block",
                [(chain_id, height) for height in heights],
                after=after,
            ):
                for located in page:
                    tracked = located.record
                    self._track(
                        located.partition, tracked.payment_id, chain_id, tracked.transaction_hash
                    )
                after = (page[-1].partition, page[-1].record.id)

    def _find_by_escrow(self, addresses: Iterable[str]) -> Iterator[LocatedRecord[Payment]]:
        """The Payments whose escrows these are; an escrow is one Payment's alone."""
        keys = [(address,) for address in sorted(addresses)]
        for start in range(0, len(keys), MAX_LOCATE_KEYS):
            batch = keys[start : start + MAX_LOCATE_KEYS]
            yield from self._storage.locate(Payment, "by_escrow", batch, limit=MAX_LOCATE_KEYS)

    def _track(
        self,
        partition: str,
        payment_id: str,
        chain_id: int,
        hash: str,
        block: Block | None = None,
        *,
        is_ours: bool = False,
        may_be_purged: bool = False,
    ) -> None:
        """Have a transaction looked at.

        One that `may_be_purged` is changed with it, so that a purge at the same time either sees
        that, or is over; after it the transfer is one for `PurgedEscrows`, whose listener is next.
        """
        if not is_of_mode(self._storage, partition, self._mode):
            return
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            kept: Decision[None] = Decision(None)
            if may_be_purged:
                payment = tx.get(Payment, payment_id, for_update=True)
                if payment is None:
                    return kept
                kept = Decision(None, replaces=(attrs.evolve(payment, updated_at=now),))
            if is_ours:
                id = tracked_transaction_id(payment_id, chain_id, hash)
                known = tx.get(TrackedTransaction, id, for_update=True)
                if known is None or block is None or known.block_hash in (None, block.hash):
                    return Decision(None)
            found = track_transaction(
                tx, payment_id, chain_id, hash, now=now, due_at=now, block=block
            )
            return found.merge(kept)

        self._committer.commit(WorkerAuthority(partition, self._mode), decide)
