"""The jobs that send our transfers: steps 2 to 5 of `jobs.py`.

A sender's transfers are in one lane, so a worker that has the lease of one job there may also do
those behind it: up to MAX_TOGETHER are signed, stored, broadcast and recorded together. Only jobs
that nobody has tried yet are done with another one, and none while a job of the lane is parked.

A job that takes its process down may do so in the turn of another one, whose claims then count it.
So after a claimed job that was tried before, the next jobs of its lane are sent alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Literal

import attrs

from payments_core.chains.backoff import back_off, poll_again
from payments_core.chains.outbox.lost import SearchUnfinished
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.owners import Doubt, TransferOwner, TransferToSend
from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.chains.outbox.screening import KnownVerdicts, ScreeningGate
from payments_core.chains.outbox.send_jobs import SendJob, read_send_job
from payments_core.chains.outbox.signing import MAX_REMEMBERED_SENDERS, MAX_TOGETHER_S
from payments_core.chains.port import ChainUnavailable, SignedTransaction
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.execution import Handler
from payments_core.engine.jobs.parking import describe_error
from payments_core.engine.ports import Ports
from payments_core.engine.sequential_decisions import decide_sequentially
from payments_core.storage.jobs import Job
from payments_core.storage.port import ClaimedJob, Snapshot, Transaction
from payments_core.storage.reads import Find, Get

_Unsent = Doubt | Literal["searching"]
"""The search continues soon; for the owner the chain did not answer."""
MAX_TOGETHER = 16
"""The maximum number of a sender's transfers that are sent together."""

_log = logging.getLogger(__name__)


@attrs.frozen
class _Lane:
    """A claimed job, those behind it that may be done with it, and the verdicts of all."""

    first: SendJob
    others: Sequence[SendJob]
    known: KnownVerdicts


