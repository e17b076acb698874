"""The due jobs that a claim takes in a partition of PostgreSQL: from each lane with room in turn.

Usually the first due jobs are all due jobs, and their lanes are the due lanes. With a longer
backlog the ring is walked too, a page of lanes at a time, so that a long lane starves no other.
All of it runs in a transaction that has the ring locked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import attrs

from payments_core.clock import Instant
from payments_core.storage.damaged_records import try_decode
from payments_core.storage.jobs import Job
from payments_core.storage.postgres.hints import FOREVER, HINTS, LEASED, QUEUE_OF_READY, READY
from payments_core.storage.postgres.pending_transaction import PendingTransaction
from payments_core.storage.postgres.pipeline import Param, ResultRow

MAX_DUE = 128
"""The number of due jobs that are read together."""
MORE_LANES = 64
"""The number of lanes read together in place of those whose jobs are locked."""
MAX_OVERRIDES = 128
"""With more lanes with their own slots than this, the due ones are found first."""
SPARE_LANES = 32
"""How many more lanes than jobs are walked together if there are more due jobs."""
MAX_WALK = 256

_OF_QUEUE = "jobs.partition = $1 AND jobs.queue = $2"
_READY_HERE = f"FROM jobs WHERE jobs.partition = $1 AND {QUEUE_OF_READY} = $2 AND {READY}"
_LIVE = f"{_OF_QUEUE} AND {LEASED} AND lease_until > $3::bigint"
_DUE = "due_at <= $3::bigint AND lease_until <= $3::bigint"
_RING = f"SELECT lane FROM {HINTS} WHERE partition = $1 AND queue = $2"

_LOCK = f"SELECT due_at FROM {HINTS} WHERE partition = $1 AND queue = $2 FOR UPDATE"
_TRY_LOCK = f"{_LOCK} SKIP LOCKED"

_FIRST_DUE = f"{_READY_HERE} <= $3::bigint ORDER BY {READY}"
_STATE = f"""
    SELECT lane, count(*) FROM (SELECT lane {_FIRST_DUE} LIMIT {MAX_DUE}) AS first GROUP BY lane
    UNION ALL SELECT NULL, LEAST(
        (SELECT {READY} {_READY_HERE} > $3::bigint ORDER BY {READY} LIMIT 1),
        (SELECT min(lease_until) FROM jobs WHERE {_LIVE})
    )
"""
"""The first due jobs by their lanes; and, without a lane, when the next job is due, or the next
lease ends and its lane may give another."""

_DUE_LANES = f"SELECT DISTINCT lane FROM (SELECT lane {_FIRST_DUE} LIMIT {MAX_DUE}) AS first"

_NEXT_LANE = f"SELECT lane FROM jobs WHERE {_OF_QUEUE} AND lane > {{}} ORDER BY lane LIMIT 1"
_WALK = f"""
    WITH RECURSIVE ring (lane, place) AS (
        SELECT ({_NEXT_LANE.format(f"({_RING})")}), 1
        UNION ALL
        SELECT ({_NEXT_LANE.format("ring.lane")}), place + 1 FROM ring
        WHERE lane IS NOT NULL AND place < $4::bigint
    )
    SELECT lane, (
        SELECT 1 FROM jobs WHERE {_OF_QUEUE} AND jobs.lane = ring.lane AND {_DUE}
        ORDER BY due_at, ordinal, id LIMIT 1
    ) FROM ring WHERE lane IS NOT NULL ORDER BY lane
"""

# The chosen jobs are checked again after locking; a job without a body is another's. `+ 0`
# keeps the planner from reading the whole partition's index for each of them.
_SELECT = f"""
    WITH due AS MATERIALIZED (
        SELECT lane, COALESCE(slots, $5::bigint) - (
            SELECT count(*) FROM jobs WHERE {_LIVE} AND jobs.lane = found.lane
        ) AS room
        FROM ({{lanes}}) AS found
        LEFT JOIN unnest($6::text[], $7::bigint[]) AS own (lane, slots) USING (lane)
        WHERE lane <> ALL ($8::text[])
    ),
    lanes AS MATERIALIZED (
        SELECT lane, room, row_number() OVER (ORDER BY lane <= ({_RING}), lane) AS turn
        FROM due WHERE room > 0 ORDER BY turn LIMIT $4::bigint
    ),
    chosen AS MATERIALIZED (
        SELECT place, turn, lane, id FROM lanes CROSS JOIN LATERAL (
            SELECT id, row_number() OVER (ORDER BY due_at, ordinal, id) AS place FROM (
                SELECT id, due_at, ordinal FROM jobs
                WHERE {_OF_QUEUE} AND jobs.lane = lanes.lane AND {_DUE}
                ORDER BY due_at, ordinal, id LIMIT LEAST(lanes.room, $4::bigint)
            ) AS first
        ) AS jobs
        ORDER BY place, turn LIMIT $4::bigint
    )
    SELECT chosen.lane, chosen.id, locked.body FROM chosen LEFT JOIN LATERAL (
        SELECT body FROM jobs WHERE jobs.partition = $1 AND jobs.id = chosen.id
        AND due_at + 0 <= $3::bigint AND lease_until + 0 <= $3::bigint FOR UPDATE SKIP LOCKED
    ) AS locked ON true
    ORDER BY place, turn
