"""Resends our own transactions that a reorg dropped, in any state of their owners.

No transaction of a sender is included while an earlier slot is empty; and a payment stays paid
only if the transaction comes back. The bytes are fixed, so that it moves nothing twice. A transfer
whose success was final is followed again (`jobs.py`): its owner learns if it fails now,
even if the nodes refuse the transactions of another sender of the environment.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from payments_core.chains.backoff import POLL_MS, back_off
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.record import OutboundTransfer, Sender, follow_job, sender_lane
from payments_core.chains.port import ChainUnavailable
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, NewJob, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.storage.damaged_records import leave_out_damaged
from payments_core.storage.jobs import NEVER
from payments_core.storage.lookups import locate_all
from payments_core.storage.port import ClaimedJob, Transaction

RESEND = "chains.resend"

_log = logging.getLogger(__name__)


class ReorgRecovery:
    """Listens to undone blocks, and has every sender of the chain checked."""

    def __init__(
        self,
        ports: Ports,
        outbox: Outbox,
        mode: str,
        is_of_mode: Callable[[str], bool],
    ) -> None:
        """`is_of_mode` says whether a partition is an environment of the mode."""
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._outbox = outbox
        self._mode = mode
        self._is_of_mode = is_of_mode

    def on_reorg(self, chain_id: int, first: int, last: int) -> None:
        """Have each environment's sender on the chain checked."""
        damaged: set[str] = set()  # its job reports it, and is done once the row is repaired
        found = locate_all(
            self._storage,
            Sender,
            "by_chain",
            [(chain_id,)],
            on_damaged=lambda partition, id: damaged.add(partition),
        )
        partitions = dict.fromkeys(located.partition for located in found)
        for partition in (*partitions, *(damaged - partitions.keys())):
            with leave_out_damaged("the recovery after a reorg", partition):
                self._check_sender(partition, chain_id, first)

    def resend(self, claimed: ClaimedJob) -> None:
        """The job: resend transactions that the chain no longer knows, and have them followed."""
        authority = WorkerAuthority.of(claimed)
        chain_id, first = int(claimed.job.subject), int(claimed.job.arguments["first"])
        dropped = self._rebroadcast(authority, chain_id)
        if dropped is None and first == NEVER:
            self._committer.finish(claimed, back_off(claimed.job, self._clock.now()))
            return
        if dropped:
            _log.warning(
                "a reorg of chain %d dropped %d transactions of %s; they are sent again",
                chain_id, dropped, claimed.partition,
            )  # fmt: skip
        undone = self._outbox.find_possibly_reorged(authority, chain_id, first)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            now = self._clock.now()
            decision: Decision[None] = Decision(None)
            if dropped is None:  # another job continues sending, and has nothing to record
                again = _resend_job(claimed.partition, chain_id, NEVER, now + POLL_MS)
                decision = Decision(None, jobs=(again,))
            for known in undone:
                decision = decision.merge(_note_reorg(tx, known.id, now=now))
            return decision

        self._committer.commit(authority, decide, claimed=claimed)

    def _check_sender(self, partition: str, chain_id: int, first: int) -> None:
        if not self._is_of_mode(partition):
            return
        check = Decision(None, jobs=(_resend_job(partition, chain_id, first, self._clock.now()),))
        authority = WorkerAuthority(partition, self._mode)
        self._committer.commit(authority, lambda tx, id_sequence: check)

    def _rebroadcast(self, authority: WorkerAuthority, chain_id: int) -> int | None:
        """How many transactions were sent again; None if one was refused."""
        try:
            return self._outbox.rebroadcast_dropped(authority, chain_id)
        except ChainUnavailable:
            return None


def _resend_job(partition: str, chain_id: int, first: int, due_at: Instant) -> NewJob:
    """The job for blocks undone from `first` on; NEVER if there is nothing to record."""
    lane = sender_lane(partition, chain_id)
    return NewJob("chain", RESEND, lane, due_at, str(chain_id), {"first": str(first)})


def _note_reorg(tx: Transaction, outgoing_id: str, *, now: Instant) -> Decision[None]:
    """Earlier looks at the transfer are stale; a finished transfer must be followed again."""
    outgoing = tx.get(OutboundTransfer, outgoing_id, for_update=True)
    assert outgoing is not None
    undone = evolve(outgoing, block_number=None, searched_to=0, reorgs=outgoing.reorgs + 1)
    if outgoing.block_number is None:
        return Decision(None, replaces=(undone,))
    follow = follow_job(outgoing.id, now + POLL_MS)
    return Decision(None, replaces=(undone,), jobs=(follow,))
