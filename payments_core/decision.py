"""Decisions, and the one function that commits them.

An operation reads inside a transaction, decides, and returns a Decision: a value that says which
records to insert, replace or delete, which events happened and which jobs follow. `Ledger.commit`
writes it, with its events, its jobs and the idempotent answer, in one transaction or not at all.
Nothing else in the library writes business records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import attrs

from payments_core.clock import Clock, Instant
from payments_core.credentials.keyring import KeyRing
from payments_core.errors import IdempotencyInProgress, PaymentsError, Unavailable
from payments_core.events import Event, Happening
from payments_core.idempotency.record import Idempotent, StoredAnswer
from payments_core.identifiers import Draw, Identifiers
from payments_core.jobs.record import FOREVER, Job
from payments_core.storage import documents
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
from payments_core.storage.records import R, Record

T = TypeVar("T")

ATTEMPTS = 12
"""How often a commit runs again after losing a race, before it says `unavailable`."""

FAN_OUT = "webhooks.fan_out"


class Permit(Protocol):
    """In whose name a decision is committed."""

    @property
    def partition(self) -> str:
        """The environment's id."""

    @property
    def mode(self) -> str:
        """The mode that the environment's queues begin with."""

    def confirm(self, tx: Transaction) -> None:
        """Hold what the permit rests on; raise a PaymentsError if it no longer stands."""


@attrs.frozen
class Scope:
    """The service's own permit: what a worker does in an environment."""

    partition: str
    mode: str

    @classmethod
    def of(cls, claimed: Claimed) -> Scope:
        """The environment and the mode that a claimed job belongs to."""
        return cls(claimed.partition, claimed.job.queue.partition(".")[0])

    def confirm(self, tx: Transaction) -> None:
        """It rests on nothing that could be revoked."""


@attrs.frozen
class Follow:
    """A job as a decision states it; `queue` is given without its mode."""

    queue: str
    kind: str
    lane: str
    due_at: Instant
    subject: str
    arguments: Mapping[str, str] = attrs.field(factory=dict)
    ordinal: int = 0


@attrs.frozen
class Decision(Generic[T]):
    """What shall be true after the commit, and the result for the caller.

    `holds` are records relied on and left unchanged. `refusals` says which error a taken unique
    key means. Under a claimed job, `again_at` keeps the job for later and FOREVER parks it;
    None ends it. `in_vain` says that nothing was achieved: the job counts its failures on.
    """

    result: T
    holds: tuple[Record, ...] = ()
    inserts: tuple[Record, ...] = ()
    replaces: tuple[Record, ...] = ()
    deletes: tuple[Record, ...] = ()
    events: tuple[Happening, ...] = ()
    jobs: tuple[Follow, ...] = ()
    refusals: Mapping[str, PaymentsError] = attrs.field(factory=dict)
    again_at: Instant | None = None
    in_vain: bool = False

    def joined(self, *others: Decision[Any]) -> Decision[T]:
        """This decision with the records, events and jobs of others, committed together."""
        parts = (self, *others)
        return attrs.evolve(
            self,
            holds=tuple(item for part in parts for item in part.holds),
            inserts=tuple(item for part in parts for item in part.inserts),
            replaces=tuple(item for part in parts for item in part.replaces),
            deletes=tuple(item for part in parts for item in part.deletes),
            events=tuple(item for part in parts for item in part.events),
            jobs=tuple(item for part in parts for item in part.jobs),
        )


def held(tx: Transaction, kind: type[R], id: str) -> R | None:
    """The record as it is until the commit, or None: for what is relied on and left unchanged.

    A plain `get` may be stale, and what it says must refuse nobody.
    """
    record = tx.get(kind, id)
    if record is None:  # there is no holding of what is absent, or seems to be
        record = tx.get(kind, id, for_update=True)
    if record is not None:
        tx.hold(record)
    return record


class LeaseLost(Exception):
    """Another worker has claimed the job since, or finished it. Its outcome stands; drop ours."""


Decide = Callable[[Transaction, Draw], Decision[T]]


@attrs.define
class _Outcome(Generic[T]):
    """What the last run of the work would have committed."""

    decision: Decision[T] | None = None
    witness: Record | None = None
    drawn: bool = False


class Ledger:
    """Commits decisions."""

    def __init__(
        self, storage: Storage, clock: Clock, identifiers: Identifiers, key_ring: KeyRing
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._identifiers = identifiers
        self._key_ring = key_ring
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
            job = _leased(tx, claimed) if claimed else None
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
            except Conflict:
                continue
        raise Unavailable()

    def finish(self, claimed: Claimed, decision: Decision[None] | None = None) -> None:
        """End a claimed job, or put it off as a decision made beforehand says.

        Raises LeaseLost and Unavailable.
        """
        outcome: Decision[None] = decision or Decision(None)
        self.commit(Scope.of(claimed), lambda tx, draw: outcome, claimed=claimed)

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
        now = self._clock.now()
        for record in decision.holds:
            tx.hold(record)
        events = [_event(happening, draw.id("evt"), now) for happening in decision.events]
        follows = [_fan_out(permit, event, now) for event in events]
        jobs = [_job(permit, follow, draw.id("job")) for follow in (*follows, *decision.jobs)]
        for record in decision.replaces:
            tx.replace(record)
        for record in decision.deletes:
            tx.delete(record)
        for record in (*decision.inserts, *events, *jobs):
            tx.insert(record)
        if job is not None:
            _finish(tx, job, decision.again_at, in_vain=decision.in_vain)
        if idempotent is not None:
            answer = idempotent.stored(decision.result, now, self._key_ring)
            tx.insert(answer)
            outcome.witness = answer
        elif telling := (*decision.inserts, *events, *jobs):  # jobs last: they come and go
            outcome.witness, outcome.drawn = telling[0], draw.drew(telling[0].id)

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
        if decision.events or decision.jobs:
            for wake in self._on_commit:
                wake()
        return decision.result


def _refusal(outcome: _Outcome[T], error: Exception) -> Exception | None:
    """What to tell the caller; None where trying again may yet succeed."""
    if not isinstance(error, UniqueConflict):
        return error
    decision = outcome.decision
    return decision.refusals.get(error.unique) if decision else None


def _leased(tx: Transaction, claimed: Claimed) -> Job:
    job = tx.get(Job, claimed.job.id, for_update=True)
    if job is None or job.claims != claimed.job.claims or job.version != claimed.job.version:
        raise LeaseLost(claimed.job.id)
    return job


def _finish(tx: Transaction, job: Job, again_at: Instant | None, *, in_vain: bool) -> None:
    if again_at is None:
        tx.delete(job)
    elif again_at == FOREVER:
        tx.replace(attrs.evolve(job, lease_until=FOREVER))
    else:
        # The handler came to an end, so the count towards parking starts again.
        failures = job.failures + 1 if in_vain else 0
        tx.replace(attrs.evolve(job, due_at=again_at, lease_until=0, claims=0, failures=failures))


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
    return Follow("webhooks", FAN_OUT, f"events:{permit.partition}", now, event.id)


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
