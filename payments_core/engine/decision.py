"""Decisions: the changes that an operation makes, as values; `committer.py` commits them.

An operation reads inside a transaction, decides, and returns a Decision: a value that says which
records to insert, replace or delete, which events happened and which jobs follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import attrs

from payments_core.clock import Instant
from payments_core.engine.audit import SYSTEM_TRACE, Actor, Trace
from payments_core.engine.events import NewEvent
from payments_core.engine.identifiers import IdSequence
from payments_core.errors import PaymentsError
from payments_core.evolve import evolve
from payments_core.storage.port import (
    ClaimedJob,
    Transaction,
)
from payments_core.storage.reads import Get
from payments_core.storage.records import R, Record

T = TypeVar("T")


class CommitAuthority(Protocol):
    """The authority in whose name a decision is committed."""

    @property
    def partition(self) -> str:
        """The environment's id."""

    @property
    def mode(self) -> str:
        """The mode that the environment's queues begin with."""

    @property
    def reads(self) -> Sequence[Get]:
        """The queries of `confirm`."""

    @property
    def trace(self) -> Trace | None:
        """What the audit trail says about a commit; None if it leaves no entry."""

    def confirm(self, tx: Transaction) -> None:
        """Hold the records behind the authority; raise a PaymentsError if it is no longer valid."""


@attrs.frozen
class WorkerAuthority:
    """The service's own authority, for a worker's actions in an environment.

    `trace` is that of the worker itself, unless it acts for somebody.
    """

    partition: str
    mode: str
    trace: Trace = SYSTEM_TRACE
    reads: ClassVar[Sequence[Get]] = ()

    @classmethod
    def of(cls, claimed: ClaimedJob, actor: Actor | None = None) -> WorkerAuthority:
        """The environment and the mode of a claimed job.

        `actor` decides what the job changes, such as a provider that it asks.
        """
        trace = Trace(actor or Actor("system", name=claimed.job.kind))
        return cls(claimed.partition, claimed.job.queue.partition(".")[0], trace)

    def confirm(self, tx: Transaction) -> None:
        """Confirm nothing: a worker's authority cannot be revoked."""


@attrs.frozen
class NewJob:
    """A job as a decision states it; `queue` is given without its mode.

    It gets an `id` unless it has one, by which it can be found again.
    """

    queue: str
    kind: str
    lane: str
    due_at: Instant
    subject: str
    arguments: Mapping[str, str] = attrs.field(factory=dict)
    ordinal: int = 0
    id: str | None = None


@attrs.frozen(slots=False)
class Decision(Generic[T]):
    """The state after the commit, and the result for the caller.

    `holds` are records that it relies on and leaves unchanged. `refusals` maps a taken unique
    key to an error. Under a claimed job, `next_run_at` keeps the job for later and NEVER parks it;
    None ends it. `made_no_progress` means that nothing was achieved: the job keeps its failure
    count.
    """

    result: T
    holds: tuple[Record, ...] = ()
    inserts: tuple[Record, ...] = ()
    replaces: tuple[Record, ...] = ()
    deletes: tuple[Record, ...] = ()
    events: tuple[NewEvent, ...] = ()
    jobs: tuple[NewJob, ...] = ()
    refusals: Mapping[str, PaymentsError] = attrs.field(factory=dict)
    next_run_at: Instant | None = None
    made_no_progress: bool = False

    def merge(self, *others: Decision[Any]) -> Decision[T]:
        """Add the records, events and jobs of others, which are committed together with these."""
        merged = self
        for other in others:
            merged = evolve(
                merged,
                holds=(*merged.holds, *other.holds),
                inserts=(*merged.inserts, *other.inserts),
                replaces=(*merged.replaces, *other.replaces),
                deletes=(*merged.deletes, *other.deletes),
                events=(*merged.events, *other.events),
                jobs=(*merged.jobs, *other.jobs),
            )
        return merged


def lock_shared(tx: Transaction, kind: type[R], id: str) -> R | None:
    """The record as it is until the commit, or None: for records that are relied on and left
    unchanged.

    A plain `get` may be stale, and no refusal may depend on it.
    """
    record = tx.get(kind, id)
    if record is None:  # a record that is absent, or seems to be, cannot be held
        record = tx.get(kind, id, for_update=True)
    if record is not None:
        tx.hold(record)
    return record


class LeaseLost(Exception):
    """Another worker has claimed the job since, or finished it. Its outcome counts; drop ours."""


class StaleView(Exception):
    """A value read outside, for a decision, is older than the recorded one: read again."""


Decide = Callable[[Transaction, IdSequence], Decision[T]]
