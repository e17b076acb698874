"""The one function that commits decisions.

`Ledger.commit` writes a decision, with its events, its jobs and the idempotent answer, in one
transaction or not at all. Nothing else in the library writes business records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import attrs

from payments_core.clock import Clock, Instant
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.decision import (
    EVENTS,
    FAN_OUT,
    Decide,
    Decision,
    Follow,
    LeaseLost,
    Permit,
    Scope,
)
from payments_core.engine.events import Event, Happening
from payments_core.engine.idempotency.record import Idempotent, StoredAnswer
from payments_core.engine.identifiers import Draw, Identifiers
from payments_core.errors import IdempotencyInProgress, PaymentsError, Unavailable
from payments_core.storage import bulk, documents
from payments_core.storage.jobs import FOREVER, Job
from payments_core.storage.port import (
    Claimed,
    CommitUnknown,
    Conflict,
    LockTimeout,
    Storage,
    StorageUnavailable,
    Transaction,
    UniqueConflict,
)
from payments_core.storage.records import Record
from payments_core.telemetry import DEAF, Telemetry

T = TypeVar("T")

ATTEMPTS = 12
"""How often a commit runs again after losing a race, before it says `unavailable`."""


@attrs.define
class _Outcome(Generic[T]):
    """What the last run of the work would have committed."""

    decision: Decision[T] | None = None
    witness: Record | None = None
    drawn: bool = False


@attrs.frozen
class _Written:
    """The rows of a decision, in the order in which they are written."""

    inserts: Sequence[Record]
    replaces: Sequence[Record]
    deletes: Sequence[Record]


DecideAll = Callable[[Transaction, Draw, Sequence[Claimed]], Mapping[str, Decision[Any]]]


class Ledger:
    """Commits decisions."""

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        identifiers: Identifiers,
        key_ring: KeyRing,
        telemetry: Telemetry = DEAF,
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._identifiers = identifiers
        self._key_ring = key_ring
        self._telemetry = telemetry
        self._on_commit: list[Callable[[], None]] = []

    def on_commit(self, wake: Callable[[], None]) -> None:
        """Call `wake` after each commit that added work, so that a local worker need not poll."""
        self._on_commit.append(wake)

    def commit(
        self,
        permit: Permit,
        decide: Decide[T],
        *,
        idempotent: Idempotent | None = None,
        claimed: Claimed | None = None,
        draw: Draw | None = None,
    ) -> T:
        """Run `decide` in a transaction and write what it decides; return its result.

        `decide` does no I/O of its own and may run several times. Under `claimed`, the job ends
        (or is put off) in the same transaction, and LeaseLost is raised where it is no longer
        ours. With `idempotent`, the rendered answer is stored last, and AlreadyAnswered is raised
        where the request has been answered before. Raises what `decide` raises, and Unavailable.
        `draw` is for those who need an id before the transaction.
        """
        with self._telemetry.commit():
            try:
                return self._commit(permit, decide, idempotent, claimed, draw or self.draw())
            except LockTimeout as error:
                # Most likely a request with the same key is under way in another process.
                raise (IdempotencyInProgress() if idempotent else Unavailable()) from error
            except StorageUnavailable as error:
                raise Unavailable() from error

    def _commit(
        self,
        permit: Permit,
        decide: Decide[T],
        idempotent: Idempotent | None,
        claimed: Claimed | None,
        draw: Draw,
    ) -> T:
        outcome: _Outcome[T] = _Outcome()
        doubtful: list[_Outcome[T]] = []  # of the attempts whose COMMIT was not answered

        def work(tx: Transaction) -> None:
            draw.rewind()
            permit.confirm(tx)
            job = tx.get(Job, claimed.job.id, for_update=True) if claimed else None
            if claimed and not _is_ours(job, claimed):
                raise LeaseLost(claimed.job.id)
            _forget_expired(tx, idempotent, self._clock.now())
            decision = decide(tx, draw)
            outcome.decision, outcome.witness, outcome.drawn = decision, None, False
            self._write(tx, permit, decision, draw, job, idempotent, outcome)

        for _ in range(ATTEMPTS):
            outcome = _Outcome()
            try:
                self._storage.transact(permit.partition, work)
                return self._settled(outcome)
            except CommitUnknown:
                self._telemetry.repeated("unanswered")
                doubtful.append(outcome)
                if done := self._happened(permit, doubtful, claimed):
                    return self._settled(done)
            except (UniqueConflict, PaymentsError, LeaseLost) as error:
                if done := self._happened(permit, doubtful, claimed):
                    return self._settled(done)
                self.replay(permit, idempotent)
                refusal = _refusal(outcome, error)
                if refusal is not None:
                    raise refusal from error
                self._telemetry.repeated("lost_race")
            except Conflict:
                self._telemetry.repeated("lost_race")
        raise Unavailable()

    def finish(self, claimed: Claimed, decision: Decision[None] | None = None) -> None:
        """End a claimed job, or put it off as a decision made beforehand says.

        Raises LeaseLost and Unavailable.
        """
        outcome: Decision[None] = decision or Decision(None)
        self.commit(Scope.of(claimed), lambda tx, draw: outcome, claimed=claimed)

    def finish_all(self, scope: Scope, claimed: Sequence[Claimed], decide: DecideAll) -> None:
        """End claimed jobs of one partition in one commit.

        `decide` is given those that are still ours, and returns a decision for each by the job's
        id; none may rest on what another writes. Raises what it raises, and Unavailable.
        """
        draw = self.draw()
        by_id = {item.job.id: item for item in claimed}
        decided: Sequence[Decision[Any]] = ()
        doubtful: Sequence[Decision[Any]] = ()

        def work(tx: Transaction) -> None:
            nonlocal decided
            draw.rewind()
            jobs = bulk.lock_many(tx, Job, by_id)
            # One that is not ours was finished by another, or by a run whose COMMIT was lost.
            ours = [item for id, item in by_id.items() if _is_ours(jobs.get(id), item)]
            decisions = decide(tx, draw, ours)
            decided = tuple(decisions.values())
            written = [
                self._written(scope, decision, draw, jobs[id]) for id, decision in decisions.items()
            ]
            _write(tx, decided, written)

        with self._telemetry.commit():
            for _ in range(ATTEMPTS):
                try:
                    self._storage.transact(scope.partition, work)
                    self._wake((*decided, *doubtful))
                    return
                except CommitUnknown:
                    self._telemetry.repeated("unanswered")
                    doubtful = (*doubtful, *decided)
                except Conflict:
                    self._telemetry.repeated("lost_race")
                except StorageUnavailable as error:
                    raise Unavailable() from error
            raise Unavailable()

    def draw(self) -> Draw:
        """The ids of one operation, for `commit`."""
        return Draw(self._identifiers)

    def replay(self, permit: Permit, idempotent: Idempotent | None) -> None:
        """Raise AlreadyAnswered if the request was answered before, IdempotencyConflict if its
        key was used for another one; return if it is new, or has no key."""
        if idempotent is None:
            return
        stored = self._storage.read(
            permit.partition, lambda snapshot: snapshot.get(StoredAnswer, idempotent.id)
        )
        if stored is not None and stored.expires_at > self._clock.now():
            raise idempotent.replay(stored, self._key_ring)

    def _write(
        self,
        tx: Transaction,
        permit: Permit,
        decision: Decision[T],
        draw: Draw,
        job: Job | None,
        idempotent: Idempotent | None,
        outcome: _Outcome[T],
    ) -> None:
        written = self._written(permit, decision, draw, job)
        _write(tx, [decision], [written])
        if idempotent is not None:
            answer = idempotent.stored(decision.result, self._clock.now(), self._key_ring)
            tx.insert(answer)
            outcome.witness = answer
        elif written.inserts:
            outcome.witness = written.inserts[0]
            outcome.drawn = draw.drew(written.inserts[0].id)

    def _written(
        self, permit: Permit, decision: Decision[Any], draw: Draw, job: Job | None
    ) -> _Written:
        """The rows that a decision comes down to."""
        now = self._clock.now()
        events = [_event(happening, draw.id("evt"), now) for happening in decision.events]
        follows = [_fan_out(permit, event, now) for event in events]
        jobs = [_job(permit, follow, draw.id("job")) for follow in (*follows, *decision.jobs)]
        inserts = (*decision.inserts, *events, *jobs)  # jobs last: they come and go
        replaces, deletes = decision.replaces, decision.deletes
        if job is not None:
            after = _after(job, decision.again_at, in_vain=decision.in_vain)
            replaces, deletes = (
                (replaces, (*deletes, job)) if after is None else ((*replaces, after), deletes)
            )
        return _Written(inserts, replaces, deletes)

    def _happened(
        self, permit: Permit, doubtful: list[_Outcome[T]], claimed: Claimed | None
    ) -> _Outcome[T] | None:
        """The one, of the transactions whose COMMIT went unanswered, that took place.

        A claimed job tells: only its holder moves it on. Otherwise a row tells that only this
        transaction can have inserted: one with an id drawn for it, or with its exact content.
        A decision that inserts nothing must bear being made twice.
        """
        return next(
            (one for one in reversed(doubtful) if self._took_place(permit, one, claimed)), None
        )

    def _took_place(self, permit: Permit, outcome: _Outcome[T], claimed: Claimed | None) -> bool:
        if claimed is not None:
            job = self._storage.read(
                permit.partition, lambda snapshot: snapshot.get(Job, claimed.job.id)
            )
            return job is None or job.version != claimed.job.version
        witness = outcome.witness
        if witness is None:
            return False
        found = self._storage.read(
            permit.partition, lambda snapshot: snapshot.get(type(witness), witness.id)
        )
        return found is not None and (outcome.drawn or found == documents.stamp(witness, 1))

    def _settled(self, outcome: _Outcome[T]) -> T:
        decision = outcome.decision
        assert decision is not None
        self._wake([decision])
        return decision.result

    def _wake(self, decisions: Sequence[Decision[Any]]) -> None:
        if any(_adds_work(decision) for decision in decisions):
            for wake in self._on_commit:
                wake()


def _refusal(outcome: _Outcome[T], error: Exception) -> Exception | None:
    """What to tell the caller; None where trying again may yet succeed."""
    if not isinstance(error, UniqueConflict):
        return error
    decision = outcome.decision
    return decision.refusals.get(error.unique) if decision else None


def _write(
    tx: Transaction, decisions: Sequence[Decision[Any]], written: Sequence[_Written]
) -> None:
    for decision in decisions:
        for record in decision.holds:
            tx.hold(record)
    bulk.write(
        tx,
        [record for one in written for record in one.inserts],
        [record for one in written for record in one.replaces],
        [record for one in written for record in one.deletes],
    )


def _adds_work(decision: Decision[Any]) -> bool:
    if decision.events or decision.jobs:
        return True
    return any(isinstance(record, Job) for record in (*decision.inserts, *decision.replaces))


def _is_ours(job: Job | None, claimed: Claimed) -> bool:
    """Whether nobody has claimed or moved the job since."""
    known = claimed.job
    return job is not None and (job.claims, job.version) == (known.claims, known.version)


def _after(job: Job, again_at: Instant | None, *, in_vain: bool) -> Job | None:
    """The job as its outcome leaves it; None where it is over."""
    if again_at is None:
        return None
    if again_at == FOREVER:
        return attrs.evolve(job, lease_until=FOREVER)
    # The handler came to an end, so the count towards parking starts again.
    failures = job.failures + 1 if in_vain else 0
    return attrs.evolve(job, due_at=again_at, lease_until=0, claims=0, failures=failures)


def _forget_expired(tx: Transaction, idempotent: Idempotent | None, now: Instant) -> None:
    if idempotent is None:
        return
    stored = tx.get(StoredAnswer, idempotent.id)
    if stored is not None and stored.expires_at <= now:
        tx.delete(stored)


def _event(happening: Happening, id: str, now: Instant) -> Event:
    return Event(
        id=id,
        name=happening.name,
        api_version=happening.api_version,
        created_at=now,
        payload=happening.payload,
        account_id=happening.account_id,
        external_user_id=happening.external_user_id,
    )


def _fan_out(permit: Permit, event: Event, now: Instant) -> Follow:
    return Follow(EVENTS, FAN_OUT, f"events:{permit.partition}", now, event.id)


def _job(permit: Permit, follow: Follow, id: str) -> Job:
    return Job(
        id=id,
        queue=f"{permit.mode}.{follow.queue}",
        lane=follow.lane,
        kind=follow.kind,
        due_at=follow.due_at,
        subject=follow.subject,
        arguments=follow.arguments,
        ordinal=follow.ordinal,
    )
