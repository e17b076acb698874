"""The one function that commits decisions.

`Committer.commit` writes a decision, with its events, its jobs and the idempotent response, in one
transaction or not at all. Nothing else in the library writes business records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import attrs

from payments_core.clock import MAX_CLOCK_SKEW_MS, Clock, Instant
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.decision import (
    CommitAuthority,
    Decide,
    Decision,
    LeaseLost,
    WorkerAuthority,
)
from payments_core.engine.fan_out import new_fan_outs
from payments_core.engine.idempotency.record import (
    RETENTION_MS,
    AlreadyResponded,
    IdempotencyKey,
    IdempotentRequest,
    StoredResponse,
    require_request,
)
from payments_core.engine.identifiers import Identifiers, IdSequence
from payments_core.engine.jobs.parking import LEASE_MS
from payments_core.engine.rows import (
    RowChanges,
    build_audit_entries,
    build_event,
    build_job,
    reschedule_job,
    write_rows,
)
from payments_core.errors import IdempotencyInProgress, PaymentsError, Unavailable
from payments_core.plain_calls import notify_plainly, require_plain_function
from payments_core.storage import documents
from payments_core.storage.jobs import NEVER, Job, mark_parked
from payments_core.storage.port import (
    ClaimedJob,
    CommitUnknown,
    Conflict,
    LockTimeout,
    Storage,
    StorageUnavailable,
    Transaction,
    UniqueConflict,
)
from payments_core.storage.reads import Get, Read
from payments_core.storage.records import Record
from payments_core.telemetry import NOOP_TELEMETRY, Telemetry

T = TypeVar("T")

MAX_ATTEMPTS = 12
"""How often a commit runs again after losing a race, before it raises Unavailable."""


@attrs.define
class _Attempt(Generic[T]):
    """The result of the last run of the work."""

    decision: Decision[T] | None = None
    witness: Record | None = None
    has_issued_id: bool = False


DecideAll = Callable[[Transaction, IdSequence, Sequence[ClaimedJob]], Mapping[str, Decision[Any]]]


class Committer:
    """Commits decisions."""

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        identifiers: Identifiers,
        key_ring: KeyRing,
        telemetry: Telemetry = NOOP_TELEMETRY,
        response_retention_ms: int = RETENTION_MS,
    ) -> None:
        """Responses of calls with a key are kept for `response_retention_ms` milliseconds."""
        self.response_retention_ms = response_retention_ms
        self._storage = storage
        self._clock = clock
        self._identifiers = identifiers
        self._key_ring = key_ring
        self._telemetry = telemetry
        self._on_commit: list[Callable[[], None]] = []

    def on_commit(self, wake: Callable[[], None]) -> None:
        """Call `wake` after each commit that added work, so that a local worker need not poll. It
        is a plain function. Raises TypeError."""
        require_plain_function(wake, "wake")
        self._on_commit.append(wake)

    def commit(
        self,
        authority: CommitAuthority,
        decide: Decide[T],
        *,
        idempotent: IdempotencyKey = None,
        claimed: ClaimedJob | None = None,
        id_sequence: IdSequence | None = None,
        reads: Sequence[Read] = (),
    ) -> T:
        """Run `decide` in a transaction and write its decision; return its result.

        `decide` does no other I/O and may run several times. Under `claimed`, the job ends
        (or is postponed) in the same transaction, and LeaseLost is raised if it is no longer
        ours. With `idempotent`, the rendered response is stored last, and AlreadyResponded is
        raised if there was one before. Raises the errors of `decide`, and Unavailable.
        `id_sequence` is for callers that need an id before the transaction. `reads` are the queries
        of `decide`, in its order: an adapter may wait once for all of them.
        """
        with self._telemetry.observe_commit():
            try:
                request = require_request(idempotent)
                ids = id_sequence or self.id_sequence()
                return self._commit(authority, decide, request, claimed, ids, reads)
            except LockTimeout as error:
                # Probably a request with the same key is in progress in another process.
                raise (IdempotencyInProgress() if idempotent else Unavailable()) from error
            except StorageUnavailable as error:
                raise Unavailable() from error

    def _commit(
        self,
        authority: CommitAuthority,
        decide: Decide[T],
        idempotent: IdempotentRequest | None,
        claimed: ClaimedJob | None,
        id_sequence: IdSequence,
        reads: Sequence[Read],
    ) -> T:
        outcome: _Attempt[T] = _Attempt()
        foretold = (
            *authority.reads,
            *((Get(Job, claimed.job.id, "exclusive"),) if claimed else ()),
            *((Get(StoredResponse, idempotent.id),) if idempotent else ()),
            *reads,
        )
        unanswered: list[_Attempt[T]] = []  # of the attempts whose COMMIT was not answered

        def work(tx: Transaction) -> None:
            id_sequence.reset()
            tx.read_ahead(*foretold)
            authority.confirm(tx)
            job = tx.get(Job, claimed.job.id, for_update=True) if claimed else None
            if claimed and not _is_still_claimed(job, claimed):
                raise LeaseLost(claimed.job.id)
            if idempotent is not None:
                self._require_no_response(tx, idempotent)
            decision = decide(tx, id_sequence)
            outcome.decision, outcome.witness, outcome.has_issued_id = decision, None, False
            self._write(tx, authority, decision, id_sequence, job, idempotent, outcome)

        for _ in range(MAX_ATTEMPTS):
            outcome = _Attempt()
            try:
                self._storage.transact(authority.partition, work)
                return self._complete(outcome)
            except CommitUnknown:
                self._telemetry.record_retry("unanswered")
                unanswered.append(outcome)
                if done := self._committed_attempt(authority, unanswered, claimed):
                    return self._complete(done)
            except (UniqueConflict, PaymentsError, LeaseLost, AlreadyResponded) as error:
                if done := self._committed_attempt(authority, unanswered, claimed):
                    return self._complete(done)
                self.replay(authority, idempotent)
                refusal = _final_error(outcome, error)
                if refusal is not None:
                    raise refusal from error
                self._telemetry.record_retry("lost_race")
            except Conflict:
                self._telemetry.record_retry("lost_race")
        raise Unavailable()

    def finish(self, claimed: ClaimedJob, decision: Decision[None] | None = None) -> None:
        """End a claimed job, or postpone it, by a decision made beforehand.

        Raises LeaseLost and Unavailable.
        """
        outcome: Decision[None] = decision or Decision(None)
        self.commit(WorkerAuthority.of(claimed), lambda tx, id_sequence: outcome, claimed=claimed)

    def finish_all(
        self,
        authority: WorkerAuthority,
        claimed: Sequence[ClaimedJob],
        decide: DecideAll,
        *,
        reads: Sequence[Read] = (),
    ) -> None:
        """End claimed jobs of one partition in one commit.

        A job may also be one that was only read, while its lane is this worker's: it is ours until
        somebody claims or changes it. `decide` receives the jobs that are still ours, and returns
        a decision for each by the job's id; if several change a record, only one may write it
        (`decide_sequentially`). `reads` are as for `commit`. Raises the errors of `decide`, and
        Unavailable.
        """
        id_sequence = self.id_sequence()
        by_id = {item.job.id: item for item in claimed}
        decided: Sequence[Decision[Any]] = ()
        unanswered: Sequence[Decision[Any]] = ()

        def work(tx: Transaction) -> None:
            nonlocal decided
            id_sequence.reset()
            jobs = tx.get_many(Job, by_id, for_update=True)
            tx.read_ahead(*reads)
            # A job that is not ours was finished by another worker, or by a run whose COMMIT was
            # lost.
            ours = [item for id, item in by_id.items() if _is_still_claimed(jobs.get(id), item)]
            decisions = decide(tx, id_sequence, ours)
            decided = tuple(decisions.values())
            now = self._clock.now()
            written = [
                _row_changes(authority, decision, id_sequence, jobs[id], now)
                for id, decision in decisions.items()
            ]
            write_rows(tx, decided, [*written, _fan_outs(authority, written, id_sequence, now)])

        with self._telemetry.observe_commit():
            for _ in range(MAX_ATTEMPTS):
                try:
                    self._storage.transact(authority.partition, work)
                    self._wake((*decided, *unanswered))
                    return
                except CommitUnknown:
                    self._telemetry.record_retry("unanswered")
                    unanswered = (*unanswered, *decided)
                except Conflict:
                    self._telemetry.record_retry("lost_race")
                except StorageUnavailable as error:
                    raise Unavailable() from error
            raise Unavailable()

    def id_sequence(self) -> IdSequence:
        """The ids of one operation, for `commit`."""
        return IdSequence(self._identifiers)

    def replay(self, authority: CommitAuthority, key: IdempotencyKey) -> None:
        """Raise AlreadyResponded if the request had a response before, IdempotencyConflict if its
        key was used for another request, and Unavailable; return if it is new, or has no key.
        """
        idempotent = require_request(key)
        if idempotent is None:
            return
        try:
            read = Get(StoredResponse, idempotent.id)
            [stored] = self._storage.fetch(authority.partition, read)
        except StorageUnavailable as error:
            raise Unavailable() from error
        if stored is not None and stored.expires_at_ms > self._clock.now():
            raise idempotent.replay(stored, self._key_ring)

    def _require_no_response(self, tx: Transaction, idempotent: IdempotentRequest) -> None:
        """Raise like `replay` if another call was first; make room for the response."""
        stored = tx.get(StoredResponse, idempotent.id)
        if stored is None:
            return
        if stored.expires_at_ms > self._clock.now():
            raise idempotent.replay(stored, self._key_ring)
        tx.delete(stored)

    def _write(
        self,
        tx: Transaction,
        authority: CommitAuthority,
        decision: Decision[T],
        id_sequence: IdSequence,
        job: Job | None,
        idempotent: IdempotentRequest | None,
        outcome: _Attempt[T],
    ) -> None:
        now = self._clock.now()
        written = _row_changes(authority, decision, id_sequence, job, now)
        write_rows(tx, [decision], [written, _fan_outs(authority, [written], id_sequence, now)])
        if idempotent is not None:
            response = idempotent.build_record(decision.result, self._clock.now(), self._key_ring)
            tx.insert(response)
            outcome.witness = response
        elif written.inserts:
            # A job may have been done, and be gone, before anybody looks.
            lasting = [row for row in written.inserts if not isinstance(row, Job)]
            rows = lasting or written.inserts
            outcome.witness = next((row for row in rows if id_sequence.has_issued(row.id)), rows[0])
            outcome.has_issued_id = id_sequence.has_issued(outcome.witness.id)

    def _committed_attempt(
        self, authority: CommitAuthority, unanswered: list[_Attempt[T]], claimed: ClaimedJob | None
    ) -> _Attempt[T] | None:
        """The transaction that was committed, of those whose COMMIT was not answered.

        A claimed job shows it: only its holder changes it. Otherwise, or if the lease of the
        claim may have ended meanwhile, or is so far ahead that others take it as ended, a row shows
        it that only this transaction can have inserted: a row with an id drawn for it, or with its
        exact content. A decision that inserts nothing
        must be repeatable; under a job that was changed it raises LeaseLost, since it
        may have been another worker's, and the records show the next step.
        """
        return next(
            (one for one in reversed(unanswered) if self._was_committed(authority, one, claimed)),
            None,
        )

    def _was_committed(
        self, authority: CommitAuthority, outcome: _Attempt[T], claimed: ClaimedJob | None
    ) -> bool:
        if claimed is not None:
            job = self._storage.read(
                authority.partition, lambda snapshot: snapshot.get(Job, claimed.job.id)
            )
            if job is not None and job.version == claimed.job.version:
                return False
            left_ms = claimed.job.lease_until - self._clock.now()
            if MAX_CLOCK_SKEW_MS < left_ms <= LEASE_MS + MAX_CLOCK_SKEW_MS:
                return True  # nobody else can have claimed it
            if not self._is_stored(authority, outcome):
                raise LeaseLost(claimed.job.id)
            return True
        return self._is_stored(authority, outcome)

    def _is_stored(self, authority: CommitAuthority, outcome: _Attempt[T]) -> bool:
        """Whether a row exists that only this transaction can have inserted."""
        witness = outcome.witness
        if witness is None:
            return False
        found = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(type(witness), witness.id)
        )
        return found is not None and (outcome.has_issued_id or found == documents.stamp(witness, 1))

    def _complete(self, outcome: _Attempt[T]) -> T:
        decision = outcome.decision
        assert decision is not None
        self._wake([decision])
        return decision.result

    def _wake(self, decisions: Sequence[Decision[Any]]) -> None:
        if any(_adds_work(decision) for decision in decisions):
            for wake in self._on_commit:
                notify_plainly("wake", wake)


def _row_changes(
    authority: CommitAuthority,
    decision: Decision[Any],
    id_sequence: IdSequence,
    job: Job | None,
    now: Instant,
) -> RowChanges:
    """The rows of a decision."""
    events = [
        build_event(new_event, id_sequence.issue("evt"), now) for new_event in decision.events
    ]
    jobs = [
        build_job(authority, new_job, new_job.id or id_sequence.issue("job"))
        for new_job in decision.jobs
    ]
    entries = build_audit_entries(authority, decision, id_sequence, now)
    # Jobs last: they come and go.
    inserts = (*decision.inserts, *events, *entries, *jobs)
    replaces, deletes = decision.replaces, decision.deletes
    if job is not None:
        after = reschedule_job(
            job, decision.next_run_at, made_no_progress=decision.made_no_progress
        )
        replaces, deletes = (
            (replaces, (*deletes, job)) if after is None else ((*replaces, after), deletes)
        )
        if decision.next_run_at == NEVER and after is not None:
            inserts = (*inserts, mark_parked(after, now))
    return RowChanges(inserts, replaces, deletes, events)


def _fan_outs(
    authority: CommitAuthority,
    written: Sequence[RowChanges],
    id_sequence: IdSequence,
    now: Instant,
) -> RowChanges:
    """The jobs that make the deliveries of all events of a commit."""
    events = [event for one in written for event in one.events]
    fan_outs = new_fan_outs(authority.partition, events, now)
    return RowChanges([build_job(authority, job, id_sequence.issue("job")) for job in fan_outs])


def _final_error(outcome: _Attempt[T], error: Exception) -> Exception | None:
    """The error for the caller; None if another try may succeed."""
    if not isinstance(error, UniqueConflict):
        return error
    decision = outcome.decision
    return decision.refusals.get(error.unique) if decision else None


def _adds_work(decision: Decision[Any]) -> bool:
    if decision.events or decision.jobs:
        return True
    return any(isinstance(record, Job) for record in (*decision.inserts, *decision.replaces))


def _is_still_claimed(job: Job | None, claimed: ClaimedJob) -> bool:
    """Whether nobody has claimed or changed the job since."""
    known = claimed.job
    return job is not None and (job.claims, job.version) == (known.claims, known.version)
