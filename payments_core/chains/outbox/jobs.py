"""The jobs of our transfers: send it, watch it to finality, follow it after a reorg.

There are five kinds of transfers: the funding of a Payment from a vault, the release to its
recipient, a refund, the sweep of a deposit, and the credit of a bank transfer. Their owners are
records of five rooms, and the money is moved in one way: here, and in `sending.py`. They differ in
what an owner reads and commits, which is the protocol of `owners.py`. An owner has no loop, no
exception handling and, except `read_chain`, no I/O.

The life of one transfer, and the result of a crash at each point:

1. The intent. A decision inserts an `OutboundTransfer` and a send job, in one commit with the
   change that needs it. A crash before leaves nothing, a crash after leaves a job that is due. The
   owner may still withdraw the intent, until a nonce is reserved; then the send job finds nothing
   to send. A release whose receipt was undone can be withdrawn until its bytes are stored.
2. The nonce. `Outbox.sign` reserves the sender's next nonce in a separate commit. A crash leaves
   a reserved nonce: the job runs again and signs the same intent for the same nonce. If another
   transfer is sent before that, or a release is withdrawn, the other transfer gets the nonce, and
   the job reserves the next. If this process has stored the last bytes of the sender, the nonce is
   taken in the commit that stores the bytes, and several transfers that wait in the sender's lane
   take theirs together (`Outbox.sign_next`): a crash before that commit leaves nothing.
3. The bytes. They are signed, then stored, then broadcast in the order of their nonces. A crash
   before they are stored loses bytes that nobody has seen. A crash after leaves stored bytes, and
   only these are ever sent: each has its own send job, which broadcasts them. If one is not
   answered, those after it wait for their jobs too. A replacement with higher fees is stored in the
   same way, and uses the same nonce.
4. The broadcast. A crash, or an answer that is lost, leaves bytes that the chain may have. Sending
   them again moves nothing twice, since a nonce is used once. An owner may record that it does not
   know: its operation is `unknown`, and the chain is asked for the transaction before the same
   bytes are sent again (`TransferToSend.is_unknown`).
5. Sent. `on_sent` commits the owner's step and the job that watches, with the end of the send job.
   One commit has those that were sent together. A crash before leaves the send jobs, which send the
   same bytes again.
6. The wait. Each look only reads, and rebroadcasts what is in no block. While the chain does not
   answer, the pauses double; while the transfer is not final it is polled. Neither ever gives up.
7. The outcome. It is final, success or failure; or a success that counts before it is final.
   Further facts for the owner, such as a balance at that height or above, are read outside the
   transaction. Then one commit locks the owner, notes the outcome on the `OutboundTransfer` and
   takes the owner's step, with the end of the job. A crash before leaves the watch job, and it
   looks again. So does a reorg, or a newer balance, that was recorded between the look and the
   commit (`StaleView`).
8. After the outcome. A success that its owner believes before it is final (`TransferToWatch`) has
   a follow job until it is: scans remember only the newest blocks, and nodes may differ about them.
   If a scan notices a reorg, `reorg_recovery` sends the same bytes again, and adds a follow job for
   those that had succeeded. If one fails now, one commit notes that and has the owner reverse its
   success (`on_reversed`).

Funding differs at both ends. A lost answer is a state of its operation, and its authorization
expires while nothing is signed: `on_unsent`. And its transfer arrives in our own escrow as a
receipt, which proves it like any other payment there: `on_sent` adds the job of the receipt
(`payments/tracking/jobs.py`) in place of a watch job. Steps 6 to 8 are then the receipt's. So
funding is a `TransferOwner`, and the four others are each a `FollowedOwner`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import attrs

from payments_core.chains.backoff import REORG_RECHECK_MS, back_off, poll_again
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.owners import FollowedOwner, TransferOwner
from payments_core.chains.outbox.record import (
    FOLLOW_AGAIN,
    OutboundTransfer,
    TransferOutcome,
    TransferToWatch,
    mark_final,
)
from payments_core.chains.outbox.screening import ScreeningGate
from payments_core.chains.outbox.sending import SendJobs, order_locks
from payments_core.chains.port import ChainUnavailable
from payments_core.engine.decision import Decision, StaleView, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.execution import BatchHandler, Handler
from payments_core.engine.ports import Ports
from payments_core.engine.sequential_decisions import decide_sequentially
from payments_core.errors import DependencyFailed
from payments_core.storage.port import ClaimedJob, Transaction
from payments_core.storage.reads import Get
from payments_core.storage.records import Record

R = TypeVar("R", bound=Record)
L = TypeVar("L")
F = TypeVar("F")


@attrs.frozen
class _FinalLook(Generic[R, F]):
    """The result of a look at a transfer with a final outcome."""

    record: R
    transfer: TransferToWatch
    outcome: TransferOutcome
    facts: F


_log = logging.getLogger(__name__)


class TransferJobs:
    """Runs the jobs of our transfers, for their owners."""

    def __init__(
        self,
        ports: Ports,
        outbox: Outbox,
        gate: ScreeningGate,
        *,
        sent: Iterable[TransferOwner[Any]],
        followed: Iterable[FollowedOwner[Any, Any, Any]],
    ) -> None:
        """`followed` are sent and watched here; `sent` are sent here and watched elsewhere."""
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._outbox = outbox
        self._followed = {owner.purpose: owner for owner in followed}
        self._sending = SendJobs(ports, outbox, gate, (*sent, *self._followed.values()))

    def handlers(self) -> Mapping[str, Handler]:
        """The handler of each job, by its kind."""
        return {
            FOLLOW_AGAIN: self.follow,
            **self._sending.handlers(),
        }

    def batch_handlers(self) -> Mapping[str, BatchHandler]:
        """The batch handlers, by kind of job."""
        return {owner.watch_kind: partial(self.watch, owner) for owner in self._followed.values()}

    def watch(self, owner: FollowedOwner[R, L, F], claimed: Sequence[ClaimedJob]) -> None:
        """Look at transfers of one environment: not final, final, or failed permanently."""
        authority = WorkerAuthority.of(claimed[0])
        subjects = {item.job.subject for item in claimed}
        records = self._storage.read_apart(
            authority.partition,
            lambda snapshot: snapshot.get_many(owner.record_type, subjects),
        )
        ends: dict[str, Decision[Any]] = {}
        looks: list[tuple[ClaimedJob, R, TransferToWatch]] = []
        for item in claimed:
            record = records[item.job.subject]
            transfer = owner.find_to_watch(record, item.job)
            if transfer is None:
                ends[item.job.id] = Decision(None)
            else:
                looks.append((item, record, transfer))
        outcomes = self._outbox.check_outcomes(authority, [transfer for *_, transfer in looks])
        final: dict[str, _FinalLook[R, F]] = {}
        for (item, record, transfer), outcome in zip(looks, outcomes, strict=True):
            facts = partial(owner.read_chain, authority.partition, record)
            look = self._finish_look(item, outcome, facts)
            if isinstance(look, Decision):
                ends[item.job.id] = look
            else:
                final[item.job.id] = _FinalLook(record, transfer, *look)
        self._commit_looks(owner, authority, claimed, ends, final)

    def _commit_looks(
        self,
        owner: FollowedOwner[R, L, F],
        authority: WorkerAuthority,
        claimed: Sequence[ClaimedJob],
        ends: Mapping[str, Decision[Any]],
        final: Mapping[str, _FinalLook[R, F]],
    ) -> None:
        """Commit looks together: final outcomes, and jobs that only end or are postponed.

        Their locks are taken in one order: jobs, the owners' records, the transfers.
        """
        looks = sorted(final.values(), key=lambda look: look.record.id)
        owned = [lock for look in looks for lock in owner.locks(look.record, look.outcome.hash)]
        transfers = [Get(OutboundTransfer, look.transfer.id, "exclusive") for look in looks]

        def decide(tx: Transaction, id_sequence: IdSequence, item: ClaimedJob) -> Decision[Any]:
            look = final.get(item.job.id)
            if look is None:
                return ends[item.job.id]
            try:
                return self._decide_final(owner, tx, look)
            except StaleView:  # the chain has advanced meanwhile
                return poll_again(self._clock.now())

        self._committer.finish_all(
            authority,
            claimed,
            partial(decide_sequentially, decide=decide),
            reads=order_locks([*owned, *transfers]),
        )

    def _decide_final(
        self, owner: FollowedOwner[R, L, F], tx: Transaction, look: _FinalLook[R, F]
    ) -> Decision[None]:
        now = self._clock.now()
        locked = owner.lock(tx, look.record, look.transfer.id)
        if locked is None:
            return Decision(None)
        noted = mark_final(tx, look.transfer.id, look.outcome, now=now)
        return noted.merge(owner.on_final(tx, locked, look.outcome, look.facts, now=now))

    def _finish_look(
        self,
        claimed: ClaimedJob,
        outcome: TransferOutcome | ChainUnavailable,
        read_chain: Callable[[TransferOutcome], F],
    ) -> tuple[TransferOutcome, F] | Decision[None]:
        """The final outcome with the owner's facts; or how the job is postponed."""
        now = self._clock.now()
        try:
            if isinstance(outcome, ChainUnavailable):
                raise outcome
            if outcome.is_pending:
                return poll_again(now)
            return outcome, read_chain(outcome)
        except (ChainUnavailable, DependencyFailed):
            return back_off(claimed.job, now)

    def follow(self, claimed: ClaimedJob) -> None:
        """Look at a transfer that had succeeded until that is final: a reorg may undo it."""
        outgoing_id, authority = claimed.job.subject, WorkerAuthority.of(claimed)
        [found] = self._outbox.check_outcomes(authority, [TransferToWatch(outgoing_id)])
        if isinstance(found, TransferOutcome) and found.is_pending:
            later = self._clock.now() + REORG_RECHECK_MS
            self._committer.finish(claimed, Decision(None, next_run_at=later))
            return
        look = self._finish_look(claimed, found, lambda outcome: None)
        if isinstance(look, Decision):
            self._committer.finish(claimed, look)
            return
        outcome, _ = look

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[bool]:
            now = self._clock.now()
            outgoing = tx.get(OutboundTransfer, outgoing_id)
            assert outgoing is not None
            if outgoing.status == "failed":  # each reorg adds a job, and another one has seen it
                return Decision(False)
            reversed: Decision[bool] = Decision(outcome.reason is not None)
            if outcome.reason is not None:
                owner = self._followed[outgoing.owner_purpose]
                undone = owner.on_reversed(tx, outgoing, outcome.reason, now=now)
                reversed = reversed.merge(undone)
            return reversed.merge(mark_final(tx, outgoing_id, outcome, now=now))

        if self._commit_outcome(claimed, decide):
            _log.critical(
                "ALARM: a reorg undid %s after it had succeeded, and it failed when sent again: %s",
                outgoing_id, outcome.reason,
            )  # fmt: skip

    def _commit_outcome(
        self,
        claimed: ClaimedJob,
        decide: Callable[[Transaction, IdSequence], Decision[bool]],
    ) -> bool:
        """Commit a look, and return what it decides; if it is outdated, the job looks again."""
        authority = WorkerAuthority.of(claimed)
        try:
            return self._committer.commit(authority, decide, claimed=claimed)
        except StaleView:  # the chain has advanced meanwhile
            self._committer.finish(claimed, poll_again(self._clock.now()))
            return False
