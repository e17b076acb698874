"""Discovery of transactions: the finder writes the evidence, and the job that checks it.

Finding moves nothing. A scan, our own sending, a reorg or a client's hint may all find the same
transaction, more than once and in any order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import attrs

from payments_core.chains.outbox.record import find_own_hashes
from payments_core.chains.port import Block, ScannedTransfer, is_coin_log
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, NewJob, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.payments.receipts.record import TrackedTransaction, tracked_transaction_id
from payments_core.payments.record import Payment
from payments_core.storage.damaged_records import leave_out_damaged
from payments_core.storage.lookups import locate_all, locate_with_damaged
from payments_core.storage.port import Transaction
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
    """Have a transaction checked for a Payment, unless a job already does so.

    `option_id` is the option whose operation sent it, and `block` where it was found, if that
    is known. A hint is followed until `hinted_until`; once a scan finds it, it is no longer only a
    hint.
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
            is_ours=option_id is not None,
            block_number=block.number if block else None,
            block_hash=block.hash if block else None,
            block_time=block.time if block else None,
            found_in=block.hash if block else None,
            hinted_until_ms=hinted_until,
            created_at_ms=now,
        )
        return Decision(None, inserts=(found,), jobs=(job,))
    # Its version rises in any case: a check in progress may have been too early.
    again = evolve(
        known,
        watched=True,
        option_id=option_id or known.option_id,
        is_ours=known.is_ours or option_id is not None,
    )
    if block is not None:
        again = evolve(
            again,
            block_number=block.number,
            block_hash=block.hash,
            block_time=block.time,
            found_in=block.hash,
            hinted_until_ms=None,
        )
    # A hint is checked less and less often: a found transaction is checked now.
    is_followed = known.watched and again.hinted_until_ms == known.hinted_until_ms
    return Decision(None, replaces=(again,), jobs=() if is_followed else (job,))


@attrs.frozen
class _Escrow:
    """The escrow of a Payment, as far as it is known for a damaged one."""

    partition: str
    payment_id: str
    address: str
    may_be_purged: bool = False


class ReceiptDiscovery:
    """Handles a scan of a chain for Payments: transfers to escrows, and undone blocks."""

    def __init__(self, ports: Ports, mode: str) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._mode = mode

    def filter_known(self, recipients: set[str]) -> set[str]:
        """The recipients that are escrows."""
        return {escrow.address for escrow in self._find_escrows(recipients)}

    def on_transfers(self, chain_id: int, transfers: Sequence[ScannedTransfer]) -> None:
        """Have every transfer to an escrow checked, on any chain and of any token.

        Our own are watched by the job that sends them, with their operation; they are checked
        again if they are not in the block that they were in. One that only makes a log of native
        coin is as good as a stranger's.
        """
        by_recipient: dict[str, dict[str, Block]] = defaultdict(dict)
        coin_logs: dict[str, set[str]] = defaultdict(set)
        for transfer in transfers:
            by_recipient[transfer.recipient][transfer.transaction_hash] = transfer.block
            if is_coin_log(transfer):
                coin_logs[transfer.recipient].add(transfer.transaction_hash)
        for escrow in self._find_escrows(by_recipient):
            hashes = by_recipient[escrow.address]
            ours = find_own_hashes(self._storage, hashes) - coin_logs[escrow.address]
            for hash, block in sorted(hashes.items()):
                with leave_out_damaged(f"transaction {hash}", escrow.partition):
                    self._track(
                        escrow.partition,
                        escrow.payment_id,
                        chain_id,
                        hash,
                        block,
                        is_ours=hash in ours,
                        may_be_purged=escrow.may_be_purged,
                    )

    def on_reorg(self, chain_id: int, first: int, last: int) -> None:
        """Have every transaction checked again that was seen in these blocks."""
        keys = ((chain_id, height) for height in range(first, last + 1))
        for located in locate_all(self._storage, TrackedTransaction, "by_block", keys):
            tracked, partition = located.record, located.partition
            with leave_out_damaged(f"transaction {tracked.transaction_hash}", partition):
                self._track(partition, tracked.payment_id, chain_id, tracked.transaction_hash)

    def _find_escrows(self, addresses: Iterable[str]) -> list[_Escrow]:
        """The addresses that are escrows; an escrow belongs to one Payment only.

        Transfers to a Payment that cannot be read are tracked too: their job waits for a repair.
        """
        keys = [(address,) for address in sorted(addresses)]
        found, damaged = locate_with_damaged(self._storage, Payment, "by_escrow", keys)
        return [
            *(
                _Escrow(
                    located.partition,
                    located.record.id,
                    str(located.record.escrow_address),
                    may_be_purged=located.record.status == "expired",
                )
                for located in found
            ),
            *(_Escrow(row.partition, row.id, str(row.key[0])) for row in damaged),
        ]

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
        """Have a transaction checked.

        A Payment that `may_be_purged` is changed with it, so that a concurrent purge either sees
        that, or is done; after it the transfer belongs to `PurgedEscrows`, whose listener is next.
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
                kept = Decision(None, replaces=(evolve(payment, updated_at_ms=now),))
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
