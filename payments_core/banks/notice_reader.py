"""The reader of a bank's notices: one job per mode, over a table of the kinds of notices.

A notice is a hint and may come late, twice or out of order. Nothing is decided here: each kind
of notice stores jobs, with one commit for each environment, and only then are the
notices acknowledged. A crash between the two stores the same again, which changes nothing.

A run reads a few pages, and the next run continues after them. So notices that cannot be stored
keep no others waiting, however many they are; at the end of the list it starts again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

import attrs

from payments_core.banks.port import BankUnavailable
from payments_core.chains.backoff import MAX_BACKOFF_MS, POLL_MS, back_off
from payments_core.clock import Clock
from payments_core.engine.committer import Committer
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.bringing_forward import bring_forward
from payments_core.engine.jobs.recurring import ensure_recurring
from payments_core.engine.ports import Ports
from payments_core.errors import Unavailable
from payments_core.evolve import evolve
from payments_core.storage.jobs import Job
from payments_core.storage.port import (
    DIRECTORY,
    ClaimedJob,
    CommitUnknown,
    Conflict,
    StorageError,
    Transaction,
)
from payments_core.storage.records import Collection, Record

_log = logging.getLogger(__name__)

READ_NOTICES = "banks.read_notices"

MAX_PAGES = 5
"""The pages of each kind that one run reads: a run ends within its lease."""


@attrs.frozen(kw_only=True, slots=False)
class NoticeReaderState(Record):
    """The reader of a mode; the id is the job's. `wakes` counts how often it was woken.

    `cursors` has, by kind, where the next run begins; a kind that begins with the first page is not
    in it.
    """

    collection: ClassVar[Collection] = Collection("notice_readers", schema=2, oldest_reader=1)

    pause_ms: int = POLL_MS
    wakes: int = 0
    cursors: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class NoticesPage:
    """Which notices of a page may be acknowledged, and where the next page begins.

    `left` means that some could not be stored yet: they are read again soon.
    """

    stored: Sequence[str]
    has_left: bool
    next: str | None


class NoticeKind(Protocol):
    """One kind of notices of a bank: a row of the reader's table."""

    @property
    def max_pause_ms(self) -> int:
        """How seldom the bank may be asked if there was nothing for long."""

    def store_page(self, after: str | None) -> NoticesPage:
        """Read a page, and commit jobs for its notices. Raises BankUnavailable."""

    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        """Acknowledge these notices at the bank. Raises BankUnavailable."""