class SendJobs:
    """Runs the jobs that send transfers, for their owners."""

    def __init__(
        self,
        ports: Ports,
        outbox: Outbox,
        gate: ScreeningGate,
        owners: Iterable[TransferOwner[Any]],
    ) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._telemetry = ports.telemetry
        self._outbox = outbox
        self._gate = gate
        self._owners = {owner.send_kind: owner for owner in owners}
        self._alone: dict[tuple[str, str], int] = {}
        """How many more jobs of a lane are sent alone."""

    def handlers(self) -> Mapping[str, Handler]:
        """The handler of each job, by its kind."""
        return {kind: partial(self.send, owner) for kind, owner in self._owners.items()}

    def send(self, owner: TransferOwner[Any], claimed: ClaimedJob) -> int:
        """Hand transfers of a sender to the chain: the claimed job's, and those behind it.

        Bytes are fixed: sending them again moves nothing more. A transfer that was withdrawn, or
        that its owner no longer needs, ends the job, and one that screening does not clear waits
        or ends. Returns how many jobs were done.
        """
        lane = self._read_lane(owner, claimed)
        passing = self._gate.let_pass(lane.first, lane.others, lane.known)
        if not passing:
            return 1
        first, *others = passing
        try:
            signed = self._sign_together(first, others)
        except ChainUnavailable:
            self._try_again(first, "silent")
            return 1
        if signed:
            return self._send_together(signed)
        self._send_alone(first)
        return 1

    # Several transfers.

    def _read_lane(self, owner: TransferOwner[Any], claimed: ClaimedJob) -> _Lane:
        """The claimed job, and those behind it that may be done with it."""
        job = claimed.job
        is_alone, gate = self._must_be_alone(job), self._gate
        mode = WorkerAuthority.of(claimed).mode

        def load(snapshot: Snapshot) -> _Lane:
            lane = Find(Job, "by_queue_lane", (job.queue, job.lane), MAX_TOGETHER)
            snapshot.read_ahead(Get(owner.record_type, job.subject), lane)
            first = read_send_job(snapshot, owner, claimed)
            if not is_alone and first.is_ready:
                try:
                    others = self._read_behind(snapshot, first, lane)
                    return _Lane(first, others, gate.load(snapshot, mode, [first, *others]))
                except Exception as error:  # nobody else's damaged record stops this one
                    _log.warning("%s is sent alone: %s", job.subject, describe_error(error))
            return _Lane(first, (), gate.load(snapshot, mode, [first]))

        return self._storage.read_apart(claimed.partition, load)

    def _must_be_alone(self, job: Job) -> bool:
        """Whether it was tried before, or comes soon after one that was. Counts the latter."""
        lane = (job.queue, job.lane)
        if job.claims > 1:
            if len(self._alone) >= MAX_REMEMBERED_SENDERS:
                self._alone.clear()
            self._alone[lane] = MAX_TOGETHER
            return True
        left = self._alone.pop(lane, 0)
        if left > 1:
            self._alone[lane] = left - 1
        return left > 0

    def _read_behind(self, snapshot: Snapshot, first: SendJob, lane: Find) -> Sequence[SendJob]:
        now, partition = self._clock.now(), first.claimed.partition
        found = snapshot.find(Job, lane.index, lane.key, limit=lane.limit).records
        behind_it = [job for job in found if job.id != first.claimed.job.id]
        if any(job.lease_until > now for job in behind_it):  # sending was stopped
            return ()
        others = [
            (self._owners[job.kind], ClaimedJob(partition, job))
            for job in behind_it
            if job.kind in self._owners and _is_untried(job, now)
        ]
        snapshot.read_ahead(*(Get(it.record_type, item.job.subject) for it, item in others))
        behind = [read_send_job(snapshot, owner, item) for owner, item in others]
        return [job for job in behind if job.is_ready]

    def _sign_together(
        self, first: SendJob, others: Sequence[SendJob]
    ) -> Sequence[tuple[SendJob, OutboundTransfer]]:
        """The first job and others with the bytes of their transfers.

        Empty if there is only one, or the first must be signed alone. Raises ChainUnavailable.
        """
        jobs: dict[str, SendJob] = {}
        for job in (first, *others):
            if job.transfer is not None:
                jobs.setdefault(job.transfer.id, job)
        if len(jobs) < 2:
            return ()
        assert first.transfer is not None
        try:
            signed = self._outbox.sign_next(first.authority, first.transfer.chain_id, list(jobs))
        except ChainUnavailable:
            raise
        except Exception as error:  # nobody else's damaged record stops this one
            _log.warning("%s is signed alone: %s", first.record.id, describe_error(error))
            return ()
        return [(jobs[outgoing.id], outgoing) for outgoing in signed]

    def _send_together(self, signed: Sequence[tuple[SendJob, OutboundTransfer]]) -> int:
        """Broadcast, and commit what was sent; return how many.

        What is not broadcast here waits with its bytes for its own turn.
        """
        sent = self._broadcast_each(signed)
        if sent:
            return self._commit_sent(sent)
        self._try_again(signed[0][0], "lost")
        return 1

    def _broadcast_each(
        self, signed: Sequence[tuple[SendJob, OutboundTransfer]]
    ) -> Sequence[tuple[SendJob, SignedTransaction]]:
        """Broadcast in the order of nonces, until one fails, or it takes too long.

        Empty if the first was not answered.
        """
        began = time.monotonic()
        sent: list[tuple[SendJob, SignedTransaction]] = []
        for job, outgoing in signed:
            try:
                sent.append((job, self._outbox.broadcast(job.authority, outgoing.id, outgoing)))
            except ChainUnavailable:
                break
            except Exception as error:
                if not sent:
                    raise
                _log.warning("%s is broadcast alone: %s", outgoing.id, describe_error(error))
                break
            if time.monotonic() - began > MAX_TOGETHER_S:
                break
        return sent

    # One transfer.

    def _send_alone(self, job: SendJob) -> None:
        sent = self._broadcast(job.authority, job.transfer) if job.transfer is not None else None
        if sent is None:
            self._committer.finish(job.claimed, self._gate.forget(job.claimed))
        elif isinstance(sent, SignedTransaction):
            self._commit_sent([(job, sent)])
        else:
            self._try_again(job, sent)

    def _broadcast(
        self, authority: WorkerAuthority, transfer: TransferToSend
    ) -> SignedTransaction | _Unsent | None:
        """The bytes that the chain has now, or why there are none; None if it was withdrawn."""
        try:
            outgoing = self._outbox.sign(authority, transfer.chain_id, transfer.id)
            if outgoing is None:
                return None
            if transfer.is_unknown:  # the chain must be asked before any other step
                if not self._outbox.is_known(authority, transfer.id):
                    return "absent"
                return self._outbox.ensure_signed(authority, transfer.chain_id, transfer.id)
        except SearchUnfinished:
            return "searching"
        except ChainUnavailable:
            return "silent"
        try:
            return self._outbox.broadcast(authority, transfer.id, outgoing)
        except ChainUnavailable as error:
            _log.warning(
                "%s of %s was not accepted, and waits: %s",
                transfer.id, authority.partition, error,
            )  # fmt: skip
            return "lost"

    def _try_again(self, job: SendJob, why: _Unsent) -> None:
        """Keep the job, with its owner's interim commit; or end it, if the owner has ended."""
        owner, claimed, now = job.owner, job.claimed, self._clock.now()
        doubt: Doubt = "silent" if why == "searching" else why
        if why == "absent":
            later: Decision[None] = Decision(None, next_run_at=now, made_no_progress=True)
        elif why == "searching":
            later = poll_again(now)
        else:
            later = back_off(claimed.job, now)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            change = None
            if owner.on_unsent is not None:
                change = owner.on_unsent(
                    tx, id_sequence, claimed.partition, job.record, doubt, now=self._clock.now()
                )
            if change is None:
                return later
            return change if doubt == "silent" else later.merge(change)

        self._committer.commit(WorkerAuthority.of(claimed), decide, claimed=claimed)

    # The outcome of either.

    def _commit_sent(self, sent: Sequence[tuple[SendJob, SignedTransaction]]) -> int:
        """End send jobs, each with its owner's step; return how many.

        If one fails, the first is committed alone: the others are sent again in their own turns.
        """
        by_id = {job.claimed.job.id: (job, signed) for job, signed in sent}

        def decide(tx: Transaction, id_sequence: IdSequence, item: ClaimedJob) -> Decision[Any]:
            job, signed = by_id[item.job.id]
            return job.owner.on_sent(tx, job.record, signed, now=self._clock.now())

        locks = [lock for job, signed in sent for lock in job.owner.locks(job.record, signed.hash)]
        try:
            with self._observe([job for job, _ in sent[1:]]):  # the executor observes the first
                self._committer.finish_all(
                    sent[0][0].authority,
                    [job.claimed for job, _ in sent],
                    partial(decide_sequentially, decide=decide),
                    reads=order_locks(locks),
                )
        except Exception as error:
            if len(sent) == 1:
                raise
            _log.warning("%s is committed alone: %s", sent[0][0].record.id, describe_error(error))
            return self._commit_sent(sent[:1])
        return len(sent)

    @contextmanager
    def _observe(self, jobs: Sequence[SendJob]) -> Iterator[None]:
        with ExitStack() as observed:
            for job in jobs:
                _, _, queue = job.claimed.job.queue.rpartition(".")
                observed.enter_context(self._telemetry.observe_job(queue, job.claimed.job.kind))
            yield


def order_locks(locks: Sequence[Get]) -> Sequence[Get]:
    """The locks of several owners, each once: jobs first, as everywhere, then the others by their
    kinds, in the order in which the owners name these, and by their ids."""
    ranks = {kind: rank for rank, kind in enumerate(dict.fromkeys(lock.kind for lock in locks))}
    ranks[Job] = -1
    return sorted(dict.fromkeys(locks), key=lambda lock: (ranks[lock.kind], lock.id))


def _is_untried(job: Job, now: Instant) -> bool:
    """Whether a job is due, and nobody has claimed it yet."""
    return job.due_at <= now and job.claims == job.failures == 0