"""
_SELECT_DUE = _SELECT.format(lanes=_DUE_LANES)
_SELECT_OF_LANES = _SELECT.format(lanes="SELECT unnest($9::text[]) AS lane")


_Statement = tuple[str, Sequence[Param]]


@attrs.frozen
class ClaimRequest:
    """The request of a claim."""

    queue: str
    now: Instant
    lease_ms: int
    limit: int
    lane_concurrency: int
    lane_overrides: Mapping[str, int]
    holder: str

    def concurrency_of(self, lane: str) -> int:
        """How many jobs of the lane may be leased at once."""
        return self.lane_overrides.get(lane, self.lane_concurrency)


@attrs.frozen
class Guess:
    """The finds of the last claim of a queue in a partition. A wrong guess costs a round trip.

    `backlog`: more jobs were due than are read together. `contended`: another claim had the
    ring, so that statements sent along with the lock may be useless.
    """

    backlog: bool = False
    contended: bool = False


NO_GUESS = Guess()


@attrs.define
class ChosenJobs:
    """The jobs to lease, in turn; `skipped` are lanes whose next job another transaction has."""

    jobs: list[Job] = attrs.field(factory=list)
    unreadable: dict[str, None] = attrs.field(factory=dict)
    lanes: list[str] = attrs.field(factory=list)
    skipped: set[str] = attrs.field(factory=set)

    def add(self, rows: Sequence[ResultRow]) -> None:
        """Add a statement's finds: of each lane, the jobs before the first that is another's."""
        for lane, id, body in ((_text(lane), _text(id), body) for lane, id, body in rows):
            self.lanes.append(lane)
            if lane in self.skipped:
                continue
            job = None if body is None else try_decode(Job, body)
            if job is not None:
                self.jobs.append(job)
            elif body is None:
                self.skipped.add(lane)
            else:
                self.unreadable[id] = None

    def add_missing(self, first: ChosenJobs, limit: int) -> None:
        """Add the missing ones of others, up to a limit."""
        known = {job.id for job in self.jobs}
        self.jobs += [job for job in first.jobs if job.id not in known]
        del self.jobs[limit:]
        self.unreadable |= first.unreadable


@attrs.frozen
class PartitionState:
    """The view of a claim in a partition.

    `hint` is the stored hint, `next_change` when the next job is due, or the next lease ends,
    and `due` how many of the first due jobs each lane has, up to MAX_DUE in total.
    """

    hint: Instant
    next_change: Instant
    due: Mapping[str, int]

    @property
    def due_count(self) -> int:
        """How many jobs are due, up to MAX_DUE."""
        return sum(self.due.values())


@attrs.frozen
class DueJobs:
    """The jobs that a claim takes, and the lane after which the next claim continues.

    `walked` means that a page of the ring was walked, and `at_end` that it was the last one.
    """

    state: PartitionState
    chosen: ChosenJobs
    ring: str
    walked: bool
    at_end: bool

    @property
    def left(self) -> bool:
        """Whether there are other due jobs."""
        taken = len(self.chosen.jobs) + len(self.chosen.unreadable)
        return self.walked or self.state.due_count > taken


def choose_due_jobs(
    transaction: PendingTransaction,
    partition: str,
    request: ClaimRequest,
    *,
    wait: bool,
    guess: Guess,
) -> DueJobs | None:
    """Lock the ring, and choose and lock due jobs; None if another claim has the ring.

    With `wait`, the other claim is waited for.
    """
    choice = _Choice(transaction, partition, request)
    lock: _Statement = (_LOCK if wait else _TRY_LOCK, choice.at[:2])
    statements: list[_Statement] = [lock, (_STATE, choice.at)]
    if guess.backlog:
        statements.append(choice.walking)
    elif len(request.lane_overrides) <= MAX_OVERRIDES:
        statements.append(choice.among_due(request.lane_overrides))
    if guess.contended and not wait and not transaction.query(*lock):
        return None
    locked, rows, *guessed = transaction.query_many(*statements)
    if not locked:
        return None
    due = {_text(lane): int(count or 0) for lane, count in rows if lane is not None}
    [change] = [at for lane, at in rows if lane is None]
    next_change = FOREVER if change is None else int(change)
    state = PartitionState(int(locked[0][0] or 0), next_change, due)
    first = None if guess.backlog or not guessed else guessed[0]
    if state.due_count < MAX_DUE:
        chosen = choice.choose_first(state, first)
        return DueJobs(state, chosen, chosen.jobs[-1].lane if chosen.jobs else "", False, True)
    walked = guessed[0] if guess.backlog else transaction.query(*choice.walking)
    return choice.choose_in_ring(state, walked, first)


@attrs.frozen
class _Choice:
    """Chooses jobs for a claim in a partition."""

    transaction: PendingTransaction
    partition: str
    request: ClaimRequest

    @property
    def at(self) -> tuple[Param, ...]:
        """The first parameters of all statements."""
        return self.partition, self.request.queue, self.request.now

    @property
    def page(self) -> int:
        """How many lanes of the ring are walked together."""
        return min(self.request.limit + SPARE_LANES, MAX_WALK)

    @property
    def walking(self) -> _Statement:
        """The statement that walks the ring."""
        return _WALK, (*self.at, self.page)

    def among_due(
        self, own: Mapping[str, int], skip: Sequence[str] = (), limit: int = 0
    ) -> _Statement:
        """The statement that chooses among the lanes of the first due jobs."""
        return _SELECT_DUE, self._parameters(own, skip, limit)

    def among(
        self, lanes: Sequence[str], own: Mapping[str, int], skip: Sequence[str] = (), limit: int = 0
    ) -> _Statement:
        """The statement that chooses among those lanes."""
        return _SELECT_OF_LANES, (*self._parameters(own, skip, limit), lanes)

    def choose_first(self, state: PartitionState, rows: Sequence[ResultRow] | None) -> ChosenJobs:
        """Choose from the first due jobs, of which some may already be chosen."""
        own = self._overrides_of(list(state.due))
        chosen = ChosenJobs()
        chosen.add(self.transaction.query(*self.among_due(own)) if rows is None else rows)
        self._choose_others(chosen, partial(self.among_due, own))
        return chosen

    def choose_in_ring(
        self,
        state: PartitionState,
        walked: Sequence[ResultRow],
        first: Sequence[ResultRow] | None,
    ) -> DueJobs:
        """Choose from the walked lanes; if these give too few, also from the first due jobs."""
        limit = self.request.limit
        lanes = [_text(lane) for lane, due in walked if due is not None]
        own = self._overrides_of(lanes)
        chosen = ChosenJobs()
        chosen.add(self.transaction.query(*self.among(lanes, own)))
        self._choose_others(chosen, partial(self.among, lanes, own))
        if len(chosen.jobs) == limit:
            ring = list(dict.fromkeys(job.lane for job in chosen.jobs))[-1]
            return DueJobs(state, chosen, ring, walked=True, at_end=False)
        at_end = len(walked) < self.page
        chosen.add_missing(self.choose_first(state, first), limit)
        ring = "" if at_end else _text(walked[-1][0])
        return DueJobs(state, chosen, ring, walked=True, at_end=at_end)

    def _choose_others(self, chosen: ChosenJobs, among: Callable[..., _Statement]) -> None:
        """Choose jobs of other lanes in place of jobs that other transactions have locked."""
        limit = self.request.limit
        while chosen.skipped and len(chosen.jobs) < limit:
            seen = len(chosen.lanes)
            skip = list(dict.fromkeys(chosen.lanes))
            chosen.add(self.transaction.query(*among(skip=skip, limit=max(limit, MORE_LANES))))
            if len(chosen.lanes) == seen:
                break
        del chosen.jobs[limit:]

    def _overrides_of(self, lanes: Sequence[str]) -> Mapping[str, int]:
        """The lanes with their own number of slots."""
        overrides = self.request.lane_overrides
        return {lane: overrides[lane] for lane in lanes if lane in overrides}

    def _parameters(
        self, own: Mapping[str, int], skip: Sequence[str], limit: int
    ) -> tuple[Param, ...]:
        slots = self.request.lane_concurrency
        several = (list(own), list(own.values()), list(skip))
        return (*self.at, limit or self.request.limit, slots, *several)


def _text(value: bytes | None) -> str:
    return (value or b"").decode()