class NoticeReader:
    """Reads the notices of one mode's bank."""

    def __init__(self, ports: Ports, mode: str, kinds: Mapping[str, NoticeKind]) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.guarded_clock
        self._mode = mode
        self._kinds = kinds
        self._id = f"{mode}:{READ_NOTICES}"

    @property
    def max_pause_ms(self) -> int:
        """How seldom the bank is asked: at the shortest interval of its kinds."""
        return min((kind.max_pause_ms for kind in self._kinds.values()), default=POLL_MS)

    def ensure_scheduled(self) -> None:
        """Have the notices read, from now on, if there are any kinds. See `ensure_recurring`."""
        if self._kinds:
            self._transact_until_done(self._ensure_job)

    def wake(self) -> None:
        """Have the notices read at once, since there is one. A run in progress reads again."""
        if self._kinds:
            self._transact_until_done(self._wake)

    def read(self, claimed: ClaimedJob) -> None:
        """The job: read the notices of each kind, then wait; longer if there were none."""
        state = self._storage.read(
            DIRECTORY, lambda snapshot: snapshot.get(NoticeReaderState, self._id)
        )
        known = {} if state is None else state.cursors
        cursors: dict[str, str] = {}
        found_some = is_unavailable = False
        for name, kind in self._kinds.items():
            try:
                found_some_of_kind, after = _read_kind(name, kind, known.get(name))
            except BankUnavailable:  # the other kinds may have another bank
                is_unavailable = True  # and if this bank has forgotten the page, it starts again
                continue
            found_some |= found_some_of_kind
            if after is not None:
                cursors[name] = after
        if is_unavailable and not found_some and cursors == known:
            self._committer.finish(claimed, back_off(claimed.job, self._clock.now(), "bank"))
            return
        before = POLL_MS if state is None else state.pause_ms
        pause_ms = POLL_MS if found_some else min(2 * before, self.max_pause_ms)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            current = tx.get(NoticeReaderState, self._id, for_update=True)
            now = self._clock.now()
            if current is None:
                made = NoticeReaderState(id=self._id, pause_ms=pause_ms, cursors=cursors)
                return Decision(None, inserts=(made,), next_run_at=now + pause_ms)
            was_woken = state is None or current.wakes != state.wakes
            next_run_at = now if was_woken else now + pause_ms
            if (current.pause_ms, current.cursors) == (pause_ms, cursors):
                return Decision(None, next_run_at=next_run_at)
            after = evolve(current, pause_ms=pause_ms, cursors=cursors)
            return Decision(None, replaces=(after,), next_run_at=next_run_at)

        self._committer.commit(WorkerAuthority(DIRECTORY, self._mode), decide, claimed=claimed)

    def _ensure_job(self, tx: Transaction) -> None:
        job = Job(
            id=self._id,
            queue=f"{self._mode}.timers",
            lane=self._id,
            kind=READ_NOTICES,
            due_at=self._clock.now(),
            subject=self._mode,
        )
        ensure_recurring(tx, job, max(self.max_pause_ms, MAX_BACKOFF_MS))

    def _wake(self, tx: Transaction) -> None:
        job = tx.get(Job, self._id, for_update=True)  # locked first, as when a run ends
        state = tx.get(NoticeReaderState, self._id, for_update=True)
        if state is None:
            tx.insert(NoticeReaderState(id=self._id, wakes=1))
        else:
            tx.replace(evolve(state, wakes=state.wakes + 1))
        now = self._clock.now()
        if job is not None and job.due_at > now >= job.lease_until:
            tx.replace(evolve(job, due_at=now))

    def _transact_until_done(self, work: object) -> None:
        while True:
            try:
                self._storage.transact(DIRECTORY, work)  # type: ignore[arg-type]
                return
            except (Conflict, CommitUnknown):
                continue  # doing it again changes nothing more


def _read_kind(name: str, kind: NoticeKind, after: str | None) -> tuple[bool, str | None]:
    """Store and acknowledge up to MAX_PAGES pages; whether to read on soon, and from where."""
    stored_some = left_some = False
    for _ in range(MAX_PAGES):
        page = kind.store_page(after)
        if page.stored:
            kind.acknowledge(page.stored)
        stored_some |= bool(page.stored)
        left_some |= page.has_left
        after = page.next
        if after is None:
            return stored_some or left_some, None
    if left_some and not stored_some:  # other pages are the other mode's
        _log.error("ALARM: %d pages of notices of %s could not be stored", MAX_PAGES, name)
    return True, after


NoticeJob = tuple[Job, list[str]]
"""The job for notices, and their ids."""


def store_jobs(
    committer: Committer, clock: Clock, mode: str, jobs: Mapping[str, Mapping[str, NoticeJob]]
) -> tuple[list[str], bool]:
    """Commit jobs by partition and id: the notices whose job is certainly stored, and whether
    some are left.

    There is one commit for each environment; a refused commit keeps no other waiting.
    """
    stored: list[str] = []
    wanted = 0
    for partition, wanted_jobs in jobs.items():
        wanted += sum(len(notice_ids) for _, notice_ids in wanted_jobs.values())
        try:
            stored += _store(committer, clock, WorkerAuthority(partition, mode), wanted_jobs)
        except Unavailable as error:  # the storage is away, or its answer was lost: soon again
            _log.warning("notices for %s could not be stored yet: %r", partition, error)
        except StorageError as error:
            _log.error("ALARM: notices for %s could not be stored: %s", partition, error)
    return stored, len(stored) < wanted


def _store(
    committer: Committer,
    clock: Clock,
    authority: WorkerAuthority,
    jobs: Mapping[str, NoticeJob],
) -> list[str]:
    def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[list[str]]:
        now = clock.now()
        outcome: Decision[list[str]] = Decision([])
        stored: list[str] = []
        for _, (job, notice_ids) in sorted(jobs.items()):
            decided = bring_forward(tx, job, now)
            if decided is not None:
                outcome = outcome.merge(decided)
                stored += notice_ids
        return evolve(outcome, result=stored)

    return committer.commit(authority, decide)
